"""What a daemon keeps of the index between two questions: never what is not true any more."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import pytest
from support.fakes import NOON, FakeClock
from support.postgres import open_store
from support.twins import Shown, service_over, shown

from mnemosyned.search import words as frequencies, words as search
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.postgres import postings
from mnemosyned.storage.postgres.postings import AnyOf, Moment, RowCache
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.verbs.memories import EditMemory, Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Undo

pytestmark = pytest.mark.postgres
MEMORIES = 400
KEPT = 250
"""Rows that are kept of a word that every memory has, where a test says so."""
QUESTIONS = ("bell at the mill", "who rang bell 17", "mill gear", "a quiet bell")
WORD = AnyOf((1,), ())


def told(numbers: range, what: str = "rang") -> RememberMany:
    return RememberMany(
        memories=[
            Remember(
                id=f"m{number}",
                content=f"Bell {number} {what} at the mill, gear {number % 7}.",
                session=f"s{number % 5}",
                created_at=NOON - timedelta(days=30, minutes=-number),
            )
            for number in numbers
        ]
    )


@contextmanager
def daemon(dsn: str, clock: FakeClock | None = None) -> Iterator[MemoryService]:
    with open_store(dsn) as store:
        yield service_over(store, clock or FakeClock(), 24)


def store_of(service: MemoryService) -> PostgresStore:
    return cast("PostgresStore", service.store)


def answers(service: MemoryService) -> list[list[Shown]]:
    asked = [Recall(query=text, limit=20) for text in QUESTIONS]
    asked += [Recall(query=text, session=["s2"]) for text in QUESTIONS]
    return [list(map(shown, service.recall(request).hits)) for request in asked]


def sleep(service: MemoryService) -> object:
    return service.sleep(Sleep(force=True))


Change = Callable[[MemoryService], object]
CHANGES: dict[str, Change] = {
    "remember": lambda service: service.remember_many(
        told(range(1_000, 1_030), "was quiet")
    ),
    "sleep again": lambda service: (
        service.remember_many(told(range(2_000, 2_100), "rang")),
        sleep(service),
    ),
    "undo": lambda service: service.call(Undo()),
    "edit": lambda service: service.call(EditMemory(id="m17", text="Now it is quiet.")),
    "put back": lambda service: service.call(Restore(id="m18")),
    "forget": lambda service: [
        service.call(Forget(id=id, now=True)) for id in ("m17", "m399")
    ],
    "sleep": sleep,
    "prune": lambda service: service.call(Prune(keep_days=1, believe_clock=True)),
    "remember many": lambda service: [
        service.remember_many(told(range(first, first + 500), "was quiet"))
        for first in range(3_000, 5_000, 500)
    ],
}
"""What one daemon changes, in an order in which each changes an answer."""
OF_SUMMARIES = ("sleep again", "undo", "edit", "put back", "forget", "prune")
OF_MEMORIES = [name for name in CHANGES if name not in ("sleep again", "undo")]


@pytest.mark.parametrize(
    ("changes", "rows"),
    [(OF_MEMORIES, None), (OF_MEMORIES, KEPT), (OF_SUMMARIES, None)],
    ids=["memories", "memories, the newest rows are kept", "summaries"],
)
def test_the_next_question_sees_what_others_change(
    dsn: str,
    changes: Sequence[str],
    rows: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if rows:
        for module, limit in ((search, "WALKED_MAX"), (frequencies, "SAMPLE")):
            monkeypatch.setattr(module, limit, rows)
    clock = FakeClock()
    with daemon(dsn, clock) as another, daemon(dsn, clock) as mine:
        another.remember_many(told(range(MEMORIES)))
        another.call(Forget(id="m18"))
        if changes is OF_SUMMARIES:
            sleep(another)
        answers(mine)
        for change in changes:
            clock.advance(minutes=1)
            before = answers(mine)  # with what is kept
            CHANGES[change](another)
            # How frequent a word is may be told a little late; here it is asked of the rows kept.
            store_of(mine).maintenance.release_memory(words=True)

            seen = answers(mine)

            with daemon(dsn, clock) as fresh:
                assert seen == answers(fresh), change
            assert seen != before, change
            assert rows is None or rows in rows_kept(mine), change


def test_rows_of_a_common_word_are_kept_for_the_next_question(dsn: str) -> None:
    with daemon(dsn) as service:
        service.remember_many(told(range(MEMORIES)))
        answers(service)
        assert max(rows_kept(service)) == MEMORIES
        service.remember_many(told(range(1_000, 1_030)))
        store_of(service).maintenance.release_memory(words=True)
        answers(service)

        assert max(rows_kept(service)) == MEMORIES + 30


def rows_kept(service: MemoryService) -> list[int]:
    """How many rows a service keeps of each word: no answer of it tells."""
    mine: Any = store_of(service).search
    every = RowCache._all.items()  # noqa: SLF001
    return [len(kept.rows) for (rows, _), kept in every if rows is mine._kept]  # noqa: SLF001


def test_what_was_not_used_for_longest_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{postings.__name__}.NUMBERS_MAX", 1_000)
    kept, at = RowCache(), Moment(0, 900)

    def keep(number: int, rows: int) -> None:
        kept.keep(AnyOf((number,), ()), range(rows, 0, -1), at, is_all=True)

    def has(number: int) -> bool:
        return kept.find(AnyOf((number,), ()), at) is not None

    keep(1, 400)
    keep(2, 400)
    assert has(1)
    keep(3, 400)

    assert (has(2), has(1), has(3)) == (False, True, True)
    # One in the place of another takes its place alone.
    at = Moment(1, 900)
    keep(3, 500)
    assert has(3)
    at = Moment(0, 900)
    assert has(1)


def test_a_question_of_an_older_snapshot_sees_no_rows_of_later_ones() -> None:
    kept = RowCache()
    kept.keep(WORD, range(900, 0, -1), Moment(3, 900), is_all=True)

    older = kept.find(WORD, Moment(3, 850))
    assert older
    assert list(older.rows) == list(range(850, 0, -1))
    assert kept.find(WORD, Moment(2, 850)) is None
    # And takes nothing newer away.
    kept.keep(WORD, range(300, 0, -1), Moment(2, 300), is_all=True)
    newest = kept.find(WORD, Moment(3, 900))
    assert newest
    assert newest.rows == array("q", range(900, 0, -1))


def test_of_a_very_common_word_the_newest_rows_are_kept() -> None:
    kept, at = RowCache(), Moment(0, 900)
    kept.keep(WORD, range(900, 600, -1), at, is_all=False)

    of_now, of_before = kept.find(WORD, at), kept.find(WORD, Moment(0, 890))

    assert of_now
    assert of_now.has_newest(300)
    assert not of_now.has_newest(301)
    assert of_before
    assert of_before.has_newest(290)
    assert not of_before.has_newest(291)
