"""Frequencies of words are asked for by all threads of a daemon."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.domain.search.words.index import Forms, Having, WordRows
from mnemosyned.domain.text.terms import terms

QUESTIONS = 1_500
THREADS = 4


class NoRows(WordRows):
    """An index that has no word."""

    @property
    def is_filtered(self) -> bool:
        return False

    @property
    def few(self) -> Sequence[int] | None:
        return None

    @property
    def last(self) -> int:
        return 0

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        del having, limit
        return ()

    def passing(self, rows: Sequence[int]) -> Collection[int]:
        return rows

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        del asked


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_interrupted")
def test_words_are_dropped_while_other_threads_add_some() -> None:
    frequencies = Frequencies()

    def ask(thread: int) -> None:
        for number in range(QUESTIONS):
            frequencies.follow(f"{thread}-{number}")
            words = terms(f"lamp{thread} bell{number} mill{thread}x{number}")
            corpus, _ = frequencies.of(NoRows(), words, 1_000)
            assert set(corpus.frequencies.values()) == {0}

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(ask, range(THREADS)))
