"""Translates the time expressions of other languages into English, for `parse_times` to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from mnemosyned.domain.dates.names import (
    COUNTS,
    MONTH_NAMES,
    MONTHS,
    WEEKDAY_NAMES,
    WEEKDAYS,
)
from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.language import PHRASES
from mnemosyned.domain.text.stemming import WORD

WEEKDAY_CHARS_MIN = 5
"""Shorter weekdays are abbreviations, and words such as "sat" and "sun"."""
_GRAMMARS = [language.times for language in LANGUAGES if language.times]
_PHRASE_WORD = re.compile(r"[^\W\d_]{3,}")
_UNITS = ("day", "week", "month", "year")
_OF = r"(?:de |del |di |of )?"
_ORDINAL_MARK = (
    r"(?:\.?[ºª°oa]|st|nd|rd|th|s?ten|er|e|[sd]te|de|:[ae]|-?(?:e?go|о?го|е|а))"
)
"""The end of an ordinal in figures: 22nd, 22ten, 1er, 1.º, 22ste, 22:a, 22-go, 22-го."""
_YEAR = rf"(?: {_OF}(?P<year>\d{{4}}))?"

Translation = str | Callable[[re.Match[str]], str]


class _RuleGroup(NamedTuple):
    """Rules that are applied one after the other."""

    hints: frozenset[str]
    """Words of which every expression of the rules has one."""
    rules: Sequence[tuple[re.Pattern[str], Translation]]


def translate_times(text: str) -> str:
    """Return a question with its time expressions in English."""
    words = set(WORD.findall(text.lower()))
    for group in rule_groups():
        if not group.hints.isdisjoint(words):
            for pattern, translation in group.rules:
                text = pattern.sub(translation, text)
    return text


@lru_cache(maxsize=1)
def rule_groups() -> list[_RuleGroup]:
    """Compile the rules in the order in which they are applied."""
    phrases, ago = set[str](), set[str]()
    for grammar in _GRAMMARS:
        ago.update(grammar.ago_before.split()[:1], grammar.ago_after.split()[:1])
        phrases.update(_PHRASE_WORD.findall(" ".join(grammar.phrases.values())))
    return [
        _group(phrases, _phrase_rules()),
        _group(ago, _ago_rules()),
        _group(MONTHS, _date_rules()),
        _group(_DAYS, [_FIGURES]),
        _group(("am", "zum"), [_DAY_ALONE]),
        _group(WEEKDAYS, _weekday_rules()),
    ]


def _group(
    hints: Iterable[str], rules: Iterable[tuple[str, Translation]]
) -> _RuleGroup:
    compiled = [
        (re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), translation)
        for pattern, translation in rules
    ]
    return _RuleGroup(frozenset(hints), compiled)


def _phrase_rules() -> Iterator[tuple[str, Translation]]:
    for phrase in PHRASES:
        yield _any(grammar.phrases.get(phrase, "") for grammar in _GRAMMARS), phrase


def _ago_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules of "vor drei Wochen" and "tre settimane fa"."""
    number = rf"(?P<count>\d{{1,3}}|{_any(map(re.escape, COUNTS))})"
    units = _any(
        f"(?P<{unit}>{_any(grammar.units[unit] for grammar in _GRAMMARS)})"
        for unit in _UNITS
    )
    before = _any(grammar.ago_before for grammar in _GRAMMARS)
    after = _any(grammar.ago_after for grammar in _GRAMMARS)
    yield rf"(?:{before}) {number} (?:{units})", _ago
    yield rf"{number} (?:{units}) (?:{after})", _ago


def _date_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules of "am 5. Mai 2023", "1º de mayo", "5-го мая" and "im Mai"."""
    month = rf"(?P<month>{_any(map(re.escape, MONTHS))}){_YEAR}"
    on_day = _any(grammar.on_day for grammar in _GRAMMARS)
    in_month = _any(grammar.in_month for grammar in _GRAMMARS)
    number = rf"(?<![\d.,:])(?P<day>\d{{1,2}})(?:\. ?|{_ORDINAL_MARK}? )"
    yield rf"(?:(?:{on_day}) )?{number}{_OF}{month}", _date
    yield rf"(?:{in_month}) {month}", _date
    named = _any(map(re.escape, MONTHS))
    yield rf"(?<!\d )(?<!\d\. )(?<!in )(?P<month>{named}) {_OF}(?P<year>\d{{4}})", _date


def _weekday_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules of "letzten Montag", "lundi dernier" and "nächsten Freitag"."""
    days = [name for name in WEEKDAYS if len(name) >= WEEKDAY_CHARS_MIN]
    weekday = rf"(?P<weekday>{_any(map(re.escape, days))})"
    last = _any(grammar.last_before for grammar in _GRAMMARS)
    following = _any(grammar.next_before for grammar in _GRAMMARS)
    article = _any(grammar.weekday_article for grammar in _GRAMMARS)
    last_after = _any(grammar.last_after for grammar in _GRAMMARS)
    next_after = _any(grammar.next_after for grammar in _GRAMMARS)
    on_weekday = _any(grammar.on_weekday for grammar in _GRAMMARS)
    yield rf"(?:{on_weekday})?(?:{last}){weekday}", _weekday("last")
    yield rf"(?:{article})?{weekday} (?:{last_after})", _weekday("last")
    yield rf"(?:{on_weekday})?(?:{following}){weekday}", _weekday("next")
    yield rf"(?:{article})?{weekday} (?:{next_after})", _weekday("next")
    yield rf"(?:{on_weekday}){weekday}", _weekday("on")


def _any(patterns: Iterable[str]) -> str:
    """Join patterns as alternatives, each once, leaving out the empty ones."""
    return "|".join(dict.fromkeys(filter(None, patterns)))


def _date(match: re.Match[str]) -> str:
    day = match.groupdict().get("day") or "in"
    month = MONTH_NAMES[MONTHS[match["month"].lower()] - 1]
    return " ".join(filter(None, (day, month, match["year"])))


def _ago(match: re.Match[str]) -> str:
    number = match["count"]
    count = number if number.isdigit() else str(COUNTS[number.lower()])
    unit = next(unit for unit in _UNITS if match[unit])
    return f"{count} {unit}s ago"


def _weekday(step: str) -> Translation:
    def translated(match: re.Match[str]) -> str:
        return f"{step} {WEEKDAY_NAMES[WEEKDAYS[match['weekday'].lower()]]}"

    return translated


def _month_day(match: re.Match[str]) -> str:
    return f"on the {match['day']}th"


def _date_in_figures(match: re.Match[str]) -> str:
    year = match["year"] or ""
    full_year = f"20{year}" if len(year) == 2 else year
    return f"{int(match['day'])} {MONTH_NAMES[int(match['month']) - 1]} {full_year}".strip()


_DAYS = {f"{day:{form}}" for day in range(1, 32) for form in ("", "02")}
_FIGURES = (
    (
        r"(?:am|vom|zum|de[nm]|bis|seit|ab) (?P<day>0?[1-9]|[12][0-9]|3[01])\. ?"
        r"(?P<month>0?[1-9]|1[0-2])(?:\. ?(?P<year>[0-9]{4}|[0-9]{2})(?![\w.:])|\.|(?= ?\?))"
    ),
    _date_in_figures,
)
"""The rule of "am 22.11." and "am 22.11.26"; without a preposition it may be a version."""
_DAY_ALONE = (
    r"(?:am|zum) (?P<day>\d{1,2})\.(?! ?(?:\d|[^\W\d_]+ \d{4}))",
    _month_day,
)
"""The rule of "am 5." without a month."""
