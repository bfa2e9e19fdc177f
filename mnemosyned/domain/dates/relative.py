"""Dates as a reader needs them later: a period in words, and "yesterday" as a day."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, date, datetime

from mnemosyned.domain.instants import day_at

MONTH_NAMES = "January February March April May June July August September October November December".split()
QUOTES = '`"'
WEEKDAY_ABBREVIATIONS = "Mon Tue Wed Thu Fri Sat Sun".split()
_NUMBERS = {
    word: value
    for value, word in enumerate(
        "a two three four five six seven eight nine ten".split(), start=1
    )
} | {"an": 1, "one": 1}
_RELATIVE = re.compile(
    r"(?<![^\s(])(?:(?P<day>yesterday|tomorrow|last night)"
    r"|(?P<step>last|next) (?P<unit>month|year)"
    r"|(?P<count>\d{1,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
    r" (?P<ago>day|week|month|year)s? ago)(?=[\s.,;:!?)]|$)(?! \()",
    re.IGNORECASE,
)
_STEPS = re.compile(r"(?:last|next) (?:night|month|year)")


def format_day(moment: date) -> str:
    """`8 May 2023`: the form people ask in, so that a search for "May 2023" finds it."""
    return f"{moment.day} {MONTH_NAMES[moment.month - 1]} {moment.year}"


def format_period(first: date, last: date) -> str:
    """One day with its weekday, which anchors "last Friday", or the two ends of a period."""
    if first == last:
        return f"{WEEKDAY_ABBREVIATIONS[first.weekday()]} {format_day(first)}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{format_day(last)}"
    return f"{format_day(first)} – {format_day(last)}"


def may_have_relative_dates(text: str) -> bool:
    """Whether `annotate_relative_dates` may find anything, in a third of the time it takes to look."""
    lower = text.lower()
    if " ago" in lower or "yesterday" in lower or "tomorrow" in lower:
        return True
    return ("last " in lower or "next " in lower) and _STEPS.search(lower) is not None


def annotate_relative_dates(text: str, said: datetime) -> str:
    """The text with each relative date followed by what it meant when it was said.

    "yesterday" is worthless once nobody knows when it was spoken. Only what is unambiguous is
    resolved: "last Friday" and "next week" mean different days to different people. Code and
    quotations stay as they are.
    """

    def resolved(match: re.Match[str]) -> str:
        if any(text.count(quote, 0, match.start()) % 2 for quote in QUOTES):
            return match[0]
        meant = _resolved_date(match, said)
        return f"{match[0]} ({meant})" if meant else match[0]

    return _RELATIVE.sub(resolved, text)


def _resolved_date(match: re.Match[str], said: datetime) -> str:
    """The day, month or year it means, or nothing where the calendar has none."""
    today = said.date()
    if match["day"]:
        return _shift_date(
            today, "day", 1 if match["day"].lower() == "tomorrow" else -1
        )
    if match["step"]:
        sign = 1 if match["step"].lower() == "next" else -1
        return _shift_date(today, match["unit"].lower(), sign)
    count = match["count"].lower()
    amount = int(count) if count.isdigit() else _NUMBERS[count]
    return _shift_date(today, match["ago"].lower(), -amount)


def _shift_date(today: date, unit: str, amount: int) -> str:
    if unit in ("day", "week"):
        meant = day_at(today, amount * (7 if unit == "week" else 1))
        return ("about " if unit == "week" else "") + format_day(meant) if meant else ""
    months = today.year * 12 + today.month - 1 + amount * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return ""
    return str(year) if unit == "year" else f"{MONTH_NAMES[month]} {year}"
