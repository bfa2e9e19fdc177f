"""Summaries of records: the rule that takes each memory, and the lines of all rules in order.

Imported only by a sleep: the rules take a tenth of the daemon's start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Any

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.commands import RUNS, SHELLS
from mnemosyned.summary.records.commits import COMMITS
from mnemosyned.summary.records.data import JSON, TABLES
from mnemosyned.summary.records.fields import CALENDARS
from mnemosyned.summary.records.lines import (
    TERMS_MAX,
    RecordLine,
    RecordReading,
    RecordRule,
    RecordSummary,
)
from mnemosyned.summary.records.logs import LOGS, TRACES
from mnemosyned.summary.records.messages import MAILS, MESSAGES

LINES_MAX = 400
"""Maximum lines of one kind; the lines worth least are counted in one."""
LEFT_OVER_WORTH = 0.2
CONTENT_CHARS_MAX = 400_000
"""Longer memories are prose to these rules; extraction cuts them to sentences."""

_SIGN = re.compile(r"[\d:{\[$#<>|]")
"""Characters of which each record of one line has at least one."""

RULES: tuple[RecordRule[Any], ...] = (
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
"""Kinds from the most to the least certain; the first whose `read` accepts a memory takes it."""


def summarize_records(
    memories: Sequence[MemoryRecord], *, zone: tzinfo
) -> RecordSummary:
    """Return lines about the memories that are records, and the rest of the memories, all prose.

    Lines are in the order of their first memories. `zone` is for reading and showing times.
    """
    readings: dict[int, list[RecordReading[Any]]] = {}
    prose: list[MemoryRecord] = []
    for position, memory in enumerate(memories):
        for index, rule in enumerate(RULES if _may_be_record(memory.content) else ()):
            if (value := rule.read(memory, zone)) is not None:
                reading = RecordReading(position, memory, value)
                readings.setdefault(index, []).append(reading)
                break
        else:
            prose.append(memory)
    lines = [
        line
        for index, taken in readings.items()
        for line in _limit_lines(RULES[index].plural, RULES[index].write(taken, zone))
    ]
    lines.sort(key=lambda line: line.position)
    return RecordSummary(tuple(lines), tuple(prose))


def _may_be_record(content: str) -> bool:
    """Return True if a memory may be a record: it has several lines, digits or certain signs."""
    if len(content) > CONTENT_CHARS_MAX or content.isspace():
        return False
    return "\n" in content or _SIGN.search(content) is not None


def _limit_lines(plural: str, written: Iterable[RecordLine]) -> list[RecordLine]:
    """Return the lines of one kind of record, at most `LINES_MAX`, the rest counted in the last.

    Those worth least are counted, with the noun `plural`.
    """
    lines = list(written)
    if len(lines) <= LINES_MAX:
        return lines
    ranked = sorted(lines, key=lambda line: -line.worth)
    hidden = ranked[LINES_MAX - 1 :]
    terms = dict.fromkeys(term for line in hidden for term in line.index_terms)
    memories = sum(line.memories for line in hidden)
    left_over = RecordLine(
        text=f"There are {memories} more {plural}.",
        index_terms=tuple(terms)[: 4 * TERMS_MAX],
        position=min(line.position for line in hidden),
        worth=LEFT_OVER_WORTH,
        memories=memories,
    )
    return [*ranked[: LINES_MAX - 1], left_over]
