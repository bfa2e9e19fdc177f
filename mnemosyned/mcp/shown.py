"""Memories as lines and parts that fit a client's output limit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import accumulate
from typing import TypeVar

import msgspec

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.search.results import Hit, Line
from mnemosyned.domain.text.frames import neutralize, neutralize_line, neutralize_tags
from mnemosyned.domain.text.token_estimate import TokenEstimator
from mnemosyned.mcp.forms import HitLine, Part, Quotation
from mnemosyned.verbs.times import read_given

T = TypeVar("T")

RESULT_BYTES_MAX = 7_500
"""Bytes of a result as JSON. Codex cuts what is longer than 10 KiB, others later."""
OVERHEAD_BYTES = 900
"""Bytes of a result besides its lines: ids, dates, notes."""
LINE_CHARS_MAX = 240
MATCHING_CHARS_MAX = 160
MATCHING_MAX = 2
"""Originals shown below the hit of a summary."""
PART_BYTES_MAX = 2_400
"""Bytes of an original among others; it is cut at this, and `get` shows the rest."""
LEVELS = ("episode", "day", "week", "month")

_ESTIMATOR = TokenEstimator()


def tokens_of(text: str) -> int:
    """About how many tokens a text has."""
    return _ESTIMATOR.count(text)


def json_bytes(value: object) -> int:
    """The bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def one_line(text: str, chars_max: int = LINE_CHARS_MAX) -> str:
    """The beginning of a text on one line, with nothing in it that could pass for a role or tag."""
    line = neutralize_line(text)
    if len(line) <= chars_max:
        return line
    return neutralize_tags(line[: chars_max - 1].rstrip() + "…")


def beginning(text: str, bytes_max: int) -> str:
    """Return as many characters of a text as fit, measured as JSON; at least one."""
    if json_bytes(text) <= bytes_max:
        return text
    head = text[:bytes_max]
    sizes = list(accumulate(json_bytes(character) - 2 for character in head))
    return neutralize_tags(head[: max(1, bisect_right(sizes, bytes_max - 2))])


def fitting(parts: Sequence[T], bytes_max: int) -> list[T]:
    """The first parts that fit together, at least one."""
    sizes = list(accumulate(json_bytes(part) + 1 for part in parts))
    return list(parts[: max(1, bisect_right(sizes, bytes_max))])


def day_of(moment: datetime, zone: tzinfo | None) -> str:
    """A time to the minute, here."""
    local = in_zone(moment, zone).replace(tzinfo=None)
    return local.isoformat(" ", timespec="minutes")


def parse_moment(text: str | None, *, field: str, now: datetime) -> datetime | None:
    """A time as a model writes it; without a zone, here. As an end, a date is included.

    Raises `InvalidTime`.
    """
    return None if text is None else read_given(text, field=field, now=now)


def hit_line(hit: Hit, *, zone: tzinfo | None, this_project: bool) -> HitLine:
    """A hit in a line."""
    is_summary = bool(hit.summary_of)
    return HitLine(
        id=hit.id,
        date=day_of(hit.created_at, zone),
        text=one_line(hit.snippet or hit.content),
        role=one_line(hit.role, 40),
        kind="summary" if is_summary else "memory",
        source=one_line(hit.source or "", 60),
        tokens=tokens_of(hit.content),
        originals=len(hit.summary_of),
        matching=[_matching(line, zone) for line in hit.lines[:MATCHING_MAX]]
        if is_summary
        else [],
        this_project=this_project,
    )


def _matching(line: Line, zone: tzinfo | None) -> Quotation:
    return Quotation(
        id=line.id,
        date=day_of(line.created_at, zone),
        text=one_line(line.content, MATCHING_CHARS_MAX),
        role=one_line(line.role, 40),
    )


def kind_of(item: MemoryRecord | Episode) -> str:
    """The kind of what an id names."""
    return LEVELS[item.level] if isinstance(item, Episode) else "memory"


def part_of(item: MemoryRecord | Episode, zone: tzinfo | None) -> Part:
    """An original or a lower summary among others, cut where it is long."""
    words = neutralize(item.content)
    text = beginning(words, PART_BYTES_MAX)
    role = "" if isinstance(item, Episode) else item.role
    return Part(
        id=item.id,
        date=day_of(item.created_at, zone),
        text=text,
        role=one_line(role, 40),
        kind=kind_of(item),
        source=one_line(item.source or "", 60),
        tokens=tokens_of(item.content),
        is_cut=len(text) < len(words),
    )
