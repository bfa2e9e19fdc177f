"""Messages without words that compactions take out: they come back, and leave no trace."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.compactions import (
    Messages,
    anthropic_rounds,
    compact,
    expand_all,
    find_missing,
)
from support.fakes import FakeClock, files_containing

from mnemosyned.conversation.archived import WORDLESS, as_message
from mnemosyned.memory.intake import content_hash
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore, open_store
from mnemosyned.verbs.memories import Expand, Recall, Remember
from mnemosyned.verbs.retention import Forget, Prune
from mnemosyned.verbs.upkeep import Sleep, Undo

SPEAKER, SESSION = "Zqxjvarathustra", "Zqxjvsession"
WORDLESS_CONTENTS: tuple[object, ...] = (
    "",
    " ",
    "\n\t\r\n",
    "\u3000",
    "\u2028",
    None,
    [],
)
DROPPED = ("…", "👍", "\u200b", "--- ***", "\u0301", "\ufeff")
"""Words to us, none to the index."""


def talk(*, each: tuple[object, ...] = WORDLESS_CONTENTS) -> Messages:
    """An agent's conversation in which half of the messages have no words."""
    made: Messages = []
    for n in range(30):
        content = each[n % len(each)]
        made += [
            {"role": "user", "content": f"Step {n}: " + "row " * 60},
            {
                "role": SPEAKER,
                "content": content,
                "name": None,
                "n": {"a": None, "b": [n]},
            },
            {"role": SPEAKER, "content": content},
        ]
    return made


def check_index(database: Path) -> None:
    """Raise unless the index holds exactly what the view shows it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
        )
        connection.execute(
            "INSERT INTO episode_fts (episode_fts, rank) VALUES ('integrity-check', 1)"
        )
        indexed, shown = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("memory_fts_docsize", "memory_text")
        )
        assert indexed == shown


def taken(service: MemoryService, messages: Messages) -> list[str]:
    answer = compact(service, messages, force=True, session=SESSION, max_tokens=600)
    assert find_missing(service, messages, answer) == []
    assert len(answer.archived) > 20
    return list(answer.expand)


@pytest.mark.sqlite
@pytest.mark.parametrize("each", [WORDLESS_CONTENTS, DROPPED], ids=["none", "dropped"])
def test_they_come_back_and_the_index_stays_whole_all_life_long(
    service: MemoryService,
    store: SqliteStore,
    clock: FakeClock,
    each: tuple[object, ...],
) -> None:
    messages = talk(each=each)
    ids = taken(service, messages)
    gone = expand_all(service, *ids)
    check_index(store.database)

    slept = service.call(Sleep(force=True))
    assert (slept.failed, slept.remaining) == (0, 0)
    assert slept.evicted >= len(gone)
    assert expand_all(service, *ids) == gone
    check_index(store.database)

    assert service.call(Undo(slept.cycle)).restored == slept.evicted
    assert expand_all(service, *ids) == gone
    check_index(store.database)

    service.call(Sleep(force=True))
    clock.advance(days=40)
    service.call(Sleep(force=True))
    assert service.call(Prune(characters_max=2_000)).memories
    check_index(store.database)

    receipt = service.call(Forget(session=SESSION))
    assert receipt.complete
    check_index(store.database)
    assert files_containing(store.database.parent, SPEAKER, SESSION) == []


@pytest.mark.sqlite
def test_forgotten_before_a_sleep_they_leave_no_trace_either(
    service: MemoryService, store: SqliteStore
) -> None:
    taken(service, talk())
    assert files_containing(store.database.parent, SPEAKER, SESSION)

    service.call(Forget(session=SESSION))

    assert files_containing(store.database.parent, SPEAKER, SESSION) == []
    check_index(store.database)


def test_a_session_of_which_something_is_left_keeps_its_name(
    service: MemoryService,
) -> None:
    (first, *_) = taken(service, talk())
    service.call(Remember("something else", session=SESSION, id="left"))

    service.call(Forget(query="row"))

    assert service.call(Expand(first)).episode.session == SESSION


def test_no_question_finds_what_has_no_words(service: MemoryService) -> None:
    taken(service, talk())

    found = service.call(Recall("the empty result ∅ of nothing")).hits

    assert [hit for hit in found if hit.role == SPEAKER] == []


def test_a_group_of_nothing_else_is_slept_on(service: MemoryService) -> None:
    messages = [{"role": "tool", "content": "", "n": n} for n in range(40)]
    answer = compact(service, messages, force=True, max_tokens=100)
    assert answer.archived

    slept = service.call(Sleep(force=True))

    assert (slept.failed, slept.evicted) == (0, len(answer.archived))


def test_pictures_and_calls_come_back_beside_them(service: MemoryService) -> None:
    messages = [
        message
        for pair in zip(anthropic_rounds(20), talk(), strict=False)
        for message in pair
    ]

    answer = compact(service, messages, force=True, max_tokens=600)

    assert find_missing(service, messages, answer) == []


# ------------------------------------------------------- files from before


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The migrations of the time when such a memory had no content."""
    folder = tmp_path / "migrations"
    shutil.copytree(shipped("migrations"), folder)
    for file in folder.glob("001*.sql"):
        file.unlink()
    return folder


def wordless(
    connection: sqlite3.Connection, table: str, seq: int, **columns: object
) -> None:
    """A row as it was written, indexed by its speaker."""
    row = {
        "seq": seq, "id": f"m-{seq:032x}", "session_id": SESSION, "role": SPEAKER, "content": "",
        "created_at": "2026-03-01T00:00:00.000000Z", "content_hash": content_hash(""), **columns,
    }  # fmt: skip
    marks = ", ".join("?" * len(row))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", [*row.values()]
    )
    connection.execute(
        "INSERT INTO memory_fts (rowid, content, role) VALUES (?, '', ?)",
        (seq, SPEAKER),
    )


def test_a_file_from_before_is_healed(database: Path, before: Path) -> None:
    with open_store(database, migrations=before):
        pass
    rest = '{"rest_of_message":{"name":null,"n":1}}'
    whole = '{"message":{"content":null,"role":"' + SPEAKER + '"}}'
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO episodic_memory (seq, id, session_id, content, item_count, covers_from, "
            "covers_until, summarizer, created_at) VALUES (1, 'e', ?, 'nothing', 2, "
            "'2026-03-01T00:00:00.000000Z', '2026-03-01T00:00:00.000000Z', 'aaak', "
            "'2026-03-01T00:00:00.000000Z')",
            (SESSION,),
        )
        connection.execute(
            "INSERT INTO compaction VALUES ('c-1', 'Zqxjvgone', NULL, 'auto', 1, "
            "'2026-03-01T00:00:00.000000Z')"
        )
        wordless(connection, "working_memory", 1, metadata=rest)
        wordless(connection, "archive", 2, metadata="{}", episode_seq=1)
        wordless(connection, "archive", 3, metadata=whole, episode_seq=1)
        wordless(connection, "archive", 4, episode_seq=1)  # it was pruned
        connection.execute(
            "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', 4, '', ?)",
            (SPEAKER,),
        )
        connection.execute(
            "INSERT INTO memory_state (memory_seq, pruned_at) "
            "VALUES (4, '2026-03-01T00:00:00.000000Z')"
        )
        wordless(connection, "working_memory", 5)  # it was forgotten
        connection.execute("DELETE FROM working_memory WHERE seq = 5")
        connection.commit()
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(
                "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
            )

    with open_store(database, migrations=shipped("migrations")) as store:
        healed = [store.memories.get(f"m-{seq:032x}") for seq in range(1, 5)]
        totals = {
            tier.value: total for tier, total in store.maintenance.totals().items()
        }
        due = store.deletion.purge_due()

    assert [one.content for one in healed if isinstance(one, MemoryRecord)] == [
        *[WORDLESS] * 3,
        "",
    ]
    assert [as_message(one) for one in healed[:3] if isinstance(one, MemoryRecord)] == [
        {"role": SPEAKER, "content": "", "name": None, "n": 1},
        {"role": SPEAKER, "content": ""},
        {"content": None, "role": SPEAKER},
    ]
    assert (totals["working"].characters, totals["archive"].characters) == (1, 2)
    assert due
    check_index(database)
    with closing(sqlite3.connect(database)) as connection:
        hashes = connection.execute(
            "SELECT content_hash FROM working_memory UNION ALL SELECT content_hash FROM archive "
            "WHERE content != ''"
        ).fetchall()
    assert hashes == [(content_hash(WORDLESS),)] * 3


def test_a_file_without_such_memories_is_left_as_it_is(
    database: Path, before: Path
) -> None:
    with open_store(database, migrations=before):
        pass

    with open_store(database, migrations=shipped("migrations")) as store:
        assert not store.deletion.purge_due()
