from collections.abc import Callable
from functools import partial

from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import said_in_turn

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.summarizer import split_to_fit

group = partial(said_in_turn, role="user")


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


@each_case(("contents", "count", "tokens_max", "parts"), [
    ((), words, 5, []),
    (("one two", "three four"), words, 6, [["one two", "three four"]]),
    (("one two", "three four", "five six", "seven eight"), words, 7,
     [["one two", "three four"], ["five six", "seven eight"]]),
    (("a b c",) * 11, words, 40, [["a b c"] * 6, ["a b c"] * 5]),
    (("The first is here. The second is there. And a third.",), words, 10,
     [["The first is here. The second is there."], ["And a third."]]),
    (("one two three four five",), words, 4, [["one two three"], ["four five"]]),
    (("x" * 25,), characters, 13, [["x" * 10], ["x" * 10], ["x" * 5]]),
])  # fmt: skip
def test_a_group_is_split_between_memories_sentences_words_or_characters(
    contents: tuple[str, ...],
    count: Callable[[MemoryRecord], int],
    tokens_max: int,
    parts: list[list[str]],
) -> None:
    """At the first of these places that fits, into parts of like size."""
    found = split_to_fit(group(*contents), count_tokens=count, tokens_max=tokens_max)

    assert texts(found) == parts


def test_an_accent_stays_with_its_letter_and_nothing_is_dropped() -> None:
    found = split_to_fit(group("e\u0301" * 6), count_tokens=characters, tokens_max=8)
    tiny = split_to_fit(group("abc", ""), count_tokens=characters, tokens_max=0)

    assert all(piece.content.startswith("e") for part in found for piece in part)
    assert said(tiny, group("abc", "")) == ["abc", ""]


@given(
    contents=st.lists(st.text(max_size=80), max_size=8),
    tokens_max=st.integers(min_value=4, max_value=60),
)
def test_each_part_fits_and_none_is_lost(contents: list[str], tokens_max: int) -> None:
    memories = group(*contents)

    found = split_to_fit(memories, count_tokens=characters, tokens_max=tokens_max)

    kept = ["".join(text.split()) for text in said(found, memories)]
    assert kept == ["".join(text.split()) for text in contents]
    pieces = [piece for part in found for piece in part]
    order = [int(piece.id) for piece in pieces]
    assert order == sorted(order)
    origins = {(piece.id, piece.created_at, piece.role) for piece in pieces}
    assert origins == {(one.id, one.created_at, one.role) for one in memories}
    assert all(sum(map(characters, part)) <= tokens_max for part in found)
