"""What a question costs, and which memories the store hands to the ranking."""

import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain, combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON, memory, remember_batch

import mnemosyned
from mnemosyned import Memory
from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.search.words import WEIGHTS
from mnemosyned.storage.common import listing
from mnemosyned.storage.sqlite.search import GAP_MIN, STRETCHES_MAX, covering_ranges
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms
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
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY seq")
        return [id for (id,) in rows]


ASKED: dict[str, Callable[[Memory, str, str], object]] = {
    "get": lambda memory, _, episode: memory.get(episode),
    "expand": lambda memory, _, episode: memory.expand(episode),
    "original": lambda memory, original, _: memory.get(original),
    "restore": lambda memory, original, _: memory.restore(original),
    "forget": lambda memory, original, _: memory.forget(original),
    "preview": lambda memory, _, episode: memory.forget(episode, dry_run=True),
    "recall": lambda memory, *_: memory.recall("what did Anna say of number 7?"),
    "keep": lambda memory, *_: memory.remember(
        "Anna says number 7 again", session="s1"
    ),
    "edit": lambda memory, original, _: memory.edit(
        original, text="Ben says 8 at 18:30"
    ),
    "tag": lambda memory, original, _: memory.tag(original, tags=["work"]),
    "history": lambda memory, original, _: memory.get(original, history=True),
    "list-tagged": lambda memory, *_: memory.list(tag="work"),
    "recall-tagged": lambda memory, *_: memory.recall("what did Anna say?", tag="work"),
    "list-by-id": lambda memory, original, _: memory.list(
        id_prefix=original[:20].lower()
    ),
    "list": lambda memory, *_: memory.list(limit=2),
    "list-oldest": lambda memory, *_: memory.list(limit=2, order="oldest", role="Anna"),
    "list-session": lambda memory, *_: memory.list(
        session="s1", since=LONG_AGO, history=True
    ),
    "list-pinned": lambda memory, *_: memory.list(source="notes", pinned=True),
    "list-days": lambda memory, *_: memory.list(level="day"),
    "compact": lambda memory, *_: memory.compact(
        [{"role": "user", "content": "Anna went home."}] * 9
    ),
}
"""Calls of verbs, with a memory, the id of an original and that of an episode."""


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_no_verb_reads_a_whole_table_for_one_memory(
    filled: Path,
    tmp_path: Path,
    seen: list[str],
    ask: Callable[[Memory, str, str], object],
) -> None:
    database = Path(shutil.copy(filled, tmp_path / "memory.db"))
    with Memory(database) as memory:
        original = ids(database, "archive")[4]
        episode = ids(database, "episodic_memory")[0]
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


# Which memories the store hands to the ranking, against a plain look at every one of them.


COMMON = {"amber": 0.005, "birch": 0.03, "cobalt": 0.1, "delta": 0.4, "ember": 0.7}
"""Words, and the share of all texts that have each."""
QUESTIONS = [*chain.from_iterable(combinations(COMMON, count) for count in range(1, 6))]


@pytest.fixture
def texts(store: SqliteStore) -> dict[int, str]:
    """Memories by their position in the store, no two alike, nor alike but for figures."""
    rng = Random(3)
    texts = {}
    for at in range(400):
        words = [word for word, share in COMMON.items() if rng.random() < share]
        texts[at + 1] = " ".join([*words, _name(at)])
    told = (
        memory(str(at), text, session=f"talk {at % 7}", source=f"app {at % 2}")
        for at, text in texts.items()
    )
    remember_batch(store, *told)
    return texts


def _name(at: int) -> str:
    """A word of letters for each number."""
    return "note" + "".join(chr(ord("a") + int(figure)) for figure in str(at))


def found(
    store: SqliteStore,
    *words: str,
    limit: int,
    **where: Any,  # noqa: ANN401
) -> SearchCandidates:
    return store.search.candidates(
        Query(terms=parse_terms(" ".join(words)), limit=limit, **where)
    )


def left(worths: Mapping[int, float], whole: float, limit: int) -> set[int]:
    """What there is room for: the rule, applied to all memories with any of the words."""
    ranked = sorted(((worth, at) for at, worth in worths.items()), reverse=True)
    most = ranked[0][0]
    kept = (2 if most == pytest.approx(whole) else 4) * limit
    return {
        position
        for place, (worth, position) in enumerate(ranked[: WEIGHTS.min_total])
        if place < limit or worth >= most / 2 or (place < kept and worth >= most / 4)
    }


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_the_candidates_are_those_that_a_look_at_every_memory_would_leave(
    store: SqliteStore, texts: Mapping[int, str], limit: int
) -> None:
    for words in QUESTIONS:
        answer = found(store, *words, limit=limit)
        idf = {word: answer.corpus.idf(word) for word in words}
        worths = {
            at: round(sum(idf[word] for word in idf if word in text.split()), 9)
            for at, text in texts.items()
            if not idf.keys().isdisjoint(text.split())
        }

        expected = left(worths, sum(idf.values()), limit)

        matched = {
            match.position: match.score for match in answer.memories if match.score
        }
        rounded = {at: round(worth, 9) for at, worth in matched.items()}
        assert rounded == {at: worths[at] for at in expected}, words
        assert found(store, *words, limit=limit) == answer


@pytest.mark.thorough
@pytest.mark.usefixtures("texts")
@each_case(
    "where",
    [
        {"sessions": ("talk 3",)},
        {"sessions": ("talk 1", "talk 2")},
        {"sessions": ("talk 5",), "sources": ("app 1",)},
        {"sessions": ("talk 5",), "tier": Tier.WORKING},
        {"sessions": ("talk 5",), "tier": Tier.ARCHIVE},
        {"sessions": ("talk 5",), "since": NOON},
        {"sessions": ("nobody",)},
    ],
)
def test_rows_named_beforehand_narrow_as_the_filters_do(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]
) -> None:
    named = [found(store, *words, limit=5, **where) for words in QUESTIONS]

    with monkeypatch.context() as patch:
        patch.setattr(listing, "FEW_MAX", -1)
        again = [found(store, *words, limit=5, **where) for words in QUESTIONS]

    assert again == named


@given(st.sets(st.integers(1, 60_000), min_size=1, max_size=60))
def test_few_stretches_hold_all_rows_and_leave_out_the_widest_gaps(
    rows: set[int],
) -> None:
    ordered = sorted(rows)

    found = covering_ranges(ordered)

    assert len(found) <= STRETCHES_MAX
    assert all(any(first <= row <= last for first, last in found) for row in rows)
    gaps = [after - last for (_, last), (after, _) in pairwise(found)]
    inside = [
        later - row
        for first, last in found
        for row, later in pairwise(at for at in ordered if first <= at <= last)
    ]
    assert min(gaps, default=GAP_MIN) >= GAP_MIN
    if len(found) < STRETCHES_MAX:
        assert max(inside, default=0) < GAP_MIN
    else:
        assert max(inside, default=0) <= min(gaps)
