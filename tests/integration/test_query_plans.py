"""What is asked of one memory or summary costs the same however many others there are."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mnemosyned
from mnemosyned import Memory
from mnemosyned.verbs.memories import Remember

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
GROWING = (
    "working_memory",
    "archive",
    "detail",
    "episodic_memory",
    "compacted",
    "tag",
    "revision",
    "forgotten",
)
WHOLE = "EXCEPT SELECT"
"""Which names nobody bears is asked of all memories, as a purge goes through the whole file."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that a connection of the store runs, with its values."""
    statements: list[str] = []
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def traced(*args: object, **options: object) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return statements


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with originals below a summary."""
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    with Memory(database) as memory:
        memory.remember_many(
            [
                Remember(f"Anna says number {n} is at 1{n}:30", session=f"s{n % 3}")
                for n in range(9)
            ]
        )
        memory.sleep(force=True)
    return database


def ids(database: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [
            id for (id,) in connection.execute(f"SELECT id FROM {table} ORDER BY seq")
        ]


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory, _, episode: memory.get(episode),
        lambda memory, _, episode: memory.expand(episode),
        lambda memory, original, _: memory.get(original),
        lambda memory, original, _: memory.restore(original),
        lambda memory, original, _: memory.forget(original),
        lambda memory, _, episode: memory.forget(episode, dry_run=True),
        lambda memory, *_: memory.recall("what did Anna say of number 7?"),
        lambda memory, *_: memory.remember("Anna says number 7 again", session="s1"),
        lambda memory, original, _: memory.edit(original, text="Ben says 8 at 18:30"),
        lambda memory, original, _: memory.tag(original, tags=["work"]),
        lambda memory, original, _: memory.get(original, history=True),
        lambda memory, *_: memory.list(tag="work"),
        lambda memory, *_: memory.recall("what did Anna say?", tag="work"),
        lambda memory, original, _: memory.list(id_prefix=original[:20].lower()),
        lambda memory, *_: memory.list(limit=2),
        lambda memory, *_: memory.list(limit=2, order="oldest", role="Anna"),
        lambda memory, *_: memory.list(session="s1", since=LONG_AGO, history=True),
        lambda memory, *_: memory.list(source="notes", pinned=True),
        lambda memory, *_: memory.list(level="day"),
        lambda memory, *_: memory.compact(
            [{"role": "user", "content": "Anna went home."}] * 9
        ),
    ],
    ids=[
        "get",
        "expand",
        "original",
        "restore",
        "forget",
        "preview",
        "recall",
        "keep",
        "edit",
        "tag",
        "history",
        "list-tagged",
        "recall-tagged",
        "list-by-id",
        "list",
        "list-oldest",
        "list-session",
        "list-pinned",
        "list-days",
        "compact",
    ],
)
def test_no_verb_reads_a_whole_table_for_one_memory(
    filled: Path,
    tmp_path: Path,
    seen: list[str],
    ask: Callable[[Memory, str, str], object],
) -> None:
    database = Path(shutil.copy(filled, tmp_path / "memory.db"))
    with Memory(database) as memory:
        original, episode = (
            ids(database, "archive")[4],
            ids(database, "episodic_memory")[0],
        )
        seen.clear()
        ask(memory, original, episode)
    with closing(sqlite3.connect(database)) as connection:
        steps = [
            (step, statement)
            for statement in seen
            if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE", "\n"))
            and WHOLE not in statement
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert steps
    names = {f"SCAN {name}" for table in GROWING for name in (table, table[0])}
    assert [(step, statement) for step, statement in steps if step in names] == []


def test_values_are_bound_in_order() -> None:
    """Python 3.12 takes ?1 for a named placeholder, and refuses these for a sequence one day."""
    storage = Path(mnemosyned.__file__).parent / "storage/sqlite"
    numbered = [
        (file.name, found)
        for file in storage.rglob("*.py")
        for found in re.findall(r"\?\d|\?\{\w+\}", file.read_text("utf-8"))
    ]
    assert numbered == []
