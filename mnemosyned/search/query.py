"""Questions of recall, the values of a search, and what a question asks for besides its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.text.languages.tables import LANGUAGES, TimeOrder
from mnemosyned.text.stems import WORD, fold_case, stem
from mnemosyned.text.terms import Terms, with_words_apart
from mnemosyned.text.word_cache import clear_on_forget
from mnemosyned.text.words import STOP_WORDS, is_stop_word

if TYPE_CHECKING:
    from mnemosyned.text.dates.spans import TimeSpan


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
        return is_from_source(source, self.kinds)


def asked_source(text: str) -> AskedSource:
    """Return the kinds of source whose records a question asks for: "which mails", "my last note"."""
    strict = _strict_kinds()
    stems = map(stem, _stem_set(_NO_SOURCE.sub(" ", text)))
    kinds = {strict[word] for word in stems if word in strict}
    names = [name for kind in sorted(kinds) for name in _CALLED[kind].split()]
    return AskedSource(frozenset(kinds), tuple(names))


def subject_words(text: str, asked: AskedSource) -> tuple[str, ...]:
    """Return the words of a question that say what it is about, without those of its source."""
    strict = _strict_kinds()
    return tuple(
        dict.fromkeys(
            word
            for word in _stem_set(text)
            if strict.get(stem(word)) not in asked.kinds
            and stem(word) not in _handling_words()
            and not is_stop_word(word)
        )
    )


def _stem_set(text: str) -> list[str]:
    return WORD.findall(fold_case(with_words_apart(text)))


@lru_cache(maxsize=1)
def _handling_words() -> frozenset[str]:
    return frozenset(stem(fold_case(word)) for word in _HANDLING)


@lru_cache(maxsize=1)
def _strict_kinds() -> dict[str, int]:
    loose = {stem(fold_case(word)) for word in _LOOSE}
    return {word: kind for word, kind in _kinds_of().items() if word not in loose}


@lru_cache(maxsize=1)
def _kinds_of() -> dict[str, int]:
    return {
        stem(fold_case(word)): kind
        for kind, words in enumerate(_CALLED)
        for word in words.split()
    }


def source_terms(terms: Terms) -> frozenset[str | int]:
    """Return stems of a question that may name a source, and kinds of source it mentions."""
    return _stems_and_kinds(" ".join(terms.words))


def is_from_source(source: str | None, asked: frozenset[str | int]) -> bool:
    """Whether a source is one of those."""
    return source is not None and not asked.isdisjoint(_stems_and_kinds(source))


@clear_on_forget
@lru_cache(maxsize=512)
def _stems_and_kinds(text: str) -> frozenset[str | int]:
    """The stems of a text, and the kinds of source among them."""
    stems = {stem(word) for word in _stem_set(text)}
    kinds = {kind for word in stems if (kind := _kinds_of().get(word)) is not None}
    return frozenset(stems | kinds)


# Dates are on the same floor: only their type is named here.

VAGUE = 0.5
"""What a word counts that carries no content of its own: among notes and captions `get` and `much`
are as rare as a name, and tell nothing."""
BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """Expectations of a question, as far as its words tell."""

    time: bool = False
    """A time: the question begins with when."""
    assistant: bool = False
    """Words of the assistant: the question is addressed to it, or speaks of it."""


NOTHING_EXPECTED = ExpectedAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and where to look for its answer."""

    terms: Terms
    limit: int
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Only memories with one of these are searched; summaries have none."""
    tier: Tier | None = None
    since: datetime | None = None
    until: datetime | None = None
    spans: tuple[TimeSpan, ...] = ()
    """The times it speaks of: what happened then is preferred, not required."""
    order: TimeOrder | None = None
    """Whether it asks for the newest of its matches, the oldest, or what is true now."""
    subject: Terms | None = None
    """What it is about, beside a time and a source; for questions with either."""
    asked: AskedSource | None = None
    """The kinds of source whose records it asks for, if it names a time or an order too."""
    source_names: tuple[str, ...] = ()
    """Only sources whose names contain one of these are searched."""
    only_then: bool = False
    """Whether it asks for nothing but what happened at these times: then they are required."""
    explain: bool = False
    """Whether the answer tells what each score is made of."""
    now: datetime | None = None
    """When it is asked; without it nothing is preferred for being recent."""
    valid_at: datetime | None = None
    """Leave out what has expired by then."""
    superseded: bool = False
    """Find also what was superseded."""
    expected: ExpectedAnswer = NOTHING_EXPECTED
    """What the answer has, as far as the question tells."""


class Match(NamedTuple):
    """A candidate: a memory that matches, or with score 0 one that stands beside a match."""

    position: int
    """Where it stands in the order in which memories came in; the store knows it by this."""
    score: float
    """What the words and pairs of characters are worth that the index has of it."""
    session: str
    importance: float = 0.5
    episode: int | None = None
    """The episode it went into, as the store knows it."""
    source: str | None = None
    role: str = ""
    content: str = ""
    """The beginning of its text, `READ_CHARS_MAX` at least."""
    created_at: datetime = BEGINNING
    grams: float = 0.0
    """The part of the score that is for no word: character pairs, parts of names, or its time."""


class ScoreBreakdown(NamedTuple):
    """Parts of a score, which add up to it."""

    words: float = 0.0
    """Its own words, by BM25."""
    phrase: float = 0.0
    """Neighboring words of the question standing together."""
    neighbors: float = 0.0
    """What stands beside it in its session."""
    session: float = 0.0
    """What the rest of its sitting says."""
    asks: float = 0.0
    """Less for the share of it that asks."""
    little: float = 0.0
    """Less, as it says little beside the words of the question."""
    when: float = 0.0
    """It names a time, which the question asks for."""
    user: float = 0.0
    """The user says it, in a talk with an assistant."""
    speaker: float = 0.0
    """The person asked about says it."""
    source: float = 0.0
    """It comes from where the question says."""
    time: float = 0.0
    """It happened when the question says."""
    recency: float = 0.0
    importance: float = 0.0
    summary: float = 0.0
    """The words of its episode's summary."""
    further: float = 0.0
    """The second and third line of its episode."""
    meaning: float = 0.0
    """How near its vector is to the question's, beside the nearest."""


NO_SCORE = ScoreBreakdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Statistics of all memories together."""

    count: int = 0
    average_chars: float = 100.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    """For each word of the question, in how many memories it stands; an estimate will do."""
    compounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For some words, forms joined or split that memories have: `wi fi` for `wifi`."""

    def forms(self, terms: Terms, word: str) -> tuple[str, ...]:
        """Return all forms of a word to search for."""
        return (*terms.forms(word), *self.compounds.get(word, ()))

    def idf(self, word: str) -> float:
        """How telling a word is: never nothing, as in a young memory every word is common."""
        frequency = self.frequencies.get(word, 0)
        telling = log(1 + max(0.0, self.count - frequency + 0.5) / (frequency + 0.5))
        return VAGUE * telling if word.lower() in STOP_WORDS else telling


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near the vectors of memories are to that of the question."""

    cosines: Mapping[int, float] = field(default_factory=dict)
    """By position, -1 to 1, for those that have a vector."""
    vector_only_min: float = 1.0
    """What shares no word with the question must be this near to be an answer."""


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """The candidates for a question."""

    memories: Sequence[Match] = ()
    episodes: Mapping[int, float] = field(default_factory=dict)
    """The episodes whose own text matches, with the engine's scores."""
    beside: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """For the best matches, the positions beside them in their session and how far off, 1 or 2."""
    corpus: Corpus = field(default_factory=Corpus)
    above: Mapping[int, int] = field(default_factory=dict)
    """By episode, day or week: the day, week or month that it was rolled up into."""
    mentioning: AbstractSet[int] = frozenset()
    """Memories whose words speak of the time that the question asks for."""
    summary: int | None = None
    """The summary of just the period that the question asks for."""
    nearness: Nearness = field(default_factory=Nearness)
    """Of candidates by words, and of those by nearness alone, which are among the memories."""


class RankedResult(NamedTuple):
    """One place in the answer: a memory, or an episode with the originals that matched."""

    score: float
    memory: int | None = None
    episode: int | None = None
    lines: tuple[tuple[int, float], ...] = ()
    """The originals of the episode that matched, or the repeats of the memory, best first."""
    parts: ScoreBreakdown = NO_SCORE
    duplicates: int = 0
    """How many others say the same, or differ in figures alone, and have no place."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The memories and episodes of ranked results, as far as they still exist."""

    memories: Mapping[int, MemoryRecord]
    episodes: Mapping[int, Episode]


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
        assistant=not _asks_assistant().isdisjoint(re.findall(r"\w+", words)),
    )


def says_when(text: str) -> bool:
    """Tell whether a text names a date, a month, a weekday, or a time from now."""
    words = WORD.findall(text.lower())
    return not _words_of_time().isdisjoint(words) or _DATE.search(text) is not None


@lru_cache(maxsize=1)
def _asks_assistant() -> frozenset[str]:
    return frozenset(_TO_ASSISTANT.split())


@lru_cache(maxsize=1)
def _words_of_time() -> frozenset[str]:
    names = {
        name
        for language in LANGUAGES
        for table in (*language.months, *language.weekdays)
        for name in table.split()
        if len(name) >= _SHORTEST_NAME
    }
    return frozenset(names).union(WORD.findall(_RELATIVE_TIMES))
