"""What is read of other memories: while they run, of broken rows, and of records that changed."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.import_samples import format_of, read, write_sample

from mnemosyned.errors import InvalidRequest
from mnemosyned.importers import reading
from mnemosyned.importers.formats import memory_stores
from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportItem,
    ImportSource,
)
from mnemosyned.importers.run import find_sources, plan_import
from mnemosyned.verbs.request import instant

OBSERVATION = (
    "INSERT INTO observations (memory_session_id, project, type, title, created_at, "
    "created_at_epoch) VALUES ('m1', 'shop', 'change', ?, '', ?)"
)
AT = 1773651600000


@pytest.fixture
def claude_mem(tmp_path: Path) -> Path:
    return write_sample("claude_mem", tmp_path)


@pytest.fixture
def rival(claude_mem: Path) -> Iterator[sqlite3.Connection]:
    """The program whose database it is, which keeps it open."""
    with closing(sqlite3.connect(claude_mem, isolation_level=None)) as connection:
        yield connection


def texts(path: Path) -> list[str]:
    return [item.memory.content for item in read(path)[0]]


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_memory_that_is_closed_is_read_without_a_trace(
    claude_mem: Path, tmp_path: Path, mode: str
) -> None:
    with closing(sqlite3.connect(claude_mem)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    before = contents_of(tmp_path)

    read(claude_mem)

    assert contents_of(tmp_path) == before


def test_a_memory_whose_program_was_killed_while_it_wrote_is_read_as_before_that(
    claude_mem: Path, rival: sqlite3.Connection, tmp_path: Path
) -> None:
    before = texts(claude_mem)
    rival.execute("PRAGMA journal_mode = DELETE")
    rival.execute("PRAGMA cache_size = 5")
    rival.execute("BEGIN")
    for _ in range(100):
        rival.execute(OBSERVATION, ("Half written" * 300, AT))
    killed = tmp_path / "killed"
    killed.mkdir()
    for path in [claude_mem, Path(f"{claude_mem}-journal")]:
        (killed / path.name).write_bytes(path.read_bytes())
    left = contents_of(killed)

    assert texts(killed / claude_mem.name) == before

    assert contents_of(killed) == left


def test_a_running_memory_is_read_with_what_is_in_its_log_alone(
    claude_mem: Path, rival: sqlite3.Connection, tmp_path: Path
) -> None:
    rival.execute(OBSERVATION, ("Written a moment ago", AT))
    database, log = claude_mem.read_bytes(), Path(f"{claude_mem}-wal").read_bytes()

    assert "Written a moment ago" in texts(claude_mem)

    assert claude_mem.read_bytes() == database
    assert Path(f"{claude_mem}-wal").read_bytes() == log
    assert len(list(tmp_path.iterdir())) == 3
    # The same of a crashed program, which has the files open no longer.
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    (crashed / claude_mem.name).write_bytes(database)
    (crashed / f"{claude_mem.name}-wal").write_bytes(log)
    assert "Written a moment ago" in texts(crashed / claude_mem.name)
    assert len(list(crashed.iterdir())) == 2


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_memory_can_be_written_while_it_is_read(
    claude_mem: Path,
    rival: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setattr(memory_stores, "PAGE_ROWS", 1)
    rival.execute(f"PRAGMA journal_mode = {mode}")
    rival.execute("PRAGMA busy_timeout = 0")
    rival.execute(OBSERVATION, ("Before", AT))
    found = []

    for record in format_of(claude_mem).read(ImportSource.of_path(claude_mem), START):
        found.append(record)
        if len(found) < 4:
            rival.execute(OBSERVATION, (f"While {len(found)}", AT))

    said = [each.memory.content for each in found if isinstance(each, ImportItem)]
    assert {"While 1", "While 2", "While 3"} <= set(said)


def test_a_memory_that_its_program_has_locked_is_named_with_what_to_do(
    claude_mem: Path, rival: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOCK_WAIT_S", 0.01)
    rival.execute("PRAGMA journal_mode = DELETE")
    rival.execute("BEGIN EXCLUSIVE")

    with pytest.raises(InvalidRequest, match="has locked it; close that program"):
        plan_import([ImportSource.of_path(claude_mem)], None)

    plan = plan_import([ImportSource.of_path(claude_mem.parent)], None)
    assert [problem.place for problem in plan.unreadable] == [str(claude_mem)]


def test_rows_that_are_broken_are_named_and_the_others_read(
    claude_mem: Path, rival: sqlite3.Connection
) -> None:
    rival.execute("DELETE FROM observations")
    rival.execute(OBSERVATION, (b"\x00\x01", AT))
    as_text = OBSERVATION.replace("'change', ?", "'change', CAST(? AS TEXT)")
    rival.execute(as_text, (b"caf\xe9", AT))
    rival.execute(OBSERVATION, (7, AT))
    rival.execute(OBSERVATION, ("x" * 3_000_000, AT))
    rival.execute("UPDATE user_prompts SET prompt_text = x'00'")

    items, bad = read(claude_mem)

    observed = [item.memory.content for item in items if ", observations" in item.place]
    assert observed == ["caf�", "7", "x" * 3_000_000]
    assert [record.reason for record in bad] == ["it has no text"] * 3


MOMENT = datetime(2026, 3, 16, 9, tzinfo=UTC)


TIMES: list[tuple[object, str, datetime | None]] = [
    (AT, "", MOMENT),
    (AT // 1000, "", MOMENT),
    (AT * 1000, "", MOMENT),
    (str(AT), "", MOMENT),
    (0, "2026-03-16T10:00:00+01:00", MOMENT),
    (0, "2026-03-16T09:00:00.000Z", MOMENT),
    (-1, "2026-03-16 09:00:00", MOMENT),
    (4_102_444_800_000, "2026-03-16 09:00:00", MOMENT),
    ("soon", "yesterday", None),
    (9e999, "", None),
]


def test_a_time_is_read_in_every_shape_and_never_one_to_come(
    claude_mem: Path, rival: sqlite3.Connection
) -> None:
    rival.execute("DELETE FROM observations")
    for number, (epoch, text, _) in enumerate(TIMES):
        insert = OBSERVATION.replace("?, '', ?", f"'x{number}', ?, ?")
        rival.execute(insert, (text, epoch))

    items, _ = read(claude_mem)

    assert {
        item.memory.content: instant(item.memory.created_at)
        for item in items
        if ", observ" in item.place
    } == {f"x{number}": expected for number, (*_, expected) in enumerate(TIMES)}


def test_a_memory_that_changed_while_it_was_read_without_its_log_is_to_be_read_again(
    claude_mem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_stores, "PAGE_ROWS", 1)
    records = format_of(claude_mem).read(ImportSource.of_path(claude_mem), START)
    next(records)
    with closing(sqlite3.connect(claude_mem)) as connection:
        connection.execute(OBSERVATION, ("Meanwhile", AT))
        connection.commit()

    *_, last = records

    assert isinstance(last, BadRecord)
    assert last.reason.endswith("it changed while it was read; repeat the import")


def test_a_row_with_a_number_below_one_is_read(
    claude_mem: Path, rival: sqlite3.Connection
) -> None:
    for number in (0, -7):
        row = rival.execute(OBSERVATION, (f"Row {number}", AT)).lastrowid
        rival.execute(f"UPDATE observations SET id = {number} WHERE id = {row}")

    assert {"Row 0", "Row -7"} <= set(texts(claude_mem))


def test_rows_of_two_memories_with_the_same_numbers_are_different(
    claude_mem: Path, rival: sqlite3.Connection
) -> None:
    before = {item.memory.id for item in read(claude_mem)[0]}
    for table in ("observations", "session_summaries", "user_prompts", "memory_items"):
        rival.execute(f"UPDATE {table} SET created_at_epoch = created_at_epoch + 1")

    after = {item.memory.id for item in read(claude_mem)[0]}

    assert not before & after


def test_an_upgraded_memory_has_the_same_records(tmp_path: Path) -> None:
    path = write_sample("claude_mem_old", tmp_path)
    before = [(item.memory.id, item.memory.session) for item in read(path)[0]]
    renamed = (
        ("observations", "sdk", "memory"),
        ("session_summaries", "sdk", "memory"),
        ("sdk_sessions", "sdk", "memory"),
        ("sdk_sessions", "claude", "content"),
        ("user_prompts", "claude", "content"),
    )
    with closing(sqlite3.connect(path)) as connection:
        for table, old, new in renamed:
            change = f"RENAME COLUMN {old}_session_id TO {new}_session_id"
            connection.execute(f"ALTER TABLE {table} {change}")
        connection.execute("ALTER TABLE observations ADD COLUMN title TEXT")
        connection.commit()

    after = [(item.memory.id, item.memory.session) for item in read(path)[0]]

    assert after == before


def test_a_database_and_an_export_of_engram_have_the_same_records(
    tmp_path: Path,
) -> None:
    rows, exported = (
        {item.memory.id: item.memory.content for item in read(path)[0]}
        for path in (
            write_sample("engram", tmp_path),
            write_sample("engram_export", tmp_path),
        )
    )

    assert exported == rows


def test_a_memory_of_mem0_is_the_same_in_a_database_and_in_an_export(
    tmp_path: Path,
) -> None:
    id = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
    path = write_sample("openmemory", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM memories WHERE id != 'm1'")
        connection.execute("UPDATE memories SET id = ?", (id.replace("-", ""),))
        connection.commit()
    export = tmp_path / "all.json"
    export.write_text(json.dumps({"results": [{"id": id, "memory": "Likes tea"}]}))

    (row,), _ = read(path)
    (exported,), _ = read(export)

    assert row.memory.id == exported.memory.id


def test_a_store_of_chroma_without_drawers_is_no_palace(tmp_path: Path) -> None:
    path = write_sample("mempalace", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM embedding_metadata WHERE key = 'wing'")
        connection.commit()

    with pytest.raises(InvalidRequest, match="a database that cannot be imported"):
        plan_import([ImportSource.of_path(path)], None)


@pytest.mark.parametrize(
    ("sample", "place", "tags", "metadata"),
    [
        ("note", 0, ["trip", "sea", "booked"], {}),
        ("mcp_memory_service", 0, ["style", "code"], {}),
        ("specstory", 0, [], {"cwd": "."}),
        ("mempalace", 0, ["cart"], {"project": "shop"}),
        ("mempalace", 2, [], {"added_by": "claude"}),
        (
            "claude_memory",
            0,
            ["feedback"],
            {"project": "/w/shop", "title": "tabs-not-spaces"},
        ),
        (
            "claude_mem",
            None,
            ["bugfix", "problem-solution", "gotcha"],
            {
                "project": "shop",
                "type": "bugfix",
                "files_read": ["src/cart.ts"],
                "files_modified": ["src/cookie.ts"],
            },
        ),
    ],
)
def test_tags_projects_and_kinds_are_read(
    sample: str,
    place: int | None,
    tags: list[str],
    metadata: dict[str, object],
    tmp_path: Path,
) -> None:
    items, _ = read(write_sample(sample, tmp_path))
    cart = (item for item in items if "cart empties" in item.memory.content)
    memory = (next(cart) if place is None else items[place]).memory

    assert not tags or memory.tags == tags
    here = {"cwd": str(tmp_path)} if "cwd" in metadata else {}
    assert memory.metadata.items() >= (metadata | here).items()


def test_the_folder_of_claude_code_is_read_without_its_index_and_links(
    tmp_path: Path,
) -> None:
    folder = write_sample("claude_memory", tmp_path).parent
    secret = tmp_path / "secret.md"
    secret.write_text("outside")
    (folder / "linked.md").symlink_to(secret)
    (folder / "old.md").write_bytes(b"caf\xe9 is open\n")

    plan = plan_import([ImportSource.of_path(folder)], None)
    found = [
        record.memory.content
        for part in plan.parts
        for record in part.format.read(part.source, START)
        if isinstance(record, ImportItem)
    ]

    assert {part.format.name for part in plan.parts} == {"claude-memory"}
    assert sorted(found) == [
        "old\n\ncafé is open",
        "tabs-not-spaces\n\nIndent with tabs.\n\n**Why:** the formatter does.",
    ]


def test_what_other_programs_keep_is_found_at_its_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, moved = tmp_path / "home", tmp_path / "elsewhere"
    write_sample("engram", home / ".engram")
    write_sample("claude_mem", moved)
    write_sample("claude_memory", home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(moved))
    monkeypatch.delenv("ENGRAM_DATA_DIR", raising=False)
    monkeypatch.delenv("MEMORY_FILE_PATH", raising=False)
    monkeypatch.chdir(tmp_path)

    assert list(find_sources()) == [
        f"{moved}/claude-mem.db",
        "~/.engram/engram.db",
        "~/.claude/projects",
        "~/.claude/projects/*/memory",
    ]


@pytest.mark.parametrize(
    "words", ["[1, 2, 3]", '[{"name": "api", "port": 8443}]', '["eggs", "milk"]']
)
def test_a_message_of_letta_that_is_json_is_read_as_its_words(
    tmp_path: Path, words: str
) -> None:
    path = write_sample("letta", tmp_path)
    agents = json.loads(path.read_text())
    message = next(
        each for each in agents["agents"][0]["messages"] if each["role"] == "user"
    )
    message["content"] = words
    path.write_text(json.dumps(agents))

    assert words in texts(path)
