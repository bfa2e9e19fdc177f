"""Whether a question asks of a source: "which photo shows …", "who called about …"."""

from __future__ import annotations

from functools import lru_cache

from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.word_cache import clear_on_forget

_CALLED = (
    "photo picture image snapshot screenshot photograph camera gallery foto bild aufnahme imagen",
    "mail email letter inbox brief correo courriel",
    "call phone telephone rang anruf angerufen telefon telefonat llamada appel téléphone",
    "note notebook journal diary jot notiz tagebuch nota carnet",
    "calendar appointment agenda termin kalender cita calendario rendez calendrier",
    "notification alert reminder notice push benachrichtigung meldung aviso",
    "message chat text sms wrote messenger nachricht geschrieben mensaje",
    "todo task errand aufgabe tarea tâche",
    "health sensor measurement fitness gesundheit salud santé",
)
"""Words for one kind of source a line, as a question or the source's own name may have them."""


@lru_cache(maxsize=1)
def _kinds() -> dict[str, int]:
    return {
        stem(fold_case(word)): kind
        for kind, words in enumerate(_CALLED)
        for word in words.split()
    }


def asked_of(terms: Terms) -> frozenset[str | int]:
    """Return stems of a question that may name a source, and kinds of source it mentions."""
    return _named(" ".join(terms.words))


def is_asked_of(source: str | None, asked: frozenset[str | int]) -> bool:
    """Whether a source is one of those."""
    return source is not None and not asked.isdisjoint(_named(source))


@clear_on_forget
@lru_cache(maxsize=512)
def _named(text: str) -> frozenset[str | int]:
    """The stems of a text, and the kinds of source among them."""
    stems = {stem(word) for word in WORD.findall(fold_case(text))}
    kinds = {kind for word in stems if (kind := _kinds().get(word)) is not None}
    return frozenset(stems | kinds)
