"""The values that the rules for records share: what they read and the lines they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Generic, TypeVar

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.wording import index_terms

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


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A kind of record: how it is recognized and how a group of it is written."""

    plural: str
    """Its name where lines are left out: "and 14 more commits"."""
    read: Callable[[MemoryRecord], T | None]
    write: Callable[[Sequence[Reading[T]], tzinfo], Iterable[RecordLine]]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is to be said of one memory, before equal sentences are counted."""

    text: str
    worth: float
    source: str
    """Text whose words the sentence may leave out."""


def merge_equal(
    sentences: Iterable[tuple[int, Sentence]],
) -> Iterator[RecordLine]:
    """Write each distinct sentence once; say how often where it repeats."""
    positions: dict[str, list[int]] = {}
    first: dict[str, Sentence] = {}
    for position, sentence in sentences:
        positions.setdefault(sentence.text, []).append(position)
        first.setdefault(sentence.text, sentence)
    for text, found in positions.items():
        sentence = first[text]
        shown = text
        if len(found) > 1:
            shown = f"{text.removesuffix('.')} ({len(found)} times)."
        yield RecordLine(
            text=shown,
            index_terms=index_terms(sentence.source, shown),
            position=found[0],
            worth=sentence.worth,
            memories=len(set(found)),
        )
