"""The languages in which preferences said in passing are recognized."""

from __future__ import annotations

from collections.abc import Mapping

from mnemosyned.domain.learnings.passing.english import ENGLISH
from mnemosyned.domain.learnings.passing.germanic import DUTCH, GERMAN, SWEDISH
from mnemosyned.domain.learnings.passing.romance import (
    FRENCH,
    ITALIAN,
    PORTUGUESE,
    SPANISH,
)
from mnemosyned.domain.learnings.passing.slavic import POLISH, RUSSIAN
from mnemosyned.domain.learnings.passing.table import PassingTable

PASSING_LANGUAGES: Mapping[str, PassingTable] = {
    "english": ENGLISH,
    "german": GERMAN,
    "french": FRENCH,
    "spanish": SPANISH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "dutch": DUTCH,
    "swedish": SWEDISH,
    "polish": POLISH,
    "russian": RUSSIAN,
}
