"""Summaries read for a roll-up: their lines without days, and who says what in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from mnemosyned.domain.dates.names import MONTH_NAMES, WEEKDAY_ABBREVIATIONS
from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.sleep.rollup import Level
from mnemosyned.domain.summary.clauses import shortened
from mnemosyned.domain.summary.statements import is_first_person
from mnemosyned.domain.text.tokenizer import tokens

SPEAKERS = frozenset(
    "user assistant system tool agent human ai bot ci calendar notes note mail shell ops".split()
)
"""Speakers that are recognized at the first line of theirs."""
FIRST_WORDS = 8
"""Words of a line in which the first person is looked for."""
_SPEAKER = re.compile(r"(?:^|(?<=[.!?;…。！？\"”)] ))([^\s:][^:.!?;\n]{0,40}): (?=\S)")
_WEEKDAYS = "|".join(WEEKDAY_ABBREVIATIONS)
_MONTHS = "|".join(MONTH_NAMES)
_LABEL = re.compile(
    rf"(?:(?:{_WEEKDAYS}) \d{{1,2}} (?:{_MONTHS})|\d{{1,2}}(?: (?:{_MONTHS}))?–\d{{1,2}} (?:{_MONTHS})): "
)
"""The days before a line of a week or a month."""


def label_of(level: Level, begins: datetime) -> str:
    """Return the days that a line of a week or a month begins with, without the year."""
    first = in_zone(begins, UTC)
    month = MONTH_NAMES[first.month - 1]
    if level is Level.WEEK:
        return f"{WEEKDAY_ABBREVIATIONS[first.weekday()]} {first.day} {month}: "
    if level is not Level.MONTH:
        return ""
    last = shift(first, timedelta(days=6))
    if last.month == first.month:
        return f"{first.day}–{last.day} {month}: "
    return f"{first.day} {month}–{last.day} {MONTH_NAMES[last.month - 1]}: "


def speeches(
    texts: Sequence[tuple[str, datetime]], *, chars_max: int
) -> tuple[list[tuple[int, MemoryRecord]], frozenset[str]]:
    """Return what is said in texts, each with its time, and by whom.

    Each speech is a memory, with the position of its text. Of each text so many characters are read.
    """
    lines = [
        (position, without_label(line))
        for position, (text, _) in enumerate(texts)
        for line in _first_lines(text, chars_max)
    ]
    speakers = _speakers(line for _, line in lines)
    said = [
        (position, speech)
        for position, line in lines
        for speech in _speeches(line, texts[position][1], speakers)
    ]
    return said, speakers


def without_label(line: str) -> str:
    """Return a line without the days before it."""
    label = _LABEL.match(line)
    return line[label.end() :] if label else line


def _first_lines(text: str, chars_max: int) -> list[str]:
    """Return the lines within so many characters, of the first at least a beginning."""
    if len(text) <= chars_max:
        return text.splitlines()
    head = text[: chars_max + 1]
    line_end = head.rfind("\n")
    if line_end > 0:
        return head[:line_end].splitlines()
    return [shortened(head, chars_max) or f"{head[: head.rfind(' ')]}…"]


def _speakers(texts: Iterable[str]) -> frozenset[str]:
    """Return who speaks: a name before two lines, or before words in the first person."""
    begun: Counter[str] = Counter()
    for text in texts:
        for speaker in _SPEAKER.finditer(text):
            words = text[speaker.end() :].split(maxsplit=FIRST_WORDS)[:FIRST_WORDS]
            own = speaker[1] in SPEAKERS or is_first_person(tokens(" ".join(words)))
            begun[speaker[1]] += 2 if own else 1
    return frozenset(name for name, count in begun.items() if count > 1)


def _speeches(
    text: str, said: datetime, speakers: frozenset[str]
) -> Iterator[MemoryRecord]:
    """Yield what each speaker of a line says, as a memory of theirs."""
    begins, role = 0, ""
    for speaker in _SPEAKER.finditer(text):
        if speaker[1] in speakers:
            if before := text[begins : speaker.start()].strip():
                yield MemoryRecord(id="", content=before, role=role, created_at=said)
            begins, role = speaker.end(), speaker[1]
    yield MemoryRecord(id="", content=text[begins:], role=role, created_at=said)
