"""Endings: which statement of an older memory a newer one ended, and why; their store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mnemosyned.memory.values import EndedStatement, Learning, MemoryRecord
from mnemosyned.text.endings.clauses import leave_out_clauses, locate_clauses
from mnemosyned.text.endings.statements import list_sentences

EndedOf = Callable[[Sequence[str]], Mapping[str, Sequence[EndedStatement]]]
"""Returns the ended statements of memories, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingRecord:
    """A stored ending, without any words: once both memories are forgotten, it says nothing about them."""

    older: str
    """The id of the memory that has the ended statement."""
    newer: str
    """The id of the memory that ended it."""
    reason: str
    """The kind of the cue, as in `text.endings`."""
    older_place: int
    """The number of the ended sentence in its memory, from 0."""
    newer_place: int
    """The number of the sentence that ended it, in its own memory."""
    found_at: datetime
    undone: bool = False
    """Whether a person said that the older statement still applies."""
    older_start: int = 0
    """Where the ended clause begins in its sentence."""
    older_end: int = 0
    """Where the ended clause ends in its sentence; 0 if the whole sentence is ended."""
    agreed: str = ""
    """The id of the other memory of an agreement, if one ended the statement: of its proposal or answer."""

    @property
    def involved(self) -> frozenset[str]:
        """The ids of all memories without any of which the statement has not ended."""
        return frozenset((self.older, self.newer, self.agreed)) - {""}


def join_ended_clauses(ended: Sequence[EndedStatement]) -> tuple[EndedStatement, ...]:
    """Return ended statements of a memory, with the whole sentence as ended if all its clauses are.

    The clauses of a sentence that is ended as a whole are left out.
    """
    clauses: dict[str, list[str]] = {each.sentence: [] for each in ended if each.clause}
    if not clauses:
        return tuple(ended)
    for each in ended:
        clauses.get(each.sentence, []).append(each.clause)
    joined = []
    for each in ended:
        parts = clauses.get(each.sentence, [])
        if each.clause and "" in parts:
            continue
        is_over = bool(each.clause) and leave_out_clauses(each.sentence, parts) == ""
        joined.append(replace(each, clause="") if is_over else each)
    return tuple(joined)


PART_WORDS_SHARE = 1.5
"""Words of a text, as a multiple of an ended sentence's, from which the sentence is a part of the text."""


def find_parts(text: str, ended: Sequence[EndedStatement]) -> list[EndedStatement]:
    """Return ended statements of a text, with an ended sentence as a clause if the text says much more."""
    size = len(text.split())
    return [
        replace(each, clause=each.sentence)
        if not each.clause and size >= PART_WORDS_SHARE * len(each.sentence.split())
        else each
        for each in ended
    ]


def find_ended_in(
    learnings: Iterable[Learning], ended_of: EndedOf
) -> dict[str, list[EndedStatement]]:
    """Return {learning id: ended statements of its memory that its text has}, without other learnings."""
    said = {each.id: each for each in learnings if each.memory}
    ended = ended_of([each.memory or "" for each in said.values()]) if said else {}
    found: dict[str, list[EndedStatement]] = {}
    for id, learning in said.items():
        statements = ended.get(learning.memory or "", ())
        for *_, words in locate_clauses(
            learning.text, [each.words for each in statements]
        ):
            each = next(each for each in statements if each.words == words)
            found.setdefault(id, []).append(each)
    return found


def mark_ended_clauses(text: str, ended: Sequence[EndedStatement]) -> str:
    """Return a text with each `ended` clause marked: "We moved (until 3 March 2026: it is in Oslo)".

    The mark of a clause at the beginning follows it, "It is in Oslo (until 3 March 2026)": a summary would take
    a parenthesis there for a label. The statement that replaced a clause is not named: its memory may be
    forgotten.
    """
    by_clause = {each.clause: each for each in ended}
    for start, end, clause in reversed(locate_clauses(text, by_clause)):
        before, words, after = text[:start], text[start:end], text[end:]
        until = f"(until {by_clause[clause].until}"
        if before.endswith(f"{until}: ") or after.startswith(f" {until})"):
            continue  # as in a learning, which is marked already
        words = f"{until}: {words})" if before else f"{words} {until})"
        text = f"{before}{words}{after}"
    return text


def remove_ended_sentences(
    memories: Sequence[MemoryRecord], ended: Mapping[str, Sequence[EndedStatement]]
) -> list[MemoryRecord]:
    """Return the memories without their `ended` sentences; leave out memories without other sentences.

    An ended clause is left out, or marked if the rest of its sentence needs it.
    """
    current: list[MemoryRecord] = []
    for memory in memories:
        statements = ended.get(memory.id, ())
        if not statements:
            current.append(memory)
            continue
        left: list[str] = []
        for text in list_sentences(memory.content):
            of_text = [each for each in statements if each.sentence == text]
            if all(each.clause for each in of_text):
                rest = leave_out_clauses(text, [each.clause for each in of_text])
                marked = mark_ended_clauses(text, of_text)
                left.append(rest or marked)
        if left:
            current.append(replace(memory, content=" ".join(left)))
    return current
