"""Names of months and weekdays, and small numbers in words, in all languages."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.english import ENGLISH


def _numbered(tables: Iterable[tuple[str, ...]], *, first: int) -> dict[str, int]:
    """Return the number of each word in tables whose rows are numbered from `first`."""
    return {
        word: number
        for table in tables
        for number, row in enumerate(table, first)
        for word in row.split()
    }


MONTHS = _numbered((language.months for language in LANGUAGES), first=1)
WEEKDAYS = _numbered((language.weekdays for language in LANGUAGES), first=0)
COUNTS = _numbered((language.counts for language in LANGUAGES), first=1)

MONTH_NAMES = [row.split()[0].capitalize() for row in ENGLISH.months]
WEEKDAY_NAMES = [row.split()[0].capitalize() for row in ENGLISH.weekdays]
WEEKDAY_ABBREVIATIONS = [row.split()[1].capitalize() for row in ENGLISH.weekdays]
ENGLISH_MONTHS = _numbered([ENGLISH.months], first=1)
ENGLISH_COUNTS = _numbered([ENGLISH.counts[:10]], first=1)
"""One to ten: date expressions in English are read with no higher number in words."""
