"""Forgotten means gone: from the tiers, the index, the log, and every file, as bytes."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.cases import each_case, thorough
from support.fakes import (
    NOON,
    FakeClock,
    agent_session,
    files_containing,
    memory,
    remember_batch,
    working_ids,
)
from support.leftovers import left_of
from support.services import Lab
from support.stores import episode_of, get_episode, open_store

from mnemosyned import Memory
from mnemosyned.cli.maintenance.databases import restore_database
from mnemosyned.cli.maintenance.doctor import back_up_for_repair
from mnemosyned.cli.output.show import render
from mnemosyned.cli.verb_command import join_preview_pages
from mnemosyned.errors import InvalidRequest, MnemosynedError
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.service import reading
from mnemosyned.storage.sqlite.copies import UNPURGED
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.retention import Forget

WORDS = {
    "words": "Zqxjv48213Kwyz",
    "utf-8": "Žluťoučkýkůňž",
    "cjk": "鑫淼焱垚犇骉",
    "code": "zqxjvSecretName",
    "snake": "zqxjv_wiring_table",
    "e-mail": "zqxjv.kwyz@example.org",
    "secret": "password: Zqxjv-4471-Kwyz",
    "emoji": "🚲zqxjvkwyz🚲",
}
EPISODES = 4
PER_EPISODE = 6
CHOSEN_AT = (3, 9)
"""Positions of the memories with the word: one in each of two episodes."""


@dataclass(frozen=True)
class Case:
    """One memory among many, and a way to name it."""

    word: str
    way: str
    state: str
    where: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.state} by {self.way}: {self.word}"


def memories_of(case: Case) -> list[MemoryRecord]:
    """Memories of four mornings; two of them hold the word, in whatever place the case names."""
    word = WORDS[case.word]
    memories = []
    for at in range(EPISODES * PER_EPISODE):
        told = at in CHOSEN_AT
        spoken = (
            f"note {at}: {word}. {word} again" if told else f"note {at} of the meadow"
        )
        filler = " ".join(f"word{at}x{n}" for n in range(12))
        memories.append(
            memory(
                f"m{at}",
                f"{spoken} {filler}",
                created_at=NOON - timedelta(days=5 - at // PER_EPISODE, minutes=-at),
                **{key: value for key, value in case.where.items() if told},
            )
        )
    return memories


def forget_requests(case: Case) -> list[Forget]:
    word = WORDS[case.word]
    if case.way == "id":
        return [Forget(f"m{at}") for at in CHOSEN_AT]
    if case.way == "period":
        return [Forget(since=moment(at), until=moment(at + 1)) for at in CHOSEN_AT]
    if case.way in ("session", "source"):
        return [Forget(**{case.way: case.where[case.way]})]
    return [Forget(**{case.way: case.where.get("role", word)})]


def moment(at: int) -> Any:  # noqa: ANN401
    return NOON - timedelta(days=5 - at // PER_EPISODE, minutes=-at)


def fresh(_: Lab) -> None:
    pass


def slept(lab: Lab) -> None:
    lab.run_cycle(force=True)


def rolled_up(lab: Lab) -> None:
    slept(lab)
    lab.clock.advance(days=30)
    slept(lab)


def pinned(lab: Lab) -> None:
    for at in CHOSEN_AT:
        lab.pin(f"m{at}")
    slept(lab)


def restored(lab: Lab) -> None:
    rolled_up(lab)
    for at in CHOSEN_AT:
        lab.restore(f"m{at}")


def undone(lab: Lab) -> None:
    slept(lab)
    lab.undo(lab.store.sleep.log(limit=1)[0].cycle)


def superseded(lab: Lab) -> None:
    rolled_up(lab)
    for at in CHOSEN_AT:
        lab.remember(f"the meadow is mown {at}", supersedes=f"m{at}")


def pruned(lab: Lab) -> None:
    rolled_up(lab)
    lab.prune(characters_max=0)


STATES: dict[str, Callable[[Lab], None]] = {
    state.__name__: state
    for state in (fresh, slept, rolled_up, pinned, restored, undone, superseded, pruned)
}
BY_WORD = [
    Case(word, ("id", "query", "person")[at % 3], state)
    for state in ("fresh", "rolled_up")
    for at, word in enumerate(WORDS)
]
BY_STATE = [
    Case("words", "id", "pinned"),
    Case("cjk", "query", "pinned"),
    Case("words", "person", "restored"),
    Case("cjk", "id", "restored"),
    Case("code", "query", "undone"),
    Case("secret", "id", "undone"),
    Case("words", "person", "superseded"),
    Case("utf-8", "id", "superseded"),
    Case("words", "id", "pruned"),
    Case("e-mail", "person", "pruned"),
]
BY_PLACE = [
    Case("words", "session", "slept", {"session": "Zqxjv48213Kwyz"}),
    Case(
        "words",
        "session",
        "rolled_up",
        {"session": "s Zqxjv48213Kwyz", "source": "chat"},
    ),
    Case("words", "source", "slept", {"source": "Zqxjv48213Kwyz"}),
    Case("words", "person", "slept", {"role": "Zqxjv48213Kwyz"}),
    Case("cjk", "person", "fresh", {"role": "鑫淼焱垚犇骉"}),
    Case("words", "query", "slept", {"metadata": {"also": ["Zqxjv48213Kwyz"]}}),
    Case("words", "period", "fresh"),
    Case("words", "period", "rolled_up"),
]


def find_remains(store: SqliteStore, word: str) -> list[str]:
    """Files and tables in which the word, or a part of it, can still be read."""
    parts = [part for part in word.removeprefix("password: ").split() if part]
    if word == WORDS["cjk"]:
        parts += ["".join(pair) for pair in pairwise(word)]
    found = left_of(store, word, *parts)
    if not isinstance(store, SqliteStore):
        return found
    with closing(
        sqlite3.connect(f"file:{store.database}?mode=ro", uri=True)
    ) as connection:
        dump = "\n".join(all_rows(connection)).casefold()
    return found + [f"a table: {part}" for part in parts if part.casefold() in dump]


def all_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Every row of every table that is one, those behind the indexes included."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (table,) in tables:
        yield from (repr(row) for row in connection.execute(f"SELECT * FROM {table}"))


def test_a_preview_too_long_for_one_answer_is_listed_page_by_page(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LISTED_MAX", 4)
    old = [memory(f"m{at}", f"ibex {at}", hours_ago=20) for at in range(6)]
    lab.put(*old)
    lab.run_cycle()
    new = [memory(f"n{at}", f"ibex {at}") for at in range(4)]
    lab.put(*new)
    pages = [lab.forget(query="ibex", dry_run=True)]
    while pages[-1].further:
        after = pages[-1].lines[-1].id
        pages.append(lab.forget(query="ibex", dry_run=True, after=after))

    listed = [line.id for page in pages for line in page.lines]
    assert sorted(listed) == [each.id for each in (*old, *new)]
    assert [page.memories for page in pages] == [10] * 3
    assert [page.further for page in pages] == [6, 2, 0]
    last = pages[0].lines[-1].id
    assert f"… and 6 more: --dry-run --after {last}" in render(pages[0])
    assert "more" not in render(pages[-1])


def test_a_preview_goes_on_only_from_what_would_go(lab: Lab) -> None:
    lab.put(memory("1", "ibex"), memory("2", "heron"))

    with pytest.raises(InvalidRequest, match="leave after out") as strange:
        lab.forget(query="ibex", dry_run=True, after="2")
    with pytest.raises(InvalidRequest, match="after needs dry_run") as alone:
        lab.forget(query="ibex", after="1")

    assert (strange.value.field, alone.value.field) == ("after", "after")
    assert lab.forget(query="ibex", dry_run=True).memories == 1


# What was forgotten is in no file of the data directory: every way, in every state, as bytes.


def month_above(lab: Lab, id: str) -> Episode:
    """The highest summary over a memory."""
    found = lab.episode_of(id)
    while found.parent:
        found = get_episode(lab.store, found.parent)
    return found


@pytest.mark.parametrize(
    "case",
    [*BY_WORD[::3], *thorough(*BY_WORD[1::3], *BY_WORD[2::3], *BY_STATE, *BY_PLACE)],
    ids=str,
)
def test_no_file_holds_what_was_forgotten(case: Case, lab: Lab) -> None:
    memories = memories_of(case)
    for start in range(0, len(memories), PER_EPISODE):
        lab.put(*memories[start : start + PER_EPISODE])
    STATES[case.state](lab)
    before = lab.store.maintenance.totals()

    receipts = [lab.call(forget) for forget in forget_requests(case)]

    assert sum(receipt.memories for receipt in receipts) == len(CHOSEN_AT)
    assert all(receipt.complete for receipt in receipts)
    assert find_remains(lab.store, WORDS[case.word]) == []
    after = lab.store.maintenance.totals()
    tiers = [tier for tier in before if tier != "episodic"]
    gone = sum(before[tier].count - after[tier].count for tier in tiers)
    assert gone == len(CHOSEN_AT)


def test_the_preview_shows_what_would_go_and_the_receipt_none_of_it(lab: Lab) -> None:
    word = WORDS["words"]
    lab.put(*memories_of(Case("words", "query", "rolled_up")))
    rolled_up(lab)

    preview = lab.forget(query=word, dry_run=True)
    receipt = lab.forget(query=word)

    assert [line.id for line in preview.lines] == ["m3", "m9"]
    assert word in preview.lines[0].snippet
    assert receipt.lines == []
    assert word not in str(receipt)
    assert (preview.dry_run, receipt.dry_run) == (True, False)
    for name in "memories archived details episodes_removed episodes_rewritten".split():
        assert getattr(preview, name) == getattr(receipt, name), name
    # Two episodes, the day of each, their week and their month.
    assert receipt.episodes_rewritten == 6


def test_forgetting_a_month_forgets_all_it_was_made_of(lab: Lab) -> None:
    lab.put(*memories_of(Case("words", "id", "rolled_up")))
    rolled_up(lab)

    receipt = lab.forget(month_above(lab, "m3").id)

    assert receipt.memories == EPISODES * PER_EPISODE
    assert receipt.episodes_removed == 2 * EPISODES + 2
    assert {tier.count for tier in lab.store.maintenance.totals().values()} == {0}
    assert find_remains(lab.store, WORDS["words"]) == []


def test_without_a_match_nothing_is_purged(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> bool:
        raise AssertionError("the file was written anew")

    lab.put(memory("1", WORDS["words"]), memory("2"))

    with monkeypatch.context() as patch:
        patch.setattr(lab.store.deletion, "purge_deleted", refuse)
        receipt = lab.forget(query="nobody said this")

    assert (receipt.memories, receipt.complete) == (0, True)
    lab.store.deletion.forget(["1"])  # a crash came before it was pressed out
    lab.forget(query="nobody said this")
    assert find_remains(lab.store, WORDS["words"]) == []


@pytest.mark.sqlite
def test_another_program_that_reads_keeps_the_log_until_it_is_done(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.storage.sqlite.forgetting.CHECKPOINT_TRIES", 3)
    database = lab.store.database
    lab.remember(WORDS["words"], id="1")
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM working_memory").fetchone()

        assert not lab.forget("1").complete

        left = files_containing(database.parent, WORDS["words"])
        assert left == ["memory.db-wal"]
    lab.service.retention.after_cycle()

    assert find_remains(lab.store, WORDS["words"]) == []


def backed_up(store: SqliteStore, target: Path) -> None:
    assert store.maintenance.back_up(target).problems == ()


def backed_up_for_a_repair(store: SqliteStore, target: Path) -> None:
    back_up_for_repair(store.database).rename(target)


def restored_copy(store: SqliteStore, target: Path) -> None:
    """As from a backup that an earlier version made."""
    raw = target.with_suffix(".raw")
    with closing(sqlite3.connect(store.database)) as source:
        source.execute("VACUUM INTO ?", (str(raw),))
    assert b"zqxjv" in raw.read_bytes()
    restore_database(raw, target)
    raw.unlink()


def rescued(store: SqliteStore, target: Path) -> None:
    """The file is deleted while it is open, and written back."""
    store.database.unlink()
    remember_batch(store, memory("new"))
    shutil.copy(store.database, target)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "copied", [restored_copy, rescued, *thorough(backed_up, backed_up_for_a_repair)]
)
def test_a_copy_made_while_a_purge_is_due_holds_no_forgotten_word(
    lab: Lab, tmp_path: Path, copied: Callable[[SqliteStore, Path], None]
) -> None:
    words = ("zqxjv", "kwyz", "secretname")
    told: list[MemoryRecord] = []
    for at in range(200):
        text = f"note {at} of the meadow Zqxjv{at} KwyzSecretName鑫淼{at}"
        room = f"zqxjv-room{at % 3}"
        told.append(memory(f"a{at}", text, session=room, source="kwyz"))
        told.append(memory(f"b{at}", f"note {at} of the harbor"))
    lab.put(*told)
    lab.run_cycle(force=True)
    lab.store.deletion.forget([f"a{at}" for at in range(200)])
    assert lab.store.deletion.purge_due()
    target = tmp_path / "copies" / "copy.db"
    target.parent.mkdir()

    copied(lab.store, target)

    assert files_containing(target.parent, *words) == []
    with closing(sqlite3.connect(target)) as copy:
        dump = "\n".join(all_rows(copy)).casefold()
        assert [word for word in (*words, "鑫淼") if word in dump] == []
        for query, count in (
            ("SELECT count(*) FROM scrub_due", 0),
            ("PRAGMA freelist_count", 0),
            ("SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'harbor'", 200),
        ):
            assert copy.execute(query).fetchone() == (count,), query


@pytest.mark.sqlite
def test_a_backup_with_a_damaged_index_says_that_it_may_hold_forgotten_words(
    store: SqliteStore, tmp_path: Path
) -> None:
    remember_batch(store, memory("1", "zqxjv"), memory("2", "harbor"))
    store.deletion.forget(["1"])
    with closing(sqlite3.connect(store.database, isolation_level=None)) as other:
        other.execute("UPDATE memory_fts_data SET block = x'00' WHERE id > 10")

    report = store.maintenance.back_up(tmp_path / "copy.db")

    assert UNPURGED in report.problems


@pytest.mark.sqlite
def test_copies_beside_the_database_and_in_the_backup_folder_are_named(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    lab.change({"backup.dir": str(elsewhere)})
    folder = lab.store.database.parent
    lab.remember("a", id="1")
    with closing(sqlite3.connect(folder / "other.sqlite")) as copy:
        copy.execute("CREATE TABLE t (x)")
    (folder / "old").mkdir()
    (folder / "old" / "memory.db.gz").write_bytes(b"\x1f\x8b")
    (folder / "notes.txt").write_text("no copy")
    backup = lab.backup().file

    copies = [folder / "old" / "memory.db.gz", folder / "other.sqlite"]
    assert {*lab.forget("1").backups} == {*map(str, copies), backup}


def test_opening_a_memory_rewrites_what_a_crash_left_empty(database: Path) -> None:
    with Memory(database, clock=FakeClock()) as opened:
        for at, word in enumerate(("lake", "zqxjv", "hill")):
            opened.remember(f"note {at} of the {word}", id=f"m{at}")
        opened.sleep(force=True)
    with open_store(database) as store:
        episode = episode_of(store, "m0").id
        store.deletion.forget(["m1"])  # and the process dies here

    with Memory(database, clock=FakeClock()) as opened:
        found = opened.get(episode).episode
        opened.sleep()
        assert files_containing(database.parent, "zqxjv") == []

    assert found
    assert "note 0" in found.content
    assert "note 1" not in found.content


@each_case(
    ("given", "field"),
    [
        ({}, "id"),
        ({"id": "1", "query": "x"}, "id"),
        ({"query": "?!"}, "query"),
        ({"person": "  "}, "person"),
        ({"id": "nobody"}, "id"),
    ],
)
def test_an_invalid_selection_is_refused(
    lab: Lab, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(MnemosynedError) as refused:
        lab.forget(**given)

    assert refused.value.field == field


def test_a_person_is_forgotten_by_the_whole_name_alone(lab: Lab) -> None:
    for id, text in {
        "1": "Mark said so",
        "2": "we marked it; the remark stands",
        "3": "ask mark's brother",
        "4": "Marks and marking",
    }.items():
        lab.remember(text, id=id)
    lab.remember("spoken", role="MARK")
    lab.remember("by the way", metadata={"author": {"name": "Mark"}})

    assert lab.forget(person="mark").memories == 4
    assert sorted(working_ids(lab.store)) == ["2", "4"]


def test_a_project_is_forgotten_and_nothing_of_another(lab: Lab) -> None:
    for name, project in (("codex:1", "x.org/shop"), ("codex:2", "/w/blog")):
        lab.store.agents.keep_session(agent_session(name, project))
    lab.backup()
    lab.remember("We round VAT on each line.", id="shop", session="codex:1")
    lab.remember("Always answer in French.", role="user", session="codex:1", id="rule")
    lab.remember("We deploy by rsync.", id="blog", session="codex:2")
    lab.remember("The ferry leaves at 7:40.", id="note")

    nothing = lab.forget(project="x.org/nobody", dry_run=True)
    assert render(nothing) == "nothing to forget: no memory matches"
    assert lab.forget(project="x.org/nobody").memories == 0
    assert lab.forget(project="/w/blog", session="codex:1").memories == 0
    preview = lab.forget(project="x.org/shop", dry_run=True)
    receipt = lab.forget(project="x.org/shop", mark=preview.mark)

    assert [line.id for line in preview.lines] == ["shop", "rule"]
    assert (receipt.memories, receipt.learnings) == (2, 1)
    assert sorted(working_ids(lab.store)) == ["blog", "note"]
    assert lab.tag(project="/w/blog", tags=["web"]).memories == 1


@pytest.mark.thorough
def test_copies_that_rows_left_in_other_pages_are_gone_too(tmp_path: Path) -> None:
    room, count = "zqxjv-room", 900
    told = [
        Remember(
            f"Zqxjv{at} paid for the bicycle in the yard, and its bell.",
            session=room if at % 3 else "open",
            created_at=NOON - timedelta(days=5) if at % 10 else None,
        )
        for at in range(count)
    ]
    with Memory(tmp_path / "memory.db") as memory:
        memory.remember_many(told)
        memory.sleep()

        receipt = memory.forget(session=room)

        assert (receipt.memories, receipt.complete) == (count * 2 // 3, True)
        assert files_containing(tmp_path, room) == []
        words = [f"Zqxjv{at} " for at in range(count) if at % 3]
        assert files_containing(tmp_path, *words) == []


def test_the_shell_joins_pages_of_previews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LISTED_MAX", 4)
    with Memory(tmp_path / "memory.db") as memory:
        for number in range(10):
            memory.remember(f"ibex {number}", id=f"m{number}")
        request = Forget(query="ibex", dry_run=True)
        first = memory.call(request)
        memory.remember("ibex too late", id="late")

        joined = join_preview_pages(memory, request, first)  # type: ignore[arg-type]

    assert (len(first.lines), first.further) == (4, 6)
    assert [line.id for line in joined.lines] == [f"m{n}" for n in range(10)]
    assert joined.further == 0
