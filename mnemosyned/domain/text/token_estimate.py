"""How many tokens a text takes: who counts, and the counters that need nothing but the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from mnemosyned.domain.text.language import count_stop_words
from mnemosyned.domain.text.word_cache import WordCache

CHARS_PER_TOKEN = 4
MARGIN = 0.2
"""What budgets add to the estimate: `make bench-tokens` needs 16 % for the one most short of its
texts. Lists of rare words, such as a grammar's keywords, fall short by up to 37 %."""
PIECES_MAX = 1 << 13
"""How many pieces are kept with their weight for the next text that has them."""
LANGUAGE_CHARS = 2_000
"""So much of a text tells which language it is in."""
WORD_CHARS, WESTERN_CHARS, EASTERN_CHARS = 7, 5, 3
"""Letters of a word that the token it costs anyway covers: in English, in German, in Polish."""
SPACES = 80
"""So many blanks in a row are a token more."""
RUN_CHARS = 20
"""More letters than this in a row are no word."""
LITTLE_WORDS_MIN = 3
MARKED_SHARE = 0.02
"""Of the letters, what Latin ones beyond French or German make a text, say, Polish or Turkish."""


class TokenCounter(Protocol):
    """Says how many tokens a text takes, offline, whatever the text."""

    @property
    def name(self) -> str:
        """Who counts, as answers and benches show it."""
        ...

    def count(self, text: str) -> int:
        """The tokens of a text, 0 or more."""
        ...


class Chars4:
    """Four characters to a token, at least one: the rule of the documents this follows.

    By `make bench-tokens` it finds a quarter of the tokens of Japanese, and half of those of logs.
    """

    name = "chars4"

    def count(self, text: str) -> int:
        return max(1, len(text) // CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class WithMargin:
    """Another counter's figure with what it may be short by on top, for budgets to keep to."""

    counter: TokenCounter
    margin: float = MARGIN

    @property
    def name(self) -> str:
        return f"{self.counter.name}+{self.margin:.0%}"

    def count(self, text: str) -> int:
        return ceil(self.counter.count(text) * (1 + self.margin))


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens, and who counted."""

    tokens: int
    counter: str


def add_to_reported(
    reported: int, rest: Iterable[str], counter: TokenCounter
) -> TokenCount:
    """The tokens of a conversation of whose beginning an API reported the usage.

    `reported` is what it said of all that was sent to it; `rest` are the texts since.
    """
    texts = list(rest)
    if not texts:
        return TokenCount(reported, "reported")
    return TokenCount(
        reported + sum(map(counter.count, texts)), f"reported+{counter.name}"
    )


class TokenEstimator:
    """Weighs the pieces of a text by what they are made of, as cl100k, the tokenizer, would."""

    name = "estimate"

    def count(self, text: str) -> int:
        weights = _WEIGHTS[_latin_group(text)]
        return ceil(sum(map(weights.__getitem__, _PIECE.findall(text))))


def measure_units(text: str) -> dict[str, float]:
    """How much of each unit that has a weight is in a text."""
    latin = _latin_group(text)
    found: dict[str, float] = {}
    for piece in _PIECE.findall(text):
        for unit, amount in _piece_units(piece, latin):
            found[unit] = found.get(unit, 0.0) + amount
    return found


WEIGHTS: Mapping[str, float] = {
    "english word": 1.06,
    "english letter": 0.08,
    "english accent": 1.0,
    "joined word": 0.16,
    "western word": 1.18,
    "western letter": 0.25,
    "western accent": 0.73,
    "eastern word": 1.11,
    "eastern letter": 0.38,
    "eastern accent": 0.64,
    "capitals": 1.13,
    "capital": 0.1,
    "endless": 0.3,
    "digits": 1.32,
    "spaced digits": 0.85,
    "marks": 0.6,
    "mark change": 0.14,
    "mark run": 1.0,
    "mark": 0.12,
    "underscore": 0.49,
    "line": 0.94,
    "space": 0.69,
    "base64": 0.7,
    "hexadecimal": 0.58,
    "greek": 1.05,
    "cyrillic": 0.61,
    "hebrew": 1.19,
    "arabic": 0.85,
    "devanagari": 1.29,
    "thai": 0.95,
    "typography": 0.98,
    "emoji": 2.68,
    "box": 0.65,
    "wide mark": 1.26,
    "kana": 1.0,
    "han": 1.48,
    "common han": 1.09,
    "hangul": 1.58,
    "common hangul": 1.23,
    "sign": 1.02,
    "other": 2.21,
}
"""Tokens for each unit; `make bench-tokens` fits them to half of its texts and shows the others."""

_PIECE = re.compile(
    # Base64 and hexadecimal digits, tried once where a run begins.
    r"[ ]?(?<![A-Za-z0-9+/])(?=[A-Za-z+/]*[0-9])(?=[A-Z0-9+/]*[a-z])(?=[a-z0-9+/]*[A-Z])"
    r"[A-Za-z0-9+/]{20,}={0,2}"
    r"|[ ]?(?<![A-Za-z0-9])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{4,}(?![A-Za-z0-9])"
    # Words with the one mark or space before them; digits.
    r"|[ -/:-@\[-`{-~]?(?:[A-Z]{2,}(?![a-z])|[A-ZÀ-Þ]?[a-zß-ɏḀ-ỿ]+|[A-ZÀ-Þ])|[ ]?[0-9]+"
    r"|[Ѐ-ԯ]+|[Ͱ-Ͽἀ-῿]+|[\u0590-\u05ff]+|[\u0600-\u077f]+"
    r"|[\u0900-\u097f]+|[\u0e00-\u0e7f]+|[\u3040-\u30ff]+|[\u3400-\u9fff]|[\uac00-\ud7af]"
    r"|[!-/:-@\[-`{-~]+|\s*\n|[^\S\n]{2,}|[\u2500-\u257f]+|[^ ]"
)
_RANGES = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "cyrillic"),
    ("\u0590", "\u05ff", "hebrew"),
    ("\u0600", "\u077f", "arabic"),
    ("\u0900", "\u097f", "devanagari"),
    ("\u0e00", "\u0e7f", "thai"),
    ("\u1f00", "\u1fff", "greek"),
    ("\u2000", "\u206f", "typography"),
    ("\u2190", "\u24ff", "emoji"),
    ("\u2500", "\u257f", "box"),
    ("\u2580", "\u2bff", "emoji"),
    ("\u3000", "\u303f", "wide mark"),
    ("\u3040", "\u30ff", "kana"),
    ("\u3400", "\u9fff", "han"),
    ("\uac00", "\ud7af", "hangul"),
    ("\ufe0f", "\ufe0f", "typography"),
    ("\uff00", "\uffef", "wide mark"),
    ("\U0001f000", "\U0001faff", "emoji"),
)
_COMMON = frozenset(
    # The commonest Chinese characters, and the commonest Korean syllables: a token each.
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军"
    "者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见"
    "被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教原东声提立及比员解水名真论处"
    "走义各入几口认条平系气题活更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命"
    "山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住"
    "告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"
    "이다는을의에가고하지은로기도한사서자어리시아나를인그스정들대해수있만것보라으게일부전안장주구원과제공여오"
)


def _latin_group(text: str) -> str:
    """What its Latin words cost like: English ones, Western or Eastern European ones."""
    head = text[:LANGUAGE_CHARS]
    if head.isascii():
        letters = marked = 0
    else:
        letters = len(_LATIN.findall(head))
        marked = len(_MARKED.findall(head))
    if marked > MARKED_SHARE * letters:
        return "eastern"
    spoken = count_stop_words(head)
    little = max(spoken.values(), default=0)
    foreign = little >= LITTLE_WORDS_MIN and little > 2 * spoken.get("en", 0)
    return "western" if foreign else "english"


_LATIN = re.compile("[A-Za-zÀ-ɏḀ-ỿ]")
_MARKED = re.compile("[Ā-ɏḀ-ỿ]")
_FREE = {"english": WORD_CHARS, "western": WESTERN_CHARS, "eastern": EASTERN_CHARS}


def _piece_units(piece: str, latin: str) -> list[tuple[str, float]]:
    """What a piece is made of: names of weights, and how often each counts."""
    bare = piece.removeprefix(" ")
    first, rest = bare[:1], bare[1:]
    if not first.isascii() and not _LATIN.match(first):
        units = _non_latin_units(bare, first)
    elif bare.isalpha():
        units = _word_units(bare, latin, joined=bare == piece)
    elif bare.isdigit():
        units = [("digits", -(-len(bare) // 3)), ("spaced digits", bare != piece)]
    elif bare.isspace():
        odd = len(bare) - sum(map(bare.count, " \t\r\n"))
        units = [("line" if "\n" in bare else "space", 1 + len(bare) // SPACES + odd)]
    elif rest.isalpha() and not first.isalnum():
        mark = "underscore" if first == "_" else "mark"
        units = [(mark, 1), *_word_units(rest, latin, joined=True)]
    elif _ENCODED.fullmatch(bare):
        hexadecimal = bare == bare.lower()
        units = [("hexadecimal" if hexadecimal else "base64", len(bare))]
    else:
        repeats = sum(len(run[0]) // 16 for run in _RUN.finditer(bare))
        changes = len(_RUN.findall(bare)) - 1
        units = [("marks", 1), ("mark change", changes), ("mark run", repeats)]
    return units


_ENCODED = re.compile(r"(?=.*[0-9])[A-Za-z0-9+/]{4,}={0,2}")
_RUN = re.compile(r"(.)\1*", re.DOTALL)


def _non_latin_units(piece: str, first: str) -> list[tuple[str, float]]:
    for start, stop, unit in _RANGES:
        if start <= first <= stop:
            known = unit in ("han", "hangul") and first in _COMMON
            return [(f"common {unit}" if known else unit, len(piece))]
    return [("sign" if first <= "\u00bf" else "other", len(piece))]


def _word_units(word: str, latin: str, *, joined: bool) -> list[tuple[str, float]]:
    size = min(len(word), RUN_CHARS)
    endless = [("endless", len(word) - size)] if size < len(word) else []
    if size > 1 and word.isupper():
        return [("capitals", 1), ("capital", max(0, size - 2)), *endless]
    accents = sum(not letter.isascii() for letter in word)
    return [
        (f"{latin} word", 1),
        (f"{latin} letter", max(0, size - _FREE[latin])),
        (f"{latin} accent", accents),
        ("joined word", joined and size > 2 and latin == "english"),
        *endless,
    ]


def _weights(latin: str) -> WordCache[float]:
    def weight(piece: str) -> float:
        return sum(
            WEIGHTS[unit] * amount for unit, amount in _piece_units(piece, latin)
        )

    return WordCache(weight, entries_max=PIECES_MAX)


_WEIGHTS = {latin: _weights(latin) for latin in _FREE}
"""The weight of each piece, in texts of each kind of script."""
