"""Reads durations as people type them: `7d`, `1h 30min`, `3 weeks ago`, `in 2 Tagen`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mnemosyned.domain.dates.names import COUNTS
from mnemosyned.domain.instants import in_zone, shift, shift_months
from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.language import UNITS

_NUMBERS = {**COUNTS, "few": 3, "half a": 0.5, "half an": 0.5}
_DIGIT = re.compile(r"\d")
_PAST, _FUTURE = -1, 1
_ENGLISH_UNITS = {
    "second": "s|secs?|seconds?",
    "minute": "m|mins?|minutes?",
    "hour": "h|hrs?|hours?",
    "day": "d|days?",
    "week": "w|wks?|weeks?",
    "month": "mo|mths?|months?",
    "year": "y|yrs?|years?",
}
_STEPS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_MONTHS = {"month": 1, "year": 12}
_OF_THE_CALENDAR = ("day", "week")
"""Units that keep the clock's reading over a change of the clock."""
_DIGITS_MAX = 6


def read_duration(text: str, now: datetime, *, ahead: bool) -> datetime | None:
    """Return the instant that a duration in lower case counts to; None for any other text.

    It counts back from now, or with `ahead` forward, unless "ago", "in" or a sign say which.
    """
    if not (_DIGIT.search(text) or _NUMBERS.keys() & text.split()):
        return None  # the patterns are compiled for those that may match
    match = _whole().fullmatch(text)
    if match is None or (match["on"] and match["ago"]):
        return None
    way = _way(match, ahead=ahead)
    moment = now
    for part in _part().finditer(match["parts"]):
        moment = _counted(moment, part, way)
    return moment


def _way(match: re.Match[str], *, ahead: bool) -> int:
    """Whether a duration counts forward or back, by its own words first."""
    if match["back"] or match["ago"]:
        return _PAST
    return _FUTURE if ahead or match["on"] or match["later"] else _PAST


@lru_cache(maxsize=1)
def _whole() -> re.Pattern[str]:
    grammars = [language.times for language in LANGUAGES if language.times]
    back = _any(["-", *(grammar.ago_before for grammar in grammars)])
    on = _any([r"\+", "in", *(grammar.ahead_before for grammar in grammars)])
    ago = _any(["ago", *(grammar.ago_after for grammar in grammars)])
    one = _part().pattern
    # A bound on the parts: nobody writes more, and each costs a search.
    unnamed = re.sub(r"\?P<\w+>", "?:", one)
    return re.compile(
        rf"(?:(?P<back>{back}) ?|(?P<on>{on}) ?)?"
        rf"(?P<parts>{unnamed}(?:(?:,? and |, ?| )?{unnamed}){{0,5}})"
        rf"(?: (?:(?P<ago>{ago})|(?P<later>from now|later)))?"
    )


@lru_cache(maxsize=1)
def _part() -> re.Pattern[str]:
    """The pattern of a number and its unit."""
    numbers = _any(sorted(map(re.escape, _NUMBERS), key=len, reverse=True))
    units = "|".join(f"(?P<{unit}>{_unit(unit)})" for unit in UNITS)
    number = rf"(?P<figures>\d{{1,{_DIGITS_MAX}}}(?:\.\d{{1,3}})?) ?|(?:a )?(?P<word>{numbers})(?: of)? "
    return re.compile(rf"(?:{number})(?:{units})(?![^\W\d_])")


def _unit(unit: str) -> str:
    others = (
        grammar.units.get(unit, "")
        for grammar in (language.times for language in LANGUAGES)
        if grammar
    )
    return _any([_ENGLISH_UNITS[unit], *others])


def _any(patterns: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(filter(None, patterns)))


def _counted(moment: datetime, part: re.Match[str], way: int) -> datetime:
    """Move an instant by one number of units. Raises `ValueError` for half a month."""
    unit = next(unit for unit in UNITS if part[unit])
    number = float(part["figures"] or _NUMBERS[part["word"]])
    if unit in _MONTHS:
        if number % 1:
            raise ValueError(part[0])
        return shift_months(moment, way * int(number) * _MONTHS[unit])
    step = way * number * _STEPS[unit]
    if unit in _OF_THE_CALENDAR and not number % 1:
        return shift(moment, step)
    return in_zone(shift(in_zone(moment, UTC), step), moment.tzinfo)
