"""The values that the rules for records share: what they read and the lines they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Generic, TypeVar

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.wording import index_terms
from mnemosyned.domain.text.matching import grouped

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A line of a summary that stands for records."""

    text: str
    """A whole sentence or a whole record, readable alone."""
    index_terms: tuple[str, ...]
    """Words worth finding it by that the text leaves out."""
    position: int
    """Index of the first memory it stands for."""
    worth: float
    """How much it deserves room, from 0 to 1."""
    memories: int
    """How many memories it stands for."""


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """Lines for the records of a group, and the memories that are prose."""

    lines: tuple[RecordLine, ...]
    prose: tuple[MemoryRecord, ...]


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A memory that a rule took, and what the rule read in it."""

    position: int
    memory: MemoryRecord
    value: T


Writer = Callable[[Sequence[Reading[T]], tzinfo], Iterable[RecordLine]]
"""What makes the lines for the memories that one rule took."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A kind of record: how it is recognized and how a group of it is written."""

    plural: str
    """Its name where lines are left out: "and 14 more commits"."""
    read: Callable[[MemoryRecord], T | None]
    write: Writer[T]


def make_line(
    text: str, source: str, positions: Sequence[int], worth: float
) -> RecordLine:
    """Return the line for the memories at the positions, with words of the source."""
    return RecordLine(
        text=text,
        index_terms=index_terms(source, text),
        position=positions[0],
        worth=worth,
        memories=len(set(positions)),
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence about one memory, before equal sentences are counted."""

    text: str
    worth: float
    source: str
    """Text whose words the sentence may leave out."""


def write_each(
    describe: Callable[[Reading[T], tzinfo], Iterable[Sentence]],
) -> Writer[T]:
    """Return the writer that describes each memory alone and merges equal sentences."""

    def write(readings: Sequence[Reading[T]], zone: tzinfo) -> Iterator[RecordLine]:
        return merge_equal(
            (reading.position, sentence)
            for reading in readings
            for sentence in describe(reading, zone)
        )

    return write


def merge_equal(
    sentences: Iterable[tuple[int, Sentence]],
) -> Iterator[RecordLine]:
    """Write each distinct sentence once; say how often where it repeats."""
    for pairs in grouped(sentences, _text).values():
        sentence = pairs[0][1]
        text = sentence.text
        if len(pairs) > 1:
            text = f"{text.removesuffix('.')} ({len(pairs)} times)."
        positions = [position for position, _ in pairs]
        yield make_line(text, sentence.source, positions, sentence.worth)


def _text(pair: tuple[int, Sentence]) -> str:
    return pair[1].text
