"""All languages that texts are read in, and their names of months, weekdays and small numbers."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.text.languages.dutch import DUTCH
from mnemosyned.text.languages.english import ENGLISH
from mnemosyned.text.languages.french import FRENCH
from mnemosyned.text.languages.german import GERMAN
from mnemosyned.text.languages.italian import ITALIAN
from mnemosyned.text.languages.language import Language
from mnemosyned.text.languages.polish import POLISH
from mnemosyned.text.languages.portuguese import PORTUGUESE
from mnemosyned.text.languages.russian import RUSSIAN
from mnemosyned.text.languages.spanish import SPANISH
from mnemosyned.text.languages.swedish import SWEDISH
from mnemosyned.text.languages.turkish import TURKISH
from mnemosyned.text.languages.ukrainian import UKRAINIAN

LANGUAGES: tuple[Language, ...] = (
    ENGLISH,
    GERMAN,
    FRENCH,
    SPANISH,
    ITALIAN,
    PORTUGUESE,
    DUTCH,
    SWEDISH,
    POLISH,
    TURKISH,
    RUSSIAN,
    UKRAINIAN,
)
"""English first; where two languages match equally well, the earlier one is taken."""


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
