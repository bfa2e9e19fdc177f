"""Summaries of records.

Which rule takes a memory, and the lines of all rules in order. Imported only by a sleep: the
rules take a tenth of the daemon's start.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.commands import RUNS, SHELLS
from mnemosyned.summary.records.commits import COMMITS
from mnemosyned.summary.records.data import JSON, TABLES
from mnemosyned.summary.records.fields import CALENDARS
from mnemosyned.summary.records.lines import (
    TERMS_MAX,
    Reading,
    RecordLine,
    RecordSummary,
    Rule,
)
from mnemosyned.summary.records.logs import LOGS, TRACES
from mnemosyned.summary.records.messages import MAILS, MESSAGES

LINES_MAX = 400
"""Lines of one kind; those worth least are counted in one line at the end."""
LEFT_OVER_WORTH = 0.2
CONTENT_CHARS_MAX = 400_000
"""Longer memories are prose to these rules; extraction cuts them to sentences."""

_SIGN = re.compile(r"[\d:{\[$#<>|]")
"""A sign of which each record of one line has one."""

RULES: tuple[Rule[Any], ...] = (
    MAILS,
    COMMITS,
    RUNS,
    LOGS,
    TRACES,
    JSON,
    CALENDARS,
    SHELLS,
    TABLES,
    MESSAGES,
)
"""Kinds from the most to the least certain; the first that reads a memory takes it."""


def summarize_records(
    memories: Sequence[MemoryRecord], *, zone: tzinfo
) -> RecordSummary:
    """Summarize the memories that are records, and return the others as prose."""
    taken: dict[int, list[Reading[Any]]] = {}
    prose: list[MemoryRecord] = []
    readers = [(index, rule.read) for index, rule in enumerate(RULES)]
    for position, memory in enumerate(memories):
        if not _may_be_record(memory.content):
            prose.append(memory)
            continue
        for index, read in readers:
            value = read(memory)
            if value is not None:
                readings = taken.setdefault(index, [])
                readings.append(Reading(position, memory, value))
                break
        else:
            prose.append(memory)
    lines = [
        line
        for index, readings in taken.items()
        for line in _limited(RULES[index], readings, zone)
    ]
    lines.sort(key=_position)
    return RecordSummary(tuple(lines), tuple(prose))


def _may_be_record(content: str) -> bool:
    """Tell whether any rule may take it: several lines, or a sign that all records have."""
    if len(content) > CONTENT_CHARS_MAX or content.isspace():
        return False
    return "\n" in content or _SIGN.search(content) is not None


def _position(line: RecordLine) -> int:
    return line.position


def _worth(line: RecordLine) -> float:
    return -line.worth


def _limited(
    rule: Rule[Any], readings: Sequence[Reading[Any]], zone: tzinfo
) -> list[RecordLine]:
    """Return the lines of a rule; past the limit those worth least are counted in one."""
    lines = list(rule.write(readings, zone))
    if len(lines) <= LINES_MAX:
        return lines
    ranked = sorted(lines, key=_worth)
    hidden = ranked[LINES_MAX - 1 :]
    terms = dict.fromkeys(term for line in hidden for term in line.index_terms)
    memories = sum(line.memories for line in hidden)
    left_over = RecordLine(
        text=f"There are {memories} more {rule.plural}.",
        index_terms=tuple(terms)[: 4 * TERMS_MAX],
        position=min(map(_position, hidden)),
        worth=LEFT_OVER_WORTH,
        memories=memories,
    )
    return [*ranked[: LINES_MAX - 1], left_over]
