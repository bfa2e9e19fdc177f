"""How telling each word of a group of sentences is, and the keywords that its extract lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set as AbstractSet
from typing import NamedTuple

from mnemosyned.domain.text.cue_words import CONNECTORS, COPULAS, CURRENCIES, SECRETS
from mnemosyned.domain.text.tokenizer import EXACT_KINDS, Token, TokenKind, light_stem

NAME = 1.5
EXACT = 2.0
NUMBER = 1.2
TIME = 1.2
MEASURE = 1.5
CODE_NAME = 1.4
"""An identifier without a digit: the name of a function or module."""
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
"""What a keyword is worth at least where only few have room: names and values."""
ROOMY_CHARS = 120
"""With less room than this, ordinary words are no keywords."""
ROOM_MIN = 6
"""With less room than this, nothing is looked for to fill it."""

SHORT_CHARS = 4
WEAK = 0.7
"""Ordinary words of at most so many characters ("fit", "run", "pick") say little alone, and so
do times and numbers without a unit."""

SURFACE_CHARS_MAX = 80
WORD_POWER = 0.5
VALUE_POWER = 0.25
"""How much length counts against a keyword: a long value is one all the same."""

CONNECTORS_MAX = 2
COPULA_REACH = 6
"""How far before "is" a label stands: "the code of the back gate is 4711"."""
NEVER_KEYWORDS = frozenset(
    {TokenKind.STOP, TokenKind.COMMON, TokenKind.UNIT, TokenKind.TITLE}
)
BESIDE = frozenset({TokenKind.UNIT, TokenKind.CALENDAR})
"""Kinds that make one value with the number beside them."""

SEPARATOR = ", "


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


class _Candidate(NamedTuple):
    rank: float
    """Its worth for its size, negated: the best comes first."""
    sentence: int
    place: int
    tokens: tuple[Token, ...]
    """The word or value, with its label before it and its unit beside it."""
    size: int


class Vocabulary:
    """What the words of a group of sentences are worth, and where each is said first."""

    def __init__(self) -> None:
        self.worth: dict[str, float] = {}
        """Of every stem but the little words': exact values and names most, everyday words least"""
        self.first: dict[str, tuple[Sequence[Token], int, int]] = {}
        """For every stem that may be a keyword: its sentence, that one's number, and the place."""
        self._sentences = 0

    def add(self, words: Sequence[Token]) -> tuple[str, ...]:
        """Take in one more sentence, and give its stems, each once and in order."""
        worth, first = self.worth, self.first
        stems: list[str] = []
        labelled = secret = False
        for place, token in enumerate(words):
            kind = token.kind
            if token.label:
                labelled = True
                secret = secret or token.surface.lower() in SECRETS
            if kind is _STOP:
                continue
            root = token.stem
            stems.append(root)
            if kind is _WORD:
                value = NAME if place and token.capital else ORDINARY
                if secret and _is_secret(words, place):
                    value = SECRET
            else:
                value = BY_KIND[kind]
                if kind in EXACT_KINDS:
                    value = _exact_worth(words, place, value, labelled=labelled)
            if value > worth.get(root, 0.0):
                worth[root] = value
            if root not in first and (kind is _WORD or kind not in NEVER_KEYWORDS):
                first[root] = words, self._sentences, place
        self._sentences += 1
        return tuple(dict.fromkeys(stems))

    def discount(self, names: Iterable[str]) -> None:
        """Let names that the reader sees anyway, such as the speakers', be worth nothing."""
        self.worth.update(
            [(light_stem(part), 0.0) for name in names for part in name.split()]
        )


def _exact_worth(
    words: Sequence[Token], place: int, value: float, *, labelled: bool
) -> float:
    """What an exact value counts where it stands; `value` is what its kind does."""
    label = _label_position(words, place) if labelled else None
    if label is not None:
        return SECRET if words[label].surface.lower() in SECRETS else LABELLED
    kind = words[place].kind
    if kind is _MONEY:
        return AMOUNT
    if kind is _IDENTIFIER and not _DIGIT.search(words[place].surface):
        return CODE_NAME
    return max(value, _measured_worth(words, place)) if kind is _NUMBER else value


def _measured_worth(words: Sequence[Token], place: int) -> float:
    """What a number counts for the unit or month beside it, the better of two."""
    measured = 0.0
    for beside in words[place - 1 if place else 0 : place + 2]:
        if beside.kind in BESIDE:
            money = beside.kind is _UNIT and beside.stem in _CURRENCY_STEMS
            measured = max(measured, AMOUNT if money else MEASURE)
    return measured


_CURRENCY_STEMS = frozenset(map(light_stem, CURRENCIES))


def _label_position(words: Sequence[Token], place: int) -> int | None:
    """Where the label of this value stands: `code` in "the code is 4711"."""
    far = place and words[place - 1].surface.lower() in COPULAS
    reach = COPULA_REACH if far else 1 + CONNECTORS_MAX
    for at in range(place - 1, max(place - 1 - reach, -1), -1):
        token = words[at]
        if token.label:
            return at
        if not far and token.surface.lower() not in CONNECTORS:
            return None
    return None


def _is_secret(words: Sequence[Token], place: int) -> bool:
    """Whether an ordinary word is the value of a label: "password: marigold"."""
    at = _label_position(words, place)
    if at is None or words[at].surface.lower() not in SECRETS:
        return False
    return at < place - 1 or words[at].closes or words[place].capital


def select_keywords(
    known: Vocabulary, *, covered: AbstractSet[str], chars_max: int
) -> tuple[str, ...]:
    """The most telling words not yet covered, as they were written: exact values, then the rest.

    A value brings its label and unit. Neighbors become one phrase ("support group"), which
    reads better and costs no more.
    """
    if chars_max <= 0:
        return ()
    seen = set(covered)
    room = chars_max + len(SEPARATOR)
    values = _select_fitting(_value_candidates(known, seen), room)
    room -= sum([value.size + len(SEPARATOR) for value in values])
    words: list[_Candidate] = []
    if room >= ROOM_MIN:
        worth_min = 0.0 if chars_max >= ROOMY_CHARS else WORTH_MIN
        words = _select_fitting(
            _word_candidates(known, seen, worth_min, chars_max=room - len(SEPARATOR)),
            room,
        )
    written = [_surface(value.tokens) for value in values]
    return (*dict.fromkeys(written), *_phrases(words))


def _select_fitting(candidates: list[_Candidate], room: int) -> list[_Candidate]:
    """The best of them as far as there is room, in the order in which they were said."""
    chosen: list[_Candidate] = []
    candidates.sort()
    for candidate in candidates:
        cost = candidate.size + len(SEPARATOR)
        if cost <= room:
            chosen.append(candidate)
            room -= cost
            if room < ROOM_MIN:
                break
    chosen.sort(key=_source_order)
    return chosen


def _value_candidates(known: Vocabulary, seen: set[str]) -> list[_Candidate]:
    """The exact values, and ordinary words with a label that makes values of them."""
    found: list[_Candidate] = []
    for root, value in known.worth.items():
        if value < MEASURE or root in seen or root not in known.first:
            continue
        words, sentence, place = known.first[root]
        kind = words[place].kind
        if value < LABELLED and kind not in EXACT_KINDS:
            continue
        span = _value_span(words, place, labelled=value >= LABELLED)
        size = _size(span)
        if not _is_informative(span, size):
            continue
        seen.update([one.stem for one in span])
        weak = kind is _TIME or (kind is _NUMBER and len(span) == 1)
        rank = -value * (WEAK if weak else 1) / (size + len(SEPARATOR)) ** VALUE_POWER
        found.append(_Candidate(rank, sentence, place, span, size))
    return found


def _word_candidates(
    known: Vocabulary, seen: AbstractSet[str], worth_min: float, *, chars_max: int
) -> list[_Candidate]:
    """All other words, as far as they are not too long for any room there is."""
    found: list[_Candidate] = []
    for root, (words, sentence, place) in known.first.items():
        value = known.worth[root]
        if root in seen or value < worth_min or value <= 0:
            continue
        kind = words[place].kind
        span = _name_span(words, place)
        size = _size(span)
        if size > chars_max:
            continue
        if not _is_informative(span, size):
            continue
        short = value <= ORDINARY and len(words[place].surface) <= SHORT_CHARS
        if short or kind is _TIME or (kind is _NUMBER and len(span) == 1):
            value *= WEAK
        rank = -value / (size + len(SEPARATOR)) ** WORD_POWER
        found.append(_Candidate(rank, sentence, place, span, size))
    return found


def _value_span(
    words: Sequence[Token], place: int, *, labelled: bool
) -> tuple[Token, ...]:
    """A value with the label before it and the months and units beside it: "2 h 50 min"."""
    label = _label_position(words, place) if labelled else None
    before = [words[label]] if label is not None else []
    if (
        place
        and label != place - 1
        and words[place - 1].kind in BESIDE
        and _precedes_value(words, place - 1)
    ):
        before.append(words[place - 1])
    stop = place + 1
    while (
        stop < len(words) and not words[stop - 1].closes and _extends_value(words, stop)
    ):
        stop += 1
    return (*before, *words[place:stop])


def _name_span(words: Sequence[Token], place: int) -> tuple[Token, ...]:
    """A word, with the title before it if it is a name."""
    titled = place > 0 and words[place].capital and words[place - 1].kind is _TITLE
    return tuple(words[place - titled : place + 1])


def _precedes_value(words: Sequence[Token], place: int) -> bool:
    """Whether a unit or month belongs to the number after it: "EUR 20", "May 4", not "3 h 20"."""
    if words[place].closes:
        return False
    return place == 0 or words[place - 1].kind is not _NUMBER


def _extends_value(words: Sequence[Token], place: int) -> bool:
    if words[place].kind in BESIDE:
        return True
    if words[place].kind is not _NUMBER or words[place - 1].kind not in BESIDE:
        return False
    dated = words[place - 1].kind is _CALENDAR
    return dated or (place + 1 < len(words) and words[place + 1].kind is _UNIT)


def _is_informative(span: Sequence[Token], size: int) -> bool:
    """A small number says nothing by itself, and a blob nothing to anyone."""
    return size <= SURFACE_CHARS_MAX and (
        len(span) > 1 or span[0].kind is not _NUMBER or size > 2
    )


def _size(span: Sequence[Token]) -> int:
    if len(span) == 1:
        return len(span[0].surface)
    return sum([len(token.surface) for token in span]) + len(span) - 1


def _surface(span: Sequence[Token]) -> str:
    return " ".join(token.surface for token in span)


def _source_order(candidate: _Candidate) -> tuple[int, int]:
    return candidate.sentence, candidate.place


def _phrases(chosen: Iterable[_Candidate]) -> list[str]:
    phrases: list[str] = []
    open_at: tuple[int, int] | None = None
    for _, sentence, place, span, _ in chosen:
        if open_at == (sentence, place):
            phrases[-1] += f" {_surface(span)}"
        else:
            phrases.append(_surface(span))
        open_at = None if span[-1].closes else (sentence, place + 1)
    return phrases
