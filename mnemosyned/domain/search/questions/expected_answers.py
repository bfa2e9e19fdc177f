"""Expectations of a question: a time, or the words of the assistant that it talks to."""

from __future__ import annotations

import re
from functools import lru_cache

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.search.query import ExpectedAnswer
from mnemosyned.domain.text.stemming import WORD

_WHEN = (
    "when",
    "wann",
    "quand",
    "cuándo",
    "cuando",
    "quando",
    "wanneer",
    "kiedy",
    "när",
    "когда",
    "коли",
    "ne zaman",
)
"""Words that a question for a time begins with."""
_TO_ASSISTANT = (
    "you your yours assistant agent chatbot | du dir dich dein deine assistent | tu toi ton vous "
    "votre vos assistante | tú usted ustedes asistente | assistente você vocês lei | jij jou jouw "
    "| ty ciebie tobie twoje asystent | dig ditt dina | ты тебя тебе вы вам ваш ассистент | ти "
    "тебе ви вам асистент | sen sana siz size asistan"
)
"""Words for the one that a user asks, if that is an assistant."""
_RELATIVE_TIMES = (
    "yesterday today tonight tomorrow ago week weeks weekend month months year years recently "
    "since morning evening | gestern heute morgen woche monat jahr | hier aujourd'hui demain "
    "semaine mois | ayer hoy mañana semana mes año | ieri oggi domani settimana mese anno"
)
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\d[./:]\d")
_SHORTEST_NAME = 4
"""Shorter names of months and weekdays are other words, too: may, sun, mon."""


def expected_answer(question: str) -> ExpectedAnswer:
    """Return what a question expects of its answer."""
    words = question.lower().strip(" ¿¡\"'")
    return ExpectedAnswer(
        time=words.startswith(tuple(f"{word} " for word in _WHEN)),
        assistant=not _to_assistant().isdisjoint(re.findall(r"\w+", words)),
    )


def says_when(text: str) -> bool:
    """Tell whether a text names a date, a month, a weekday, or a time from now."""
    words = WORD.findall(text.lower())
    return not _time_words().isdisjoint(words) or _DATE.search(text) is not None


@lru_cache(maxsize=1)
def _to_assistant() -> frozenset[str]:
    return frozenset(_TO_ASSISTANT.split())


@lru_cache(maxsize=1)
def _time_words() -> frozenset[str]:
    names = {
        name
        for language in LANGUAGES
        for table in (*language.months, *language.weekdays)
        for name in table.split()
        if len(name) >= _SHORTEST_NAME
    }
    return frozenset(names).union(WORD.findall(_RELATIVE_TIMES))
