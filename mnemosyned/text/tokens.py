"""Splits a sentence into tokens with their kinds and cues.

Cue words mark a sentence as a ruling, a value or a mere answer; they are in `cues.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from mnemosyned.text.languages.tables import CHINESE_WORDS
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.sentences import SENTENCE_CHARS_MAX, UNSPACED
from mnemosyned.text.terms import COMMON_WORDS, STOP_WORDS, light_stem
from mnemosyned.text.word_cache import WordCache

_TABLES = read_tables(__file__, "cues.toml")
_WORDS = {
    name: frozenset(words.split())
    for name, words in _TABLES.items()
    if isinstance(words, str)
}
"""Lists of words in `cues.toml`, which says what each is for."""

RULING = 2.0
EVENT = 1.3
ACKNOWLEDGEMENT = 0.6
ECHO = 0.85
CUES = dict.fromkeys(_WORDS["events"], EVENT) | dict.fromkeys(_WORDS["rulings"], RULING)
"""Cue words, each with the factor for a sentence's importance."""
ORDERS = frozenset(_TABLES["orders"])
RULING_PAIRS = frozenset(tuple(pair.split()) for pair in _TABLES["ruling_pairs"])
LABELS = _WORDS["labels"]
LABEL_ENDINGS = tuple(_TABLES["label_endings"])
SECRET_LABELS = _WORDS["secret_labels"]
CONNECTORS = _WORDS["connectors"]
COPULAS = _WORDS["copulas"]
TITLES = _WORDS["titles"]
CURRENCIES = _WORDS["currencies"]
UNITS = CURRENCIES | _WORDS["units"]
CALENDAR = _WORDS["calendar"]
FOREIGN_COMMON = _WORDS["foreign_common"] - _WORDS["english_meanings"]


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


PATTERNS = {
    TokenKind(kind): pattern.replace("\n", "")
    for kind, pattern in _TABLES["patterns"].items()
}
"""The form of an exact value between spaces; the first pattern that matches gives its kind."""

EXACT_KINDS = frozenset(PATTERNS)
COMMONPLACE_KINDS = (TokenKind.STOP, TokenKind.COMMON)
"""Kinds of words that identify no text."""

_EXACT = compile_on_use(
    "|".join(f"(?P<{kind}>{shape})" for kind, shape in PATTERNS.items())
)
_EDGE = " \t\"'`“”‘’«»„()[]{}<>,.;:!?…*|·•–—。、，！？；：「」『』（）【】"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PARTICLES = "的了是和与们这那也都就还把被"
_KANA = re.compile("[\u3040-\u30ff]")
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_LETTER = rf"(?:(?![\u3040-\u30ff{_HAN}])[^\W_])"
_SPACED = rf"(?:(?![{UNSPACED}])[^\W_])"
_CLINGING = rf"(?:(?![\u3040-\u30ff{_HAN}])[{UNSPACED}])"
"""A letter of a script, such as Hangul or Thai, to which a word of another script may be attached."""
_HAN_RULING = compile_on_use("|".join(_TABLES["han_rulings"].split()))
_NAME = compile_on_use(rf"(?!.*\d)(?=.*-[^\W\d_a-zß-ÿ]){_LETTER}+(?:[-'’]{_LETTER}+)+")
"""Names with a hyphen stay one word: `Wi-Fi`, `Baden-Baden`."""
CODE_PARTS_MAX = 16
"""Parts that a code may have before a hyphen and a digit."""
AMOUNT_CHARS_MAX = 32
"""Maximum digits and points of an amount before its unit. Both limits keep the search fast in a chain as long
as a text, such as `a-a-a-` or `1,1,1,`, of which each word is read again."""
_VALUE = (
    rf"[A-Za-z0-9]+(?:-[A-Za-z0-9]+){{0,{CODE_PARTS_MAX - 1}}}?"
    r"-\d[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
    r"|(?:\d+年)?\d+月(?:\d+日)?"
    rf"|\d[\d,.:]{{0,{AMOUNT_CHARS_MAX - 1}}}[万億亿]?"
    r"(?:円|元|時半?|时|分|日|年|名|人|泊|階|号)"
)
"""Matches an exact value inside a run without spaces."""
_INNER = compile_on_use(
    rf"(?P<value>{_VALUE})"
    rf"|(?P<han>(?:(?![{_PARTICLES}])[{_HAN}])+)"
    r"|[\u30a0-\u30ff]+"  # Katakana; Hiragana, which carries grammar, is skipped
    rf"|(?P<particle>(?<=[A-Za-z0-9])[\uac00-\ud7a3]+)"
    rf"|(?:\d{{1,9}}(?:[.,]\d{{1,9}}){{0,3}})?{_CLINGING}+"  # with its number: `3개`
    rf"|{_SPACED}+(?:[_.'’]{_SPACED}+)*"
)
HAN_WORD_MAX = 6


@dataclass(slots=True, eq=False)  # if frozen, creating one takes 1.4 µs instead of 0.4
class TextToken:
    """A word or exact value of a text; immutable in practice, as sentences share tokens."""

    stem: str
    """The key of repetition: the word in lower case, without its ending."""
    surface: str
    kind: TokenKind
    capital: bool
    closes: bool
    """Whether punctuation follows, so that it forms no phrase with the next token."""
    cue: float = 1.0
    """Factor of the importance of a sentence with this word."""
    label: bool = False
    """Whether it labels the exact value that follows."""
    notable: bool = False
    """Whether it has a cue, or makes a ruling at the start of a clause or in a pair of words."""


def tokenize(sentence: str) -> tuple[TextToken, ...]:
    """Return the words and exact values of a sentence, in order."""
    return tuple(
        chain.from_iterable(map(_CHUNK_TOKENS.__getitem__, sentence.split(" ")))
    )


def find_keywords(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without commonplace words such as "the"."""
    return frozenset(
        token.stem for token in tokenize(text) if token.kind not in COMMONPLACE_KINDS
    )


def emphasis_factor(words: Sequence[TextToken]) -> float:
    """Return the factor for a sentence's importance by its cue words, 1.0 without any.

    Words of a decision, rule or preference make it `RULING`; a first word such as "ok" lowers it.
    """
    notable = [word for word in words if word.notable]
    if notable and _contains_ruling(words):
        return RULING
    factor = max([word.cue for word in notable], default=1.0)
    if words and factor < RULING:
        factor *= _OPENING_FACTORS.get(words[0].surface.lower(), 1.0)
    return factor


_OPENING_FACTORS = dict.fromkeys(_WORDS["references"], ECHO) | dict.fromkeys(
    _WORDS["answers"], ACKNOWLEDGEMENT
)
"""Factor of a sentence by its first word: an answer or a reference says little alone."""


def _contains_ruling(words: Sequence[TextToken]) -> bool:
    """Return True if an order opens a clause of the sentence, or two words form a ruling."""
    previous = ""
    opens_clause = True
    for index, word in enumerate(words):
        lower = word.surface.lower()
        if word.notable:
            if opens_clause and lower in ORDERS:
                return True
            if (previous, lower) in RULING_PAIRS:
                return True
            if index == 1 and f"{previous} {lower}" in ORDERS:
                return True
        previous, opens_clause = lower, word.closes
    return False


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


_CERTAIN_WORDS = STOP_WORDS | _UNITS_AND_TITLES.keys()


def _tokenize_chunk(chunk: str) -> tuple[TextToken, ...]:
    """Return the tokens of a chunk: the text between two spaces."""
    core = chunk.strip(_EDGE)
    if not core:
        return ()
    closes = not chunk.endswith(core)
    if closes and f"{core}()" in chunk:
        core += "()"  # a call
        closes = not chunk.endswith(core)
    lower = core.lower().replace("’", "'")
    plain = core.isalpha() and core.isascii() and (core.islower() or core.istitle())
    if plain or core in CALENDAR or lower in _CERTAIN_WORDS:
        return (_make_word_token(core, closes=closes),)
    unspaced = not core.isascii() and _UNSPACED_LETTER.search(core)
    is_short = not unspaced and len(core) <= SENTENCE_CHARS_MAX
    if is_short and (kind := _find_exact_kind(core)):
        label = kind is _IDENTIFIER and lower.endswith(LABEL_ENDINGS)
        return (TextToken(lower, core, kind, core[0].isupper(), closes, 1.0, label),)
    if "-" in core and _NAME.fullmatch(core):
        return (_make_word_token(core, closes=closes),)
    return tuple(_split_compound_chunk(core, closes=closes))


def _find_exact_kind(text: str) -> TokenKind | None:
    """Return the kind of an exact value such as a date or a path, or None for other text."""
    exact = _EXACT.fullmatch(text)
    return _KINDS[exact.lastgroup or ""] if exact else None


def _split_compound_chunk(core: str, *, closes: bool) -> Iterator[TextToken]:
    """Yield the tokens of a chunk with several words or values: `a/b`, JSON, Chinese."""
    has_kana = _KANA.search(core) is not None
    for match in _INNER.finditer(core):
        run, end = match[0], match.end()
        tail = core[end : end + 1] != "-" if end < len(core) else closes
        if match["value"]:
            kind = _IDENTIFIER
            if not run.isascii():
                kind = _MONEY if run[-1] in "円元" else _DATE
            yield TextToken(run.lower(), run, kind, capital=False, closes=tail)
        elif match["han"]:
            yield from _split_han_run(run, closes=tail, has_kana=has_kana)
        elif match["particle"]:
            yield TextToken(run, run, _COMMON, capital=False, closes=tail)
        elif exact_kind := _find_exact_kind(run):
            yield TextToken(run.lower(), run, exact_kind, capital=False, closes=tail)
        else:
            yield _make_word_token(run, closes=tail)


def _split_han_run(run: str, *, closes: bool, has_kana: bool) -> Iterator[TextToken]:
    """Yield a token for a short run of Han characters beside kana, or for each word of another run."""
    words = [(0, len(run), "word")]
    if not has_kana or len(run) > HAN_WORD_MAX:
        found = CHINESE_WORDS.finditer(run)
        words = [(*match.span(), match.lastgroup or "") for match in found]
    for start, end, kind in words:
        word = run[start:end]
        if kind.startswith("empty"):
            continue
        has_content = end - start > 1 or (kind == "number" and word != "一")
        is_ruling = has_content and _HAN_RULING.search(word)
        cue = RULING if is_ruling else CUES.get(word, 1.0)
        yield TextToken(
            word,
            word,
            _WORD if has_content else _COMMON,
            capital=False,
            closes=closes and end == len(run),
            cue=cue,
            label=has_content and word.endswith(LABEL_ENDINGS),
            notable=cue > 1,
        )


def _make_word_token(word: str, *, closes: bool) -> TextToken:
    """Return the token of a word; `closes` says whether punctuation follows it."""
    lower = word.lower().replace("’", "'")
    root = light_stem(word)
    cue = CUES.get(lower, 1.0)
    return TextToken(
        root,
        word,
        _classify_word(word, lower, root),
        word[0].isupper(),
        closes,
        cue=cue,
        label=lower in LABELS or lower.endswith(LABEL_ENDINGS),
        notable=cue > 1 or lower in _BINDING,
    )


def _classify_word(word: str, lower: str, root: str) -> TokenKind:
    """Return the kind of a word: calendar, unit, title, stop, number, common or plain word."""
    if word in CALENDAR:
        return _CALENDAR
    if lower in _WORDS["content_words"]:
        return _WORD
    if lower in _UNITS_AND_TITLES:
        return _UNITS_AND_TITLES[lower]
    if not STOP_WORDS.isdisjoint((lower, lower.partition("'")[0])):
        return _STOP
    if word.isdigit():
        return _NUMBER
    letter = len(word) == 1 and word.isascii()
    if letter or root in _COMMON_STEMS or lower in FOREIGN_COMMON:
        return _COMMON
    return _WORD


_CHUNK_TOKENS = WordCache(_tokenize_chunk, entries_max=1 << 13)
"""Tokens by the text between two spaces."""
