"""Questions about long technical talks are answered better than by plain BM25, in every kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.datasets.technical_talks import KINDS, load_talks
from support.talk_recall import (
    EVERYTHING,
    SCOPES,
    memories_of,
    plain_search,
    product_search,
    questions_of,
    shares,
)

from mnemosyned.assembly.embedded import Memory

TALKS = load_talks()
QUESTIONS = questions_of(TALKS)
LEAST = {
    ("within", "before"): 0.74,
    ("all ten", "before"): 0.54,
    ("within", "after"): 0.8,
    ("all ten", "after"): 0.6,
}
"""Shares of answered questions, by scope and stage, with a margin of some questions."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    database = tmp_path_factory.mktemp("talks") / Path("memory.db")
    with Memory(database, wm_max=1_000_000, auto_sleep=False) as opened:
        opened.remember_many(memories_of(TALKS))
        yield opened


@pytest.fixture(scope="module")
def before(memory: Memory) -> Mapping[str, Mapping[str, float]]:
    search = product_search(memory)
    return {scope: shares(search, QUESTIONS, scope) for scope in SCOPES}


@pytest.fixture(scope="module")
def after(
    memory: Memory, before: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Mapping[str, float]]:
    assert before
    memory.sleep(force=True)
    search = product_search(memory)
    return {scope: shares(search, QUESTIONS, scope) for scope in SCOPES}


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES)
def test_long_talks_are_searched_better_than_by_plain_bm25(
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    scope: str,
) -> None:
    plain = shares(plain_search(TALKS), QUESTIONS, scope)

    assert before[scope][EVERYTHING] >= max(
        LEAST[scope, "before"], plain[EVERYTHING] + 0.08
    )
    assert after[scope][EVERYTHING] >= LEAST[scope, "after"]
    for kind in KINDS:
        assert before[scope][kind] >= plain[kind], kind
        assert after[scope][kind] >= plain[kind], kind
