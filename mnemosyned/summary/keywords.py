"""Worth of the words of a group of sentences, and keywords for words that its extract lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set as AbstractSet
from typing import NamedTuple

from mnemosyned.text.terms import light_stem
from mnemosyned.text.tokens import (
    CONNECTORS,
    COPULAS,
    CURRENCIES,
    EXACT_KINDS,
    SECRET_LABELS,
    TextToken,
    TokenKind,
)

NAME = 1.5
EXACT = 2.0
NUMBER = 1.2
TIME = 1.2
MEASURE = 1.5
CODE_NAME = 1.4
"""Worth of an identifier without a digit, such as the name of a function."""
AMOUNT = 2.5
LABELLED = 3.5
SECRET = 5.0
ORDINARY = 1.0
CALENDAR = 1.1
COMMON = 0.3
BY_KIND = {
    TokenKind.NUMBER: NUMBER,
    TokenKind.TIME: TIME,
    TokenKind.COMMON: COMMON,
    TokenKind.UNIT: COMMON,
    TokenKind.TITLE: COMMON,
    TokenKind.CALENDAR: CALENDAR,
} | dict.fromkeys(EXACT_KINDS - {TokenKind.NUMBER, TokenKind.TIME}, EXACT)

WORTH_MIN = 1.2
"""Minimum worth of a keyword in little room: names and values."""
ROOMY_CHARS = 120
"""Room below which ordinary words are no keywords."""
ROOM_MIN = 6
"""Room too small for any keyword."""

SHORT_CHARS = 4
WEAK = 0.7
"""Factor of ordinary words of up to `SHORT_CHARS` ("fit", "run"), times and bare numbers."""

SURFACE_CHARS_MAX = 80
WORD_POWER = 0.5
VALUE_POWER = 0.25
"""Exponent of a value's length, by which its worth is divided; small, as values may be long."""

CONNECTORS_MAX = 2
COPULA_REACH = 6
"""Maximum distance between a label and "is", as in "the code of the back gate is 4711"."""
NEVER_KEYWORDS = frozenset(
    {TokenKind.STOP, TokenKind.COMMON, TokenKind.UNIT, TokenKind.TITLE}
)
ADJACENT = frozenset({TokenKind.UNIT, TokenKind.CALENDAR})
"""Kinds that form one value with an adjacent number."""

SEPARATOR = "\n"
"""Separator of the terms of a summary; no term contains white space like this."""


_DIGIT = re.compile(r"\d")
# Under these names a kind is found in a tenth of the time that an attribute of an Enum takes.
_CALENDAR = TokenKind.CALENDAR
_IDENTIFIER = TokenKind.IDENTIFIER
_MONEY = TokenKind.MONEY
_NUMBER = TokenKind.NUMBER
_STOP = TokenKind.STOP
_TIME = TokenKind.TIME
_TITLE = TokenKind.TITLE
_UNIT = TokenKind.UNIT
_WORD = TokenKind.WORD


class _KeywordCandidate(NamedTuple):
    """A possible keyword: its tokens, place and rank."""

    rank: float
    """Negated worth for its size: the best sorts first."""
    sentence: int
    place: int
    tokens: tuple[TextToken, ...]
    """Tokens of the word or value, with label and unit."""
    size: int


class Vocabulary:
    """Worth and first occurrence of the words in a group of sentences, both by stem."""

    def __init__(self) -> None:
        self.worth: dict[str, float] = {}
        """Worth of each stem except stop words, from exact values down to everyday words."""
        self.first: dict[str, tuple[Sequence[TextToken], int, int]] = {}
        """First occurrence of each possible keyword by stem: sentence, its number, and place."""
        self._sentences = 0

    def add(self, words: Sequence[TextToken]) -> tuple[str, ...]:
        """Add the worth of each word of a sentence except stop words; return their distinct stems, in order."""
        worth, first = self.worth, self.first
        stems: list[str] = []
        labelled = secret = False
        for place, token in enumerate(words):
            kind = token.kind
            if token.label:
                labelled = True
                secret = secret or token.surface.lower() in SECRET_LABELS
            if kind is _STOP:
                continue
            root = token.stem
            stems.append(root)
            if kind is _WORD:
                if secret and _is_secret(words, place):
                    value = SECRET
                else:
                    value = NAME if place and token.capital else ORDINARY
            elif kind in EXACT_KINDS:
                value = _rate_exact_value(
                    words, place, BY_KIND[kind], labelled=labelled
                )
            else:
                value = BY_KIND[kind]
            if value > worth.get(root, 0.0):
                worth[root] = value
            if root not in first and (kind is _WORD or kind not in NEVER_KEYWORDS):
                first[root] = words, self._sentences, place
        self._sentences += 1
        return tuple(dict.fromkeys(stems))

    def ignore_names(self, names: Iterable[str]) -> None:
        """Set the worth of the words in speakers' names to 0: each line shows its speaker."""
        self.worth.update(
            [(light_stem(part), 0.0) for name in names for part in name.split()]
        )


def _rate_exact_value(
    words: Sequence[TextToken], place: int, value: float, *, labelled: bool
) -> float:
    """Return the worth of the exact value at index `place`: `value`, or more with a label or unit.

    Names from code are worth less. `labelled` says that the sentence has a label before the value.
    """
    label = _find_label(words, place) if labelled else None
    if label is not None:
        return SECRET if words[label].surface.lower() in SECRET_LABELS else LABELLED
    kind = words[place].kind
    if kind is _MONEY:
        return AMOUNT
    if kind is _IDENTIFIER and not _DIGIT.search(words[place].surface):
        return CODE_NAME
    if kind is _NUMBER:
        for neighbor in words[max(0, place - 1) : place + 2]:
            if neighbor.kind in ADJACENT:
                is_money = neighbor.kind is _UNIT and neighbor.stem in _CURRENCY_STEMS
                value = max(value, AMOUNT if is_money else MEASURE)
    return value


_CURRENCY_STEMS = frozenset(map(light_stem, CURRENCIES))


def _find_label(words: Sequence[TextToken], place: int) -> int | None:
    """Return the index of the label before the value at index `place`, as in "code 4711"; None without one."""
    far = place and words[place - 1].surface.lower() in COPULAS
    reach = COPULA_REACH if far else 1 + CONNECTORS_MAX
    for at in range(place - 1, max(place - 1 - reach, -1), -1):
        token = words[at]
        if token.label:
            return at
        if not far and token.surface.lower() not in CONNECTORS:
            return None
    return None


def _is_secret(words: Sequence[TextToken], place: int) -> bool:
    """Return True if a label such as "password" shows that the word at index `place` is secret.

    A word directly after the label must be capitalized.
    """
    at = _find_label(words, place)
    if at is None or words[at].surface.lower() not in SECRET_LABELS:
        return False
    return at < place - 1 or words[at].closes or words[place].capital


def join_terms(terms: Iterable[str]) -> str:
    """Return index terms as the text to store: one term a line."""
    return SEPARATOR.join(terms)


def select_keywords(
    known: Vocabulary, *, covered: AbstractSet[str], chars_max: int
) -> tuple[str, ...]:
    """Return the most valuable keywords whose stems are not in `covered`: values, then words.

    Values keep their label and unit, and adjacent words form a phrase. All keywords together, one a
    line, have at most `chars_max` characters.
    """
    if chars_max <= 0:
        return ()
    seen = set(covered)
    room = chars_max + len(SEPARATOR)
    values = _select_fitting(_find_value_candidates(known, seen), room)
    room -= sum([value.size + len(SEPARATOR) for value in values])
    words: list[_KeywordCandidate] = []
    if room >= ROOM_MIN:
        worth_min = 0.0 if chars_max >= ROOMY_CHARS else WORTH_MIN
        words = _select_fitting(
            _find_word_candidates(
                known, seen, worth_min, chars_max=room - len(SEPARATOR)
            ),
            room,
        )
    written = [_join_tokens(value.tokens) for value in values]
    phrases: list[str] = []
    open_at: tuple[int, int] | None = None
    for _, sentence, place, span, _ in words:
        if open_at == (sentence, place):
            phrases[-1] += f" {_join_tokens(span)}"
        else:
            phrases.append(_join_tokens(span))
        open_at = None if span[-1].closes else (sentence, place + 1)
    return (*dict.fromkeys(written), *phrases)


def _select_fitting(
    candidates: list[_KeywordCandidate], room: int
) -> list[_KeywordCandidate]:
    """Return the best candidates that fit in `room` characters, in the order of their sentences."""
    chosen: list[_KeywordCandidate] = []
    for candidate in sorted(candidates):
        cost = candidate.size + len(SEPARATOR)
        if cost <= room:
            chosen.append(candidate)
            room -= cost
            if room < ROOM_MIN:
                break
    chosen.sort(key=lambda candidate: (candidate.sentence, candidate.place))
    return chosen


def _find_value_candidates(
    known: Vocabulary, seen: set[str]
) -> list[_KeywordCandidate]:
    """Return candidates for exact values and labeled words not in `seen`, and add their stems to `seen`."""
    candidates: list[_KeywordCandidate] = []
    for root, value in known.worth.items():
        if value < MEASURE or root in seen or root not in known.first:
            continue
        words, sentence, place = known.first[root]
        if value < LABELLED and words[place].kind not in EXACT_KINDS:
            continue
        label = _find_label(words, place) if value >= LABELLED else None
        before = [words[label]] if label is not None else []
        unit = place - 1
        if place and label != unit and words[unit].kind in ADJACENT:
            # "EUR 20", "May 4", but not the unit of "3 h 20".
            follows_number = unit > 0 and words[unit - 1].kind is _NUMBER
            if not words[unit].closes and not follows_number:
                before.append(words[unit])
        stop = place + 1
        while (
            stop < len(words)
            and not words[stop - 1].closes
            and _extends_value(words, stop)
        ):
            stop += 1
        span = (*before, *words[place:stop])
        size = len(_join_tokens(span))
        if not _is_informative(span, size):
            continue
        seen.update([token.stem for token in span])
        if _says_little_alone(words[place].kind, span):
            value *= WEAK  # noqa: PLW2901
        rank = -value / (size + len(SEPARATOR)) ** VALUE_POWER
        candidates.append(_KeywordCandidate(rank, sentence, place, span, size))
    return candidates


def _says_little_alone(kind: TokenKind, span: Sequence[TextToken]) -> bool:
    """Return True if a value is a time, or a number without unit or label."""
    return kind is _TIME or (kind is _NUMBER and len(span) == 1)


def _find_word_candidates(
    known: Vocabulary, seen: AbstractSet[str], worth_min: float, *, chars_max: int
) -> list[_KeywordCandidate]:
    """Return candidates for words worth at least `worth_min` whose stems are not in `seen`.

    Each candidate is at most `chars_max` long, with the title before a name, such as "Dr.".
    """
    candidates: list[_KeywordCandidate] = []
    for root, (words, sentence, place) in known.first.items():
        value = known.worth[root]
        if root in seen or value < worth_min or value <= 0:
            continue
        word = words[place]
        titled = place > 0 and word.capital and words[place - 1].kind is _TITLE
        span = tuple(words[place - titled : place + 1])
        size = len(_join_tokens(span))
        if size > chars_max or not _is_informative(span, size):
            continue
        short = value <= ORDINARY and len(word.surface) <= SHORT_CHARS
        if short or _says_little_alone(word.kind, span):
            value *= WEAK
        rank = -value / (size + len(SEPARATOR)) ** WORD_POWER
        candidates.append(_KeywordCandidate(rank, sentence, place, span, size))
    return candidates


def _extends_value(words: Sequence[TextToken], place: int) -> bool:
    """Return True if the token at index `place` belongs to the value before it, as a unit does."""
    if words[place].kind in ADJACENT:
        return True
    if words[place].kind is not _NUMBER or words[place - 1].kind not in ADJACENT:
        return False
    dated = words[place - 1].kind is _CALENDAR
    return dated or (place + 1 < len(words) and words[place + 1].kind is _UNIT)


def _is_informative(span: Sequence[TextToken], size: int) -> bool:
    """Return False for a keyword of too many characters (`size`), or a bare number of one or two digits."""
    return size <= SURFACE_CHARS_MAX and (
        len(span) > 1 or span[0].kind is not _NUMBER or size > 2
    )


def _join_tokens(span: Sequence[TextToken]) -> str:
    return " ".join(token.surface for token in span)
