"""Formats days and periods, and annotates relative dates such as "yesterday" with the day."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, date, datetime

from mnemosyned.instants import day_at
from mnemosyned.text.languages import tables

_COUNTS = {
    word: count for word, count in tables.ENGLISH_COUNTS.items() if word != "couple"
}
_RELATIVE = re.compile(
    r"(?<![^\s(])(?:(?P<day>yesterday|tomorrow|last night)"
    r"|(?P<step>last|next) (?P<unit>month|year)"
    rf"|(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)})"
    r" (?P<ago>day|week|month|year)s? ago)(?=[\s.,;:!?)]|$)(?! \()",
    re.IGNORECASE,
)
_STEPS = re.compile(r"(?:last|next) (?:night|month|year)")


def format_day(moment: date) -> str:
    """Return a date as `8 May 2023`, so that a search for "May 2023" finds it."""
    return f"{moment.day} {tables.MONTH_NAMES[moment.month - 1]} {moment.year}"


def format_period(first: date, last: date) -> str:
    """Return a period as `5–8 May 2023` or `30 April 2023 – 2 May 2023`; a single day as `Fri 5 May 2023`."""
    if first == last:
        return f"{tables.WEEKDAY_ABBREVIATIONS[first.weekday()]} {format_day(first)}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{format_day(last)}"
    return f"{format_day(first)} – {format_day(last)}"


def may_have_relative_dates(text: str) -> bool:
    """Return False if a text surely has no relative date, such as "yesterday"; a quick check."""
    lower = text.lower()
    if " ago" in lower or "yesterday" in lower or "tomorrow" in lower:
        return True
    may_have_step = "last " in lower or "next " in lower
    return may_have_step and _STEPS.search(lower) is not None


def annotate_relative_dates(text: str, written_at: datetime) -> str:
    """Return the text with the date in brackets after each relative date: `yesterday (7 May 2023)`.

    `written_at` is when the text was written. Only unambiguous expressions are resolved: "last Friday" and
    "next week" mean different days to different people. Code and quotations stay as they are.
    """

    def annotate(match: re.Match[str]) -> str:
        """Return the match followed by its date in brackets, or unchanged inside code or quotes."""
        if any(text.count(quote, 0, match.start()) % 2 for quote in '`"'):
            return match[0]
        words = {name: (said or "").lower() for name, said in match.groupdict().items()}
        if words["day"]:
            step = ("day", _STEP_OF.get(words["day"], -1))
        elif words["step"]:
            step = (words["unit"], _STEP_OF[words["step"]])
        else:
            count = words["count"]
            amount = int(count) if count.isdigit() else _COUNTS[count]
            step = (words["ago"], -amount)
        meant = _format_shifted_date(written_at.date(), *step)
        return f"{match[0]} ({meant})" if meant else match[0]

    return _RELATIVE.sub(annotate, text)


_STEP_OF = {"tomorrow": 1, "next": 1, "last": -1}
_DAYS_OF = {"day": 1, "week": 7}
_MONTHS_OF = {"month": 1, "year": 12}


def _format_shifted_date(today: date, unit: str, amount: int) -> str:
    """Return the day, month or year that is `amount` units after `today`, as text.

    A negative `amount` goes back in time. A number of weeks gives "about 8 May 2023". The text is empty if the
    result is outside the calendar.
    """
    if days := _DAYS_OF.get(unit):
        meant = day_at(today, amount * days)
        about = "about " if unit == "week" else ""
        return f"{about}{format_day(meant)}" if meant else ""
    months = today.year * 12 + today.month - 1 + amount * _MONTHS_OF[unit]
    year, month = divmod(months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return ""
    return str(year) if unit == "year" else f"{tables.MONTH_NAMES[month]} {year}"
