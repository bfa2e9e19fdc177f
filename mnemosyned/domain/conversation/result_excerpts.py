"""Excerpts of tool results: how they begin, what failed, how they end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mnemosyned.domain.text.frames import neutralize, neutralize_tags

RESULT_CHARS = 200
CLEANED_CHARS = 2_000
"""Characters of a result that are cleaned to take its beginning from."""
READ_CHARS = 40_000
"""Characters read at the end of a result, and half as many at its beginning."""
LINE_CHARS = 120
"""Characters shown of one line."""
GAP = " … "
"""Mark of what is left out between two lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptWeights:
    """Worth of the lines of a tool result."""

    failure: float = 3.0
    """A line that tells of a failure."""
    total: float = 2.0
    """A line with totals: "3 failed, 12 passed in 4.1 s"."""
    last: float = 1.5
    """The last line."""
    first: float = 1.0
    other: float = 0.2


WEIGHTS = ExcerptWeights()

_FAILURE = re.compile(
    r"\b(?:error|errors|fail|failed|failure|failures|exception|fatal|panic(?:ked)?|denied"
    r"|refused|time[d ]?out|not found|cannot|unable|aborted|killed|assert\w*)\b|\w+Error\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:passed|failed|skipped|total|totals|summary|succeeded|success|completed?|finished"
    r"|done|built|installed|updated|created|changed|exit(?:ed)?|rows?|warnings?)\b",
    re.IGNORECASE,
)
_NONE_FAILED = re.compile(
    r"\b(?:0|no) (?:errors?|fail(?:ed|ures?)|exceptions?)\b", re.IGNORECASE
)


def beginning(result: str) -> str:
    """Return the beginning of a tool's result, neutralized."""
    return neutralize_tags(neutralize(result.strip()[:CLEANED_CHARS])[:RESULT_CHARS])


def highlights(result: str, *, chars: int = RESULT_CHARS) -> str:
    """Return the lines of a tool's result that say how it went, in their order, neutralized.

    Failures and totals come before the last line, and that before the first; lines without a
    letter are left out. A result that fits is returned whole.
    """
    result = result.strip()
    if len(result) <= chars:
        return neutralize_tags(neutralize(result)[:chars])
    lines = _telling_lines(result)
    if len(lines) == 1:
        return neutralize_tags(_both_ends(lines[0], chars))
    return neutralize_tags(_join(lines, _choose(lines, chars)))


def ending(result: str, *, after: int, chars: int) -> str:
    """Return the highlights of what follows the first `after` characters of a result."""
    remainder = result.strip()[after:]
    return highlights(remainder, chars=chars) if remainder.strip() else ""


def clip_at_word(text: str, chars: int) -> str:
    """Return the beginning of a text, cut between words, with an ellipsis if it was cut."""
    if len(text) <= chars:
        return text
    head = text[: max(chars - 1, 0)]
    space = head.rfind(" ")
    return (head[:space] if space > chars // 2 else head).rstrip(" ,;:") + "…"


def _telling_lines(result: str) -> list[str]:
    """Return the lines with a letter; of a very long result those near its two ends."""
    if len(result) > READ_CHARS * 3 // 2:
        result = f"{result[: READ_CHARS // 2]}\n{result[-READ_CHARS:]}"
    lines = neutralize(result).split("\n")
    telling = [line.strip() for line in lines if any(map(str.isalpha, line))]
    return telling or [" ".join(result.split())]


def _choose(lines: Sequence[str], chars: int) -> list[int]:
    """Return the positions of the worthiest lines that fit, ascending; at least one."""
    worth = [_worth(line, position, lines) for position, line in enumerate(lines)]
    order = sorted(
        range(len(lines)), key=lambda position: (-worth[position], -position)
    )
    chosen: list[int] = []
    for position in order:
        cost = min(len(lines[position]), LINE_CHARS) + len(GAP)
        if cost <= chars or not chosen:
            chosen.append(position)
            chars -= cost
    return sorted(chosen)


def _worth(line: str, position: int, lines: Sequence[str]) -> float:
    fails = _FAILURE.search(line) and not _NONE_FAILED.search(line)
    totals = _TOTAL.search(line) and any(map(str.isdigit, line))
    worth = WEIGHTS.failure if fails else WEIGHTS.other
    if totals:
        worth = max(worth, WEIGHTS.total)
    if position == len(lines) - 1:
        worth = max(worth, WEIGHTS.last)
    elif position == 0:
        worth = max(worth, WEIGHTS.first)
    return worth


def _join(lines: Sequence[str], chosen: Sequence[int]) -> str:
    """Join chosen lines; a mark shows where lines between them are left out."""
    text = ""
    previous = None
    for position in chosen:
        if previous is not None:
            text += "\n" if position == previous + 1 else GAP
        text += clip_at_word(lines[position], LINE_CHARS)
        previous = position
    return text


def _both_ends(line: str, chars: int) -> str:
    """Return the two ends of one long line, the end at least as long as the beginning."""
    room = chars - len(GAP)
    head = clip_at_word(line, room // 2).rstrip("…")
    tail = line[-(room - len(head)) :]
    space = tail.find(" ")
    tail = tail[space + 1 :] if 0 <= space < len(tail) // 2 else tail
    return f"{head}{GAP}{tail}"
