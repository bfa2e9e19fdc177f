"""An extract in a small model's words, never with less in it than the extract."""

from __future__ import annotations

from datetime import UTC, datetime

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.retelling import (
    Retelling,
    find_speakers,
    find_spoken_name,
    is_worth_asking,
    retell,
    split_passages,
)
from mnemosyned.summary.grounding.claims import SalvagedClaim, salvage_claims

WHEN = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
LINES = (
    "Ana: I ran a charity race yesterday (7 May 2023).",
    "Ben: I'm keen on pottery - I'd love to sell bowls.",
    "Ben: The kiln arrived on Monday.",
)


def memory(role: str, content: str) -> MemoryRecord:
    return MemoryRecord(id=content[:9], content=content, role=role, created_at=WHEN)


TALK = [
    memory("Ana", "Hi Ben! I ran a charity race yesterday."),
    memory(
        "Ben",
        "I'm keen on pottery - I'd love to sell bowls. The kiln arrived on Monday.",
    ),
]


def retold(*answers: tuple[int, str], chars_max: int = 1_000) -> Retelling:
    parts = split_passages(TALK, LINES, UTC)
    kept: dict[int, SalvagedClaim] = {}
    for at, answer in answers:
        speakers = find_speakers(parts[at], TALK)
        assert speakers
        kept.update(
            (at, one) for one in salvage_claims(answer, [parts[at].original], speakers)
        )
    return retell(parts, kept, chars_max=chars_max, zone=UTC)


def test_an_extract_is_taken_apart_into_who_said_what_in_their_own_words() -> None:
    parts = split_passages(TALK, LINES, UTC)

    assert [(part.role, part.original) for part in parts] == [
        ("Ana", "I ran a charity race yesterday."),
        ("Ben", "I'm keen on pottery - I'd love to sell bowls."),
        ("Ben", "The kiln arrived on Monday."),
    ]
    assert [is_worth_asking(part) for part in parts] == [True, True, False]


def test_without_a_grounded_sentence_the_lines_are_those_of_the_rules() -> None:
    result = retold((0, "Ana said that she won the race."))

    assert result == Retelling(LINES, 0.0, 0)


def test_a_sentence_takes_the_place_of_its_source_with_the_day_it_meant() -> None:
    result = retold((0, "Ana said that she ran a charity race yesterday."))

    assert result.lines == (
        "Ana ran a charity race yesterday (7 May 2023).",
        *LINES[1:],
    )
    assert result.sentences == 1
    assert 0.2 < result.model_share < 0.4


def test_what_the_model_leaves_out_is_quoted_by_rule() -> None:
    result = retold((1, "Ben said that he's keen on pottery."))

    assert result.lines == (
        LINES[0],
        "Ben is keen on pottery.",
        "Ben: I'd love to sell bowls.",
        LINES[2],
    )


def test_a_sentence_that_loses_a_word_to_find_it_by_is_not_used() -> None:
    assert retold((0, "Ana said that she ran yesterday.")).sentences == 0


def test_the_limit_of_the_extract_holds() -> None:
    size = sum(map(len, LINES)) + len(LINES) - 1
    answer = (1, "Ben said that he's keen on pottery.")

    assert retold(answer, chars_max=size + 40).sentences == 1
    assert retold(answer, chars_max=size).lines == LINES


def test_a_speaker_whom_the_model_calls_he_and_she_keeps_the_words_of_the_rules() -> (
    None
):
    talk = [memory("Sam", "I sold my bike. I sold my car to my aunt.")]
    parts = split_passages(talk, ["I sold my bike.", "I sold my car to my aunt."], UTC)
    kept = {
        0: SalvagedClaim("Sam sold his bike.", 0, 18, "he"),
        1: SalvagedClaim("Sam sold her car to her aunt.", 0, 29, "she"),
    }

    assert retell(parts, kept, chars_max=999, zone=UTC).sentences == 0


def test_a_role_is_named_as_a_person_would_name_it() -> None:
    assert [find_spoken_name(role) for role in ("Ana", "user", "tool", "", "CI")] == [
        "Ana", "The user", "", "", "",
    ]  # fmt: skip
