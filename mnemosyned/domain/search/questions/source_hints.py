"""Whether a question asks of a source: "which photo shows …", "who called about …"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.terms import Terms, with_words_apart
from mnemosyned.domain.text.word_cache import clear_on_forget
from mnemosyned.domain.text.words.vague_words import is_stop_word

_CALLED = (
    "photo picture image snapshot screenshot photograph camera gallery foto bild aufnahme imagen",
    "mail email letter inbox brief briefe correo courriel posta",
    (
        "call phone telephone rang anruf anrufe angerufen telefon telefonat llamada llamó appel "
        "appelé téléphone chiamata chiamate chiamato telefonata"
    ),
    (
        "note notebook journal diary jot notiz notizen notiert tagebuch nota carnet noté anoté "
        "annotato appunti"
    ),
    (
        "calendar appointment agenda event termin kalender cita calendario rendez calendrier "
        "appuntamento appuntamenti schedule"
    ),
    (
        "notification alert reminder notice push benachrichtigung meldung meldungen aviso notifica "
        "notifiche"
    ),
    (
        "message chat text sms wrote messenger nachricht nachrichten geschrieben mensaje messaggio "
        "messaggi"
    ),
    "commit git repository changeset",
    "todo task errand aufgabe tarea tâche",
    "health sensor measurement fitness gesundheit salud santé",
)
"""Words for one kind of source a line, as a question or the source's own name may have them."""
_LOOSE = frozenset(
    "wrote geschrieben chat rang health sensor measurement fitness gesundheit salud "
    "santé task errand aufgabe tarea tâche camera bild aufnahme image imagen gallery".split()
)
"""Words that do not ask for a source's own records, but prefer them."""
_NO_SOURCE = re.compile(
    r"(?i)\bon[- ]call\b|\b(?:is|was|are|were|be) (?:\S+ ){0,4}called\b|\bcalled off\b"
    r"|\bnote that\b|\bphone number\b|\btext of\b"
)
"""Phrases in which the word of a source means something else."""
_HANDLING = frozenset(
    "arrive receive send sent come came write wrote written tell told take took taken make made "
    "shoot get got gotten add added save saved kommen kam kamen geschickt bekommen erhalten "
    "recibí recibido llegaron llegó reçu reçus reçues arrivé arrivés arrivées ricevuto arrivate "
    "arrivati arrivato happened happen bekam erhielt gab".split()
)
"""Verbs for what is done with any record: they select none."""


@dataclass(frozen=True, slots=True)
class AskedSource:
    """The kinds of source whose records a question asks for."""

    kinds: frozenset[str | int] = frozenset()
    names: tuple[str, ...] = ()
    """Words for them, one of which the name of such a source contains."""

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def has(self, source: str | None) -> bool:
        """Tell whether a source is of one of these kinds."""
        return is_asked_of(source, self.kinds)


def asked_source(text: str) -> AskedSource:
    """Return the kinds of source whose records a question asks for: "which mails", "my last note"."""
    strict = _strict_kinds()
    stems = map(stem, _words(_NO_SOURCE.sub(" ", text)))
    kinds = {strict[word] for word in stems if word in strict}
    names = [name for kind in sorted(kinds) for name in _CALLED[kind].split()]
    return AskedSource(frozenset(kinds), tuple(names))


def subject_words(text: str, asked: AskedSource) -> tuple[str, ...]:
    """Return the words of a question that say what it is about, without those of its source."""
    strict = _strict_kinds()
    return tuple(
        dict.fromkeys(
            word
            for word in _words(text)
            if strict.get(stem(word)) not in asked.kinds
            and stem(word) not in _handling()
            and not is_stop_word(word)
        )
    )


def _words(text: str) -> list[str]:
    return WORD.findall(fold_case(with_words_apart(text)))


@lru_cache(maxsize=1)
def _handling() -> frozenset[str]:
    return frozenset(stem(fold_case(word)) for word in _HANDLING)


@lru_cache(maxsize=1)
def _strict_kinds() -> dict[str, int]:
    loose = {stem(fold_case(word)) for word in _LOOSE}
    return {word: kind for word, kind in _kinds().items() if word not in loose}


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
    stems = {stem(word) for word in _words(text)}
    kinds = {kind for word in stems if (kind := _kinds().get(word)) is not None}
    return frozenset(stems | kinds)
