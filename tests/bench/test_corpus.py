from __future__ import annotations

import pytest
from bench.corpus import ASK_ALL, COMMON_WORDS, WORDS_ASKED
from bench.databases import year


@pytest.mark.thorough
def test_six_common_words_match_a_tenth_to_a_half_of_a_million_memories() -> None:
    corpus = year(1_000_000)
    sample = [set(words(corpus.content(number))) for number in range(0, 1_000_000, 400)]
    questions = [
        set(words(one.text)) for one in corpus.questions(100, ASK_ALL)[COMMON_WORDS]
    ]

    matched = sorted(
        sum(not said.isdisjoint(asked) for said in sample) / len(sample)
        for asked in questions
    )

    assert {len(asked) for asked in questions} == {WORDS_ASKED}
    assert matched[10] >= 0.10
    assert matched[90] <= 0.50


@pytest.mark.thorough
def test_the_memory_asked_for_has_at_least_five_of_the_six_words() -> None:
    corpus = year(10_000)
    texts = {
        corpus.fact(number).code: corpus.content(number)
        for number in range(0, 10_000, 2)
    }

    for question in corpus.questions(200, ASK_ALL)[COMMON_WORDS]:
        said = set(words(texts[question.code or ""]))
        assert len(said & set(words(question.text))) >= WORDS_ASKED - 1


def words(text: str) -> list[str]:
    return "".join(char if char.isalpha() else " " for char in text.lower()).split()
