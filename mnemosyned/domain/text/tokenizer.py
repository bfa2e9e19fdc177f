"""Splits a text into sentences, and sentences into tokens with their kinds and cues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from mnemosyned.domain.text.cue_words import (
    ACKNOWLEDGEMENT,
    ANSWERS,
    CALENDAR,
    CUES,
    ECHO,
    FOREIGN_COMMON,
    HAN_RULINGS,
    LABEL_ENDINGS,
    LABELS,
    ORDERS,
    REFERENCES,
    RULING,
    RULING_PAIRS,
    TITLES,
    UNITS,
)
from mnemosyned.domain.text.sentence_marks import (
    CLOSING_QUOTES,
    CLOSING_WIDE,
    HALF_WIDTH_ENDS,
    SPACED_ENDS,
    UNSPACED_ENDS,
)
from mnemosyned.domain.text.stopwords import COMMON_WORDS, STOP_WORDS
from mnemosyned.domain.text.word_cache import WordCache

SENTENCE_CHARS_MAX = 320
CHUNKS_KEPT = 1 << 13


class TokenKind(StrEnum):
    """The kind of a token."""

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DATE = "date"
    TIME = "time"
    MONEY = "money"
    VERSION = "version"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    CALENDAR = "calendar"
    UNIT = "unit"
    TITLE = "title"
    WORD = "word"
    COMMON = "common"
    STOP = "stop"

    __hash__ = str.__hash__  # an Enum's own is written in Python: 5 times as slow


PATTERNS: dict[TokenKind, str] = {
    TokenKind.URL: r"(?:[a-z][a-z0-9+.-]{1,9}://|www\.)\S+",
    TokenKind.EMAIL: r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    TokenKind.DATE: (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T_]\d\d:?\d\d\S*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    ),
    TokenKind.TIME: r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:[ap]m|Z)?|\d{1,2}[ap]m",
    TokenKind.MONEY: r"[$€£¥₹₩]\d[\d.,]*[kKmMbB]?|\d[\d.,]*[$€£¥₹₩]",
    TokenKind.VERSION: r"v?\d+(?:\.\d+){2,}[\w.+-]*|v\d+(?:\.\d+)*[\w.+-]*",
    TokenKind.NUMBER: r"[#+~±<>=-]{0,2}\d+(?:[.,:/x×-]?\d+)*(?:%|°[CF]?|st|nd|rd|th|[a-zµ]{1,4})?",
    TokenKind.PATH: (
        r"(?:~|\.{1,2})?/[^\s/]+(?:/[^\s/]*)*|[A-Za-z]:\\\S+"
        r"|[\w.@-]+/(?:[\w.@-]+/)*[\w@-]+\.\w+"
    ),
    TokenKind.IDENTIFIER: (
        r"[A-Za-z_][\w-]*(?:(?:\.|::|->)[A-Za-z_]\w*)+(?:\(\))?"  # a.b.c, a::b, a.b()
        r"|\w+\(\)|--[a-z][\w-]*(?:=\S+)?"  # call(), --flag=value
        r"|\w*[^\W\d_]_\w+|[A-Z]{2,}-\d+"  # snake_case, ABC-123
        r"|[a-z]+[A-Z]\w*|(?:[A-Z][a-z]+){2,}"  # camelCase, PascalCase
        r"|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]+"  # x86-64, a1b2c3
    ),
}
"""The form of an exact value between spaces; the first pattern that matches gives its kind."""

EXACT_KINDS = frozenset(PATTERNS)

_EXACT = re.compile(
    "|".join(f"(?P<{kind}>{shape})" for kind, shape in PATTERNS.items())
)
_WIDE_ENDS = UNSPACED_ENDS + HALF_WIDTH_ENDS
_BOUNDARY = re.compile(
    rf"[{SPACED_ENDS}{_WIDE_ENDS}](?:(?<![{SPACED_ENDS}][{SPACED_ENDS}])(?<=[{SPACED_ENDS}])"
    rf"[{SPACED_ENDS}]*+[{CLOSING_QUOTES}\]*_]*+\s+"
    rf"|(?<=[{_WIDE_ENDS}])[{_WIDE_ENDS}]*+[{CLOSING_WIDE}]*+\s*)"
)
"""It begins with one set of characters, so that the search skips all others, and only with the
first of a run, which keeps a line of dots linear."""
_ABBREVIATION = re.compile(
    r"(?:\w|\d+|(?:\w\.)+\w|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|approx|no|nr|fig|inc|ltd|co|tel|ref|ca"
    r"|z\.b|usw|bzw|str|hr|fr|inkl|zzgl|evtl|sra|dra|núm|pág|mme)",
    re.IGNORECASE,
)
ABBREVIATION_CHARS_MAX = 12
ABBREVIATION_LETTERS_MAX = 6
"""Letters of the longest abbreviation without a full stop inside."""
_BREAK = re.compile(r"[;,、，；]\s*|\s+|(?<=[}\])])")
_EDGE = " \t\"'`“”‘’«»„()[]{}<>,.;:!?…*|·•–—。、，！？；：「」『』（）【】"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PARTICLES = "的了是和与们这那也都就还把被"
_CJK = re.compile(rf"[\u3040-\u30ff{_HAN}]")
_LETTER = rf"(?:(?![\u3040-\u30ff{_HAN}])[^\W_])"
_HAN_RULING = re.compile(HAN_RULINGS)
_NAME = re.compile(rf"(?!.*\d)(?=.*-[^\W\d_a-zß-ÿ]){_LETTER}+(?:[-'’]{_LETTER}+)+")
"""Names with a hyphen stay one word: `Wi-Fi`, `Baden-Baden`."""
_VALUE = (
    r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*-\d[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
    r"|(?:\d+年)?\d+月(?:\d+日)?|\d[\d,.:]*[万億亿]?(?:円|元|時半?|时|分|日|年|名|人|泊|階|号)"
)
"""Matches an exact value inside a run without spaces."""
_INNER = re.compile(
    rf"(?P<value>{_VALUE})"
    rf"|(?P<han>(?:(?![{_PARTICLES}])[{_HAN}])+)"
    r"|[\u30a0-\u30ff]+"  # Katakana; Hiragana, which carries grammar, is skipped
    rf"|{_LETTER}+(?:[_.'’]{_LETTER}+)*"
)
HAN_WORD_MAX = 6
_SUFFIXES = (
    "ingly",
    "edly",
    "ings",
    "ing",
    "ied",
    "ies",
    "ers",
    "ed",
    "es",
    "er",
    "ly",
    "s",
)
STEM_CHARS_MIN = 3


@dataclass(slots=True, eq=False)  # if frozen, creating one takes 1.4 µs instead of 0.4
class Token:
    """A word or exact value of a text. Sentences share tokens: they never change."""

    stem: str
    """The key of repetition: the word in lower case, without its ending."""
    surface: str
    kind: TokenKind
    capital: bool
    closes: bool
    """Whether punctuation follows, so that it forms no phrase with the next."""
    cue: float = 1.0
    """Factor of the importance of a sentence with this word."""
    label: bool = False
    """Whether it labels the exact value after it."""
    notable: bool = False
    """Whether it has a cue, or makes a ruling at the start of a clause or in a pair of words."""


def sentences(text: str) -> list[tuple[str, bool]]:
    """Return each sentence with its white space collapsed, and whether it begins a line.

    A line without sentence ends (a log line, a row, a giant JSON value) is one sentence; longer
    ones than `SENTENCE_CHARS_MAX` are cut where a reader would pause.
    """
    result: list[tuple[str, bool]] = []
    plain = text.isprintable() and "  " not in text
    for line in (text,) if plain else text.splitlines():
        first = True
        for sentence in _split(line.strip() if plain else " ".join(line.split())):
            if len(sentence) <= SENTENCE_CHARS_MAX:
                result.append((sentence, first))
            else:
                pieces = list(_cut_long_sentence(sentence))
                result.append((pieces[0], first))
                result += [(piece, False) for piece in pieces[1:]]
            first = False
    return result


def _split(line: str) -> list[str]:
    result: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(line):
        mark, end = match.span()
        if (
            line[mark] == "."
            and line[mark + 1] not in SPACED_ENDS
            and _is_abbreviation(line, start, mark)
        ):
            continue
        result.append(line[start:end].rstrip())
        start = end
    if start < len(line):
        result.append(line[start:])
    return result


def _is_abbreviation(line: str, start: int, stop: int) -> bool:
    """Tell whether the word before a full stop is an abbreviation, an initial or a list number."""
    word = line[max(start, stop - ABBREVIATION_CHARS_MAX) : stop].rpartition(" ")[2]
    if len(word) > ABBREVIATION_LETTERS_MAX and word.isalpha():
        return False
    return _ABBREVIATION.fullmatch(word.lstrip("(\"'")) is not None


def _cut_long_sentence(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > SENTENCE_CHARS_MAX:
        stop = start + SENTENCE_CHARS_MAX
        cut = stop
        for match in _BREAK.finditer(sentence, start + SENTENCE_CHARS_MAX // 2, stop):
            if match[0][:1] in ";,、，；" or cut == stop:
                cut = match.end()
        yield sentence[start:cut].rstrip()
        start = cut
    remainder = sentence[start:].strip()
    if remainder:
        yield remainder


def tokens(sentence: str) -> tuple[Token, ...]:
    """Return the words and exact values of a sentence, in order."""
    return tuple(chain.from_iterable(map(_ANALYZED.__getitem__, sentence.split(" "))))


def emphasis(words: Sequence[Token]) -> float:
    """Return the factor of the importance of a sentence by its cue words."""
    if not words:
        return 1.0
    factor = 1.0
    notable = [word for word in words if word.notable]
    if notable:
        if _is_ruling(words):
            return RULING
        factor = max([word.cue for word in notable])
    if factor < RULING:
        opening = words[0].surface.lower()
        if opening in ANSWERS:
            factor *= ACKNOWLEDGEMENT
        elif opening in REFERENCES:
            factor *= ECHO
    return factor


def _is_ruling(words: Sequence[Token]) -> bool:
    """Tell whether an order opens a clause of the sentence, or two adjacent words are a ruling."""
    for index, word in enumerate(words):
        if word.notable:
            lower = word.surface.lower()
            before = words[index - 1] if index else None
            if (before is None or before.closes) and lower in ORDERS:
                return True
            if before and _is_ruling_pair(before.surface.lower(), lower, index):
                return True
    return False


def _is_ruling_pair(first: str, second: str, index: int) -> bool:
    """Tell whether two adjacent words are a ruling, or an order at the start of the sentence."""
    if index == 1 and f"{first} {second}" in ORDERS:
        return True
    return (first, second) in RULING_PAIRS


def light_stem(word: str) -> str:
    """Return the word in lower case without common English endings, to recognize repetition."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= STEM_CHARS_MIN:
            if suffix in ("ied", "ies"):
                return word.removesuffix(suffix) + "i"
            if suffix != "s" or not word.endswith(("ss", "us", "is")):
                word = _undouble(word.removesuffix(suffix))
            break
    if len(word) > STEM_CHARS_MIN:
        word = word.removesuffix("e")
    return word[:-1] + "i" if word.endswith("y") else word


def _undouble(base: str) -> str:
    """Return `stop` for `stopp`, which an ending has doubled."""
    if base[-1] == base[-2] and base[-1] not in "aeols":
        return base[:-1]
    return base


_COMMON_STEMS = frozenset(map(light_stem, COMMON_WORDS))
# Reading these names takes a tenth of the time of an attribute of an Enum.
_CALENDAR = TokenKind.CALENDAR
_COMMON = TokenKind.COMMON
_DATE = TokenKind.DATE
_IDENTIFIER = TokenKind.IDENTIFIER
_MONEY = TokenKind.MONEY
_NUMBER = TokenKind.NUMBER
_STOP = TokenKind.STOP
_WORD = TokenKind.WORD
_KINDS = {str(kind): kind for kind in TokenKind}
_BINDING = {words.split(" ")[-1] for words in ORDERS} | {
    second for _, second in RULING_PAIRS
}
_UNITS_AND_TITLES = dict.fromkeys(UNITS, TokenKind.UNIT) | dict.fromkeys(
    TITLES, TokenKind.TITLE
)


def _analyze(chunk: str) -> tuple[Token, ...]:
    core = chunk.strip(_EDGE)
    if not core:
        return ()
    closes = not chunk.endswith(core)
    if closes and f"{core}()" in chunk:
        core += "()"  # a call
        closes = not chunk.endswith(core)
    lower = core.lower().replace("’", "'")
    if _is_word(core, lower):
        return (_word_token(core, closes=closes),)
    kind = _exact_kind(core)
    if kind:
        label = kind is _IDENTIFIER and lower.endswith(LABEL_ENDINGS)
        return (Token(lower, core, kind, core[0].isupper(), closes, 1.0, label),)
    if "-" in core and _NAME.fullmatch(core):
        return (_word_token(core, closes=closes),)
    return tuple(_compound_tokens(core, closes=closes))


def _exact_kind(core: str) -> TokenKind | None:
    """Return the kind of an exact value, or None for other chunks."""
    if len(core) > SENTENCE_CHARS_MAX or (not core.isascii() and _CJK.search(core)):
        return None
    exact = _EXACT.fullmatch(core)
    return _KINDS[exact.lastgroup] if exact and exact.lastgroup else None


def _is_word(core: str, lower: str) -> bool:
    """Tell whether it is certainly one word, and no exact value."""
    if core.isalpha() and core.isascii() and (core.islower() or core.istitle()):
        return True
    return core in CALENDAR or lower in STOP_WORDS or lower in _UNITS_AND_TITLES


def _compound_tokens(core: str, *, closes: bool) -> Iterator[Token]:
    """Yield the tokens of a chunk of several words or values: `a/b`, JSON, CJK."""
    for match in _INNER.finditer(core):
        run, end = match[0], match.end()
        tail = core[end : end + 1] != "-" if end < len(core) else closes
        if match["value"]:
            yield Token(run.lower(), run, _inner_kind(run), capital=False, closes=tail)
        elif match["han"]:
            yield from _han_tokens(run, closes=tail)
        else:
            yield _inner_token(run, closes=tail)


def _inner_token(run: str, *, closes: bool) -> Token:
    exact = _EXACT.fullmatch(run)
    if exact and exact.lastgroup:
        kind = _KINDS[exact.lastgroup]
        return Token(run.lower(), run, kind, capital=False, closes=closes)
    return _word_token(run, closes=closes)


def _han_tokens(run: str, *, closes: bool) -> Iterator[Token]:
    if 1 < len(run) <= HAN_WORD_MAX:
        cue = RULING if _HAN_RULING.search(run) else 1.0
        label = run.endswith(LABEL_ENDINGS)
        yield Token(
            run,
            run,
            _WORD,
            capital=False,
            closes=closes,
            cue=cue,
            label=label,
            notable=cue > 1,
        )
        return
    # The borders of words are unknown: overlapping pairs only show repetition.
    for start in range(max(len(run) - 1, 1)):
        pair = run[start : start + 2]
        yield Token(pair, pair, _COMMON, capital=False, closes=True)


def _inner_kind(run: str) -> TokenKind:
    if run.isascii():
        return _IDENTIFIER
    return _MONEY if run[-1] in "円元" else _DATE


def _word_token(word: str, *, closes: bool) -> Token:
    lower = word.lower().replace("’", "'")
    root = light_stem(word)
    cue = CUES.get(lower, 1.0)
    return Token(
        root,
        word,
        _word_kind(word, lower, root),
        word[0].isupper(),
        closes,
        cue=cue,
        label=lower in LABELS or lower.endswith(LABEL_ENDINGS),
        notable=cue > 1 or lower in _BINDING,
    )


def _word_kind(word: str, lower: str, root: str) -> TokenKind:
    if word in CALENDAR:
        return _CALENDAR
    if lower in _UNITS_AND_TITLES:
        return _UNITS_AND_TITLES[lower]
    if _is_stop_word(lower, root):
        return _STOP
    if word.isdigit():
        return _NUMBER
    if root in _COMMON_STEMS or lower in FOREIGN_COMMON:
        return _COMMON
    return _COMMON if len(word) == 1 and word.isascii() else _WORD


def _is_stop_word(lower: str, root: str) -> bool:
    if lower in STOP_WORDS or root in STOP_WORDS:
        return True
    return lower.partition("'")[0] in STOP_WORDS


_ANALYZED = WordCache(_analyze, entries_max=CHUNKS_KEPT)
"""Tokens by the text between two spaces."""
