"""What a text states: its sentences, its words, its exact values, and the cues that it matters."""

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
from mnemosyned.domain.text.stopwords import COMMON_WORDS, STOP_WORDS
from mnemosyned.domain.text.word_cache import WordCache

SENTENCE_CHARS_MAX = 320
CHUNKS_KEPT = 1 << 13


class TokenKind(StrEnum):
    """What a token is."""

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
"""How an exact value looks when it stands alone between spaces; the first that fits names it."""

EXACT_KINDS = frozenset(PATTERNS)

_EXACT = re.compile(
    "|".join(f"(?P<{kind}>{shape})" for kind, shape in PATTERNS.items())
)
_BOUNDARY = re.compile(
    r"[.!?…。！？｡．](?:(?<![.!?…][.!?…])(?<=[.!?…])[.!?…]*+[\"'”’»)\]*_]*+\s+"
    r"|(?<=[。！？｡．])[。！？｡．]*+[」』”’）】]*+\s*)"
)
"""One set of characters opens it, so that the search skips all others, and only the first of a
run, as nothing else would keep a line of nothing but dots linear."""
_ENDS = ".!?…"
_ABBREVIATION = re.compile(
    r"(?:\w|\d+|(?:\w\.)+\w|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|approx|no|nr|fig|inc|ltd|co|tel|ref|ca"
    r"|z\.b|usw|bzw|str|hr|fr|inkl|zzgl|evtl|sra|dra|núm|pág|mme)",
    re.IGNORECASE,
)
ABBREVIATION_CHARS_MAX = 12
ABBREVIATION_LETTERS_MAX = 6
"""Those without a full stop inside are no longer, numbers apart."""
_BREAK = re.compile(r"[;,、，；]\s*|\s+|(?<=[}\])])")
_EDGE = " \t\"'`“”‘’«»„()[]{}<>,.;:!?…*|·•–—。、，！？；：「」『』（）【】"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PARTICLES = "的了是和与们这那也都就还把被"
_CJK = re.compile(rf"[\u3040-\u30ff{_HAN}]")
_LETTER = rf"(?:(?![\u3040-\u30ff{_HAN}])[^\W_])"
_HAN_RULING = re.compile(HAN_RULINGS)
_NAME = re.compile(rf"(?!.*\d)(?=.*-[^\W\d_a-zß-ÿ]){_LETTER}+(?:[-'’]{_LETTER}+)+")
"""Names joined by a hyphen stay one word: `Wi-Fi`, `Baden-Baden`."""
_VALUE = (
    r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*-\d[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
    r"|(?:\d+年)?\d+月(?:\d+日)?|\d[\d,.:]*[万億亿]?(?:円|元|時半?|时|分|日|年|名|人|泊|階|号)"
)
"""An exact value inside a run without spaces."""
_INNER = re.compile(
    rf"(?P<value>{_VALUE})"
    rf"|(?P<han>(?:(?![{_PARTICLES}])[{_HAN}])+)"
    r"|[\u30a0-\u30ff]+"  # Katakana; Hiragana, which carries grammar, is passed over
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


@dataclass(slots=True, eq=False)  # frozen, making one takes 1.4 µs instead of 0.4
class Token:
    """One word or exact value of a text. Sentences share it: it never changes."""

    stem: str
    """What makes it the same as another: lower case, without its ending."""
    surface: str
    kind: TokenKind
    capital: bool
    closes: bool
    """Punctuation follows it, so that it makes no phrase with the next."""
    cue: float = 1.0
    """How much more a sentence matters for having it."""
    label: bool = False
    """It says what the exact value after it is."""
    notable: bool = False
    """It has a cue, or makes a ruling of a sentence that it opens or of the word before it."""


def sentences(text: str) -> list[tuple[str, bool]]:
    """Each sentence with its white space collapsed, and whether it begins a line.

    A line without sentence ends (a log line, a row, a giant JSON value) counts as one sentence,
    and whatever is longer than `SENTENCE_CHARS_MAX` is cut where a reader would pause.
    """
    found: list[tuple[str, bool]] = []
    plain = text.isprintable() and "  " not in text
    for line in (text,) if plain else text.splitlines():
        first = True
        for sentence in _split(line.strip() if plain else " ".join(line.split())):
            if len(sentence) <= SENTENCE_CHARS_MAX:
                found.append((sentence, first))
            else:
                pieces = list(_cut_long_sentence(sentence))
                found.append((pieces[0], first))
                found += [(piece, False) for piece in pieces[1:]]
            first = False
    return found


def _split(line: str) -> list[str]:
    found: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(line):
        at, end = match.span()
        if (
            line[at] == "."
            and line[at + 1] not in _ENDS
            and _is_abbreviation(line, start, at)
        ):
            continue
        found.append(line[start:end].rstrip())
        start = end
    if start < len(line):
        found.append(line[start:])
    return found


def _is_abbreviation(line: str, start: int, stop: int) -> bool:
    """Whether the word before this full stop is an abbreviation, an initial or a list number."""
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
    rest = sentence[start:].strip()
    if rest:
        yield rest


def tokens(sentence: str) -> tuple[Token, ...]:
    """The words and exact values of a sentence, in order."""
    return tuple(chain.from_iterable(map(_ANALYZED.__getitem__, sentence.split(" "))))


def emphasis(words: Sequence[Token]) -> float:
    """How much more, or less, a sentence matters for what it announces."""
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
    """Whether an order opens the sentence or a clause of it, or two words in a row rule."""
    for at, word in enumerate(words):
        if word.notable:
            lower = word.surface.lower()
            before = words[at - 1].surface.lower() if at else ""
            opens = not at or words[at - 1].closes
            if (opens and lower in ORDERS) or (
                at == 1 and f"{before} {lower}" in ORDERS
            ):
                return True
            if (before, lower) in RULING_PAIRS:
                return True
    return False


def light_stem(word: str) -> str:
    """The word in lower case without its commonest English endings: enough to tell repetition."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= STEM_CHARS_MIN:
            if suffix == "s" and word.endswith(("ss", "us", "is")):
                break
            word = word.removesuffix(suffix)
            if suffix in ("ied", "ies"):
                return word + "i"
            if word[-1] == word[-2] and word[-1] not in "aeols":
                word = word[:-1]
            break
    if len(word) > STEM_CHARS_MIN:
        word = word.removesuffix("e")
    return word[:-1] + "i" if word.endswith("y") else word


_COMMON_STEMS = frozenset(map(light_stem, COMMON_WORDS))
# Under these names a kind is found in a tenth of the time that an attribute of an Enum takes.
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
_BESIDES = dict.fromkeys(UNITS, TokenKind.UNIT) | dict.fromkeys(TITLES, TokenKind.TITLE)


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
    whole = len(core) <= SENTENCE_CHARS_MAX and (
        core.isascii() or not _CJK.search(core)
    )
    exact = _EXACT.fullmatch(core) if whole else None
    if exact and exact.lastgroup:
        kind = _KINDS[exact.lastgroup]
        label = kind is _IDENTIFIER and lower.endswith(LABEL_ENDINGS)
        return (Token(lower, core, kind, core[0].isupper(), closes, 1.0, label),)
    if "-" in core and _NAME.fullmatch(core):
        return (_word_token(core, closes=closes),)
    return tuple(_compound_tokens(core, closes=closes))


def _is_word(core: str, lower: str) -> bool:
    """Whether it is one word for sure, and no exact value."""
    if core.isalpha() and core.isascii() and (core.islower() or core.istitle()):
        return True
    return core in CALENDAR or lower in STOP_WORDS or lower in _BESIDES


def _compound_tokens(core: str, *, closes: bool) -> Iterator[Token]:
    """The words of a chunk that is neither one word nor one value: `a/b`, JSON, CJK."""
    for match in _INNER.finditer(core):
        run, end = match[0], match.end()
        tail = core[end : end + 1] != "-" if end < len(core) else closes
        if match["value"]:
            yield Token(run.lower(), run, _inner_kind(run), capital=False, closes=tail)
        elif not match["han"]:
            exact = _EXACT.fullmatch(run)
            kind = _KINDS[exact.lastgroup] if exact and exact.lastgroup else None
            yield (
                Token(run.lower(), run, kind, capital=False, closes=tail)
                if kind
                else _word_token(run, closes=tail)
            )
        elif 1 < len(run) <= HAN_WORD_MAX:
            cue = RULING if _HAN_RULING.search(run) else 1.0
            label = run.endswith(LABEL_ENDINGS)
            yield Token(
                run,
                run,
                _WORD,
                capital=False,
                closes=tail,
                cue=cue,
                label=label,
                notable=cue > 1,
            )
        else:
            # No border shows where words end: overlapping pairs tell repetition, no more.
            for at in range(max(len(run) - 1, 1)):
                pair = run[at : at + 2]
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
    if lower in _BESIDES:
        return _BESIDES[lower]
    if (
        lower in STOP_WORDS
        or root in STOP_WORDS
        or lower.partition("'")[0] in STOP_WORDS
    ):
        return _STOP
    if word.isdigit():
        return _NUMBER
    if (
        root in _COMMON_STEMS
        or lower in FOREIGN_COMMON
        or (len(word) == 1 and word.isascii())
    ):
        return _COMMON
    return _WORD


_ANALYZED = WordCache(_analyze, entries_max=CHUNKS_KEPT)
"""What is between two spaces, with its tokens."""
