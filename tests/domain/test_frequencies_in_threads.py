"""Frequencies of words are asked for by all threads of a daemon."""

import gc
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemosyned.search.words import (
    FREQUENCIES_KEPT_MAX,
    Forms,
    Frequencies,
    Having,
    WordRows,
)
from mnemosyned.text.terms import parse_terms

QUESTIONS = 300
THREADS = 4


class SameRows(WordRows):
    """An index that has the same rows for every word."""

    is_filtered = False
    rows_if_few = None

    def __init__(self, *rows: int) -> None:
        self._rows = rows
        self.asked = 0

    @property
    def last(self) -> int:
        return 0

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        del having
        self.asked += 1
        return self._rows[:limit]

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        return rows

    def prefetch(self, asked: Iterable[tuple[Forms, int]]) -> None:
        del asked


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    """Threads change often, also where memory is reclaimed: a finalizer may run Python there."""
    before, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(_let_others_run)
    gc.set_threshold(10)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
    gc.set_threshold(*threshold)
    gc.callbacks.remove(_let_others_run)


def _let_others_run(phase: str, info: object) -> None:
    del phase, info
    time.sleep(0)


@pytest.mark.usefixtures("often_interrupted")
def test_words_are_dropped_while_other_threads_add_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemosyned.search.words.FREQUENCIES_KEPT_MAX", 5)
    frequencies = Frequencies()

    def ask(thread: int) -> None:
        for number in range(QUESTIONS):
            words = parse_terms(f"lamp{thread} bell{number} mill{thread}x{number}")
            version = f"{thread}-{number}"
            corpus, _ = frequencies.look_up(SameRows(), words, 1_000, version=version)
            assert set(corpus.frequencies.values()) == {0}

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(ask, range(THREADS)))


def test_words_that_are_found_and_missing_share_one_limit() -> None:
    frequencies = Frequencies()
    found, missing = SameRows(1), SameRows()
    frequencies.look_up(found, parse_terms("lamp"), 1_000)
    for number in range(FREQUENCIES_KEPT_MAX // 2):
        frequencies.look_up(found, parse_terms(f"oak{number}"), 1_000)
        frequencies.look_up(missing, parse_terms(f"elm{number}"), 1_000)
    asked = found.asked

    frequencies.look_up(found, parse_terms("lamp"), 1_000)

    assert found.asked > asked
