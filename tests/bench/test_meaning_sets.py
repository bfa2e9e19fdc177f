from __future__ import annotations

from bench.bench_endings import load_pairs
from bench.meaning_sets import (
    BROAD_KINDS,
    HALVES,
    load_broad_talks,
    load_questions,
    load_records,
)
from support.cases import each_case

from mnemosyned.text.terms import stems_with_content

QUESTIONS = ("crosslingual", "foreign", "otherwords", "neversaid")
SETS = [(name, half) for name in QUESTIONS for half in HALVES] + [("strangers", "tune")]
RECORDS = {
    str(record.id): record.content
    for file in ("memory", "more", "foreign", "strangers")
    for record in load_records(file)
}


@each_case(("name", "half"), SETS)
def test_every_answer_is_a_record(name: str, half: str) -> None:
    questions = load_questions(name, half)

    named = {id_ for asked in questions for id_ in asked.evidence}

    assert named
    assert named <= RECORDS.keys()


@each_case("half", HALVES)
def test_questions_in_other_words_share_no_content_word_with_their_answer(
    half: str,
) -> None:
    shared = {
        asked.text: both
        for asked in load_questions("otherwords", half)
        for id_ in asked.evidence
        if (both := stems_with_content(asked.text) & stems_with_content(RECORDS[id_]))
    }

    assert not shared


@each_case("name", sorted({name for name, _ in SETS}))
def test_no_question_is_there_twice(name: str) -> None:
    texts = [
        asked.text
        for other, half in SETS
        if other == name
        for asked in load_questions(name, half)
    ]

    assert len(set(texts)) == len(texts)


def test_no_pair_of_sentences_is_there_twice() -> None:
    pairs = [(p.older, p.newer) for half in HALVES for p in load_pairs(half)]

    assert len(set(pairs)) == len(pairs)


@each_case("half", HALVES)
def test_every_language_has_pairs_that_end_and_pairs_that_stay(half: str) -> None:
    pairs = load_pairs(half)

    for language in {pair.language for pair in pairs}:
        kinds = [pair.ends for pair in pairs if pair.language == language]
        assert min(kinds.count(True), kinds.count(False)) >= 15


@each_case("half", HALVES)
def test_long_talks_have_questions_of_every_broad_kind(half: str) -> None:
    messages, questions = load_broad_talks(half)

    talks = {message.source for message in messages}
    asked = [(asked.source, asked.kind) for asked in questions if asked.source]

    assert len(messages) >= 140 * len(talks)
    assert sorted(asked) == sorted(
        (talk, kind) for talk in talks for kind in BROAD_KINDS for _ in range(3)
    )
