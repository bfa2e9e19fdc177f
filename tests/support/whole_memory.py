"""A memory with something of all that a store keeps, also of what an export leaves out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from support.fakes import NOON, agent_session
from support.mixed_memory import fill
from support.stores import open_store

from mnemosyned import Memory
from mnemosyned.memory.capture import AgentCall, WatchedFile
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.injections import (
    BriefingEdit,
    InjectedLine,
    Injection,
    InjectionKind,
)
from mnemosyned.memory.ports import MemoryStore

CALL = "call-1"
FORGOTTEN = ("new-code", "d012-0", "d010-1")
"""Memories that its call forgot with a grace time."""


CAPTURED = f"a-{1:032x}"
"""The id of a memory that a hook captured."""


def fill_all(database: Path) -> None:
    """Fill a new database."""
    fill(database)
    with Memory(database) as memory:
        memory.remember("The door is red", id="red")
        memory.remember("The door is blue", id="blue", supersedes="red")
        memory.remember("What a hook captured", id=CAPTURED)
        memory.forget(id=CAPTURED)
    with open_store(database) as store:
        surround(store)
        _forget_for_now(store)
        embed(store)


def surround(store: MemoryStore) -> None:
    """Give it what belongs to a machine."""
    surroundings = store
    for number in range(3):
        surroundings.agents.keep_session(
            agent_session(
                f"codex:{number}",
                "shop",
                seen_at=NOON + timedelta(minutes=number),
                transcript="/home/ann/t.jsonl",
                shown=("old-code", "c"),
            )
        )
        surroundings.agents.count_call(
            AgentCall(
                client="codex",
                event=f"event-{number}",
                called_at=NOON,
                duration_ms=1.25 + number,
                stored=number,
                failure="the model was away" if number == 2 else "",
            )
        )
        surroundings.injections.add(
            Injection(
                id=f"injection-{number}",
                created_at=NOON,
                client="codex",
                session=f"codex:{number}",
                kind=InjectionKind.PROMPT,
                prompt="Which door?",
                characters=90,
                tokens=30,
                lines=(
                    InjectedLine(id="blue", text="The door is blue", reason="door"),
                ),
            )
        )
    surroundings.injections.save_edit(
        BriefingEdit(id="blue", pinned=True, text="Blue door", changed_at=NOON)
    )
    surroundings.endings.add(
        [
            EndingRecord(
                older="red",
                newer="blue",
                reason="changed",
                older_place=0,
                older_start=4,
                older_end=15,
                newer_place=0,
                found_at=NOON,
            )
        ]
    )
    surroundings.watches.add_folder("/home/ann/notes", NOON)
    surroundings.watches.keep_file(
        WatchedFile(
            path="/home/ann/notes/a.md",
            file="1:2",
            size=10,
            modified_ns=1_700_000_000_000_000_001,
            read_at=NOON,
            format="markdown",
            memories={"abc": "new-code"},
            stored=1,
        )
    )
    surroundings.clock.keep_sighting(
        Sighting(moment=NOON, boot="b", uptime_s=12.5, slack=timedelta(seconds=1.5))
    )


def _forget_for_now(store: MemoryStore) -> None:
    grace = Grace(CALL, NOON + timedelta(days=9_000))
    store.deletion.forget(FORGOTTEN, grace=grace)
    learnings = [each.id for each in store.learnings.find(limit=1)]
    store.deletion.forget_learnings(learnings, grace=grace)


def embed(store: MemoryStore) -> None:
    """Give it vectors of two models."""
    newest = store.vectors.newest_position()
    for name, first in (("small", 0), ("large", newest // 2)):
        model = store.vectors.register_model(name, f"digest-{name}")
        inputs = store.vectors.without_vector(
            model, after=first, before=newest, limit=newest
        )
        store.vectors.store_vectors(
            model, {each.position: bytes([each.position % 256]) * 16 for each in inputs}
        )
