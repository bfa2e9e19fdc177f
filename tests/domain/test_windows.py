from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.summarizer import split_to_fit

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def group(*contents: str) -> list[MemoryRecord]:
    return [
        MemoryRecord(
            id=str(at),
            content=text,
            role="user",
            created_at=NOON + timedelta(minutes=at),
        )
        for at, text in enumerate(contents)
    ]


def words(piece: MemoryRecord) -> int:
    return len(piece.content.split()) + 1


def characters(piece: MemoryRecord) -> int:
    return len(piece.content) + 3


def said(found: list[list[MemoryRecord]], memories: list[MemoryRecord]) -> list[str]:
    """What the parts hold of each memory, without blanks."""
    pieces = [piece for part in found for piece in part]
    return [
        "".join(piece.content for piece in pieces if piece.id == memory.id)
        for memory in memories
    ]


def texts(found: list[list[MemoryRecord]]) -> list[list[str]]:
    return [[piece.content for piece in part] for part in found]


def test_a_group_that_fits_is_one_part() -> None:
    memories = group("one two", "three four")

    assert split_to_fit(memories, count_tokens=words, tokens_max=6) == [memories]


def test_a_larger_group_is_split_between_memories_in_their_order() -> None:
    memories = group("one two", "three four", "five six", "seven eight")

    found = split_to_fit(memories, count_tokens=words, tokens_max=7)

    assert texts(found) == [["one two", "three four"], ["five six", "seven eight"]]


def test_parts_are_of_like_size() -> None:
    found = split_to_fit(group(*["a b c"] * 11), count_tokens=words, tokens_max=40)

    assert [len(part) for part in found] == [6, 5]


def test_a_memory_longer_than_a_part_is_split_between_sentences() -> None:
    found = split_to_fit(
        group("The first is here. The second is there. And a third."),
        count_tokens=words,
        tokens_max=10,
    )

    assert texts(found) == [
        ["The first is here. The second is there."],
        ["And a third."],
    ]


def test_a_sentence_longer_than_a_part_is_split_between_words() -> None:
    found = split_to_fit(
        group("one two three four five"), count_tokens=words, tokens_max=4
    )

    assert texts(found) == [["one two three"], ["four five"]]


def test_a_word_longer_than_a_part_is_split_between_characters() -> None:
    found = split_to_fit(group("x" * 25), count_tokens=characters, tokens_max=13)

    assert texts(found) == [["x" * 10], ["x" * 10], ["x" * 5]]


def test_an_accent_stays_with_its_letter() -> None:
    found = split_to_fit(group("e\u0301" * 6), count_tokens=characters, tokens_max=8)

    assert all(piece.content.startswith("e") for part in found for piece in part)


def test_a_piece_keeps_the_time_and_role_of_its_memory() -> None:
    (memory,) = group("one two three four five")

    found = split_to_fit([memory], count_tokens=words, tokens_max=3)

    assert {
        (piece.id, piece.created_at, piece.role) for part in found for piece in part
    } == {(memory.id, memory.created_at, memory.role)}


def test_a_window_too_small_for_anything_still_drops_nothing() -> None:
    memories = group("abc", "")

    found = split_to_fit(memories, count_tokens=characters, tokens_max=0)

    assert said(found, memories) == ["abc", ""]


def test_no_memories_make_no_parts() -> None:
    assert split_to_fit([], count_tokens=words, tokens_max=5) == []


@given(
    contents=st.lists(st.text(max_size=80), max_size=8),
    tokens_max=st.integers(min_value=4, max_value=60),
)
def test_every_memory_is_covered_in_order_and_every_part_fits(
    contents: list[str], tokens_max: int
) -> None:
    memories = group(*contents)

    found = split_to_fit(memories, count_tokens=characters, tokens_max=tokens_max)

    kept = ["".join(text.split()) for text in said(found, memories)]
    assert kept == ["".join(text.split()) for text in contents]
    order = [int(piece.id) for part in found for piece in part]
    assert order == sorted(order)
    assert set(order) == set(range(len(contents)))
    assert all(sum(map(characters, part)) <= tokens_max for part in found)
