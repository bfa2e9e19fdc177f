"""The languages that text is read in: one module per language, one line each in `LANGUAGES`."""

from __future__ import annotations

from mnemosyned.domain.languages.dutch import DUTCH
from mnemosyned.domain.languages.english import ENGLISH
from mnemosyned.domain.languages.french import FRENCH
from mnemosyned.domain.languages.german import GERMAN
from mnemosyned.domain.languages.italian import ITALIAN
from mnemosyned.domain.languages.language import Language
from mnemosyned.domain.languages.polish import POLISH
from mnemosyned.domain.languages.portuguese import PORTUGUESE
from mnemosyned.domain.languages.russian import RUSSIAN
from mnemosyned.domain.languages.spanish import SPANISH
from mnemosyned.domain.languages.swedish import SWEDISH
from mnemosyned.domain.languages.turkish import TURKISH
from mnemosyned.domain.languages.ukrainian import UKRAINIAN

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
