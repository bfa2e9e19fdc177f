"""Transcripts that are captured by hooks and imported later are stored once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.agents import (
    Agent,
    Json,
    claude,
    claude_line,
    codex,
    codex_event,
    codex_meta,
    texts,
    write_lines,
)

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.importers.importer import START, ImportItem, ImportSource
from mnemosyned.importers.run import recognize_format
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Remember, RememberMany

TALKS: dict[str, tuple[Callable[..., Agent], str, list[Json]]] = {
    "transcript": (
        claude,
        "claude-code:s1",
        [
            claude_line("user", "Why is the cart empty?", uuid="u1"),
            claude_line("assistant", "The cookie expires.", uuid="u2", minutes=1),
        ],
    ),
    "rollout": (
        codex,
        "codex:0199",
        [
            codex_meta(),
            codex_event("user_message", "Fix the tax rounding"),
            codex_event("agent_message", "Rounded half to even.", minutes=1),
        ],
    ),
}


def memories_of(path: Path) -> list[Remember]:
    """The memories that an import of a transcript stores."""
    source = ImportSource.of_path(path)
    format = recognize_format(source)
    assert format
    items = format.read(source, START)
    return [each.memory for each in items if isinstance(each, ImportItem)]


@pytest.mark.parametrize("fixture", TALKS)
def test_an_import_after_capture_stores_nothing_twice(
    fixture: str,
    hooks: HookService,
    service: MemoryService,
    store: SqliteStore,
    request: pytest.FixtureRequest,
) -> None:
    agent, session, lines = TALKS[fixture]
    path: Path = request.getfixturevalue(fixture)
    write_lines(path, lines[:-1])
    agent(hooks, path).call(hook_event_name="Stop")
    write_lines(path, lines[-1:])

    answers = service.call(RememberMany(memories_of(path))).memories
    agent(hooks, path).call(hook_event_name="Stop")

    assert [answer.stored for answer in answers] == [False, True]
    assert len(texts(store, session)) == 2


@pytest.mark.parametrize("fixture", TALKS)
def test_an_imported_conversation_belongs_to_the_project_of_its_directory(
    fixture: str,
    hooks: HookService,
    service: MemoryService,
    store: SqliteStore,
    request: pytest.FixtureRequest,
) -> None:
    agent, session, lines = TALKS[fixture]
    path: Path = request.getfixturevalue(fixture)
    write_lines(path, [{**line, "cwd": "/w/shop"} for line in lines])
    memories = memories_of(path)

    service.call(RememberMany(memories, import_id="01M8DZ553P4R11WFTR4W9D370X"))

    project = str(memories[0].metadata["project"])
    assert store.agents.sessions_of(project, 10) == [session]
    known = store.agents.session(session)
    agent(hooks, path).call(hook_event_name="Stop")
    assert known
    assert known.project == project
    assert len(texts(store, session)) == 2
