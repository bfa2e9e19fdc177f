"""How a text is read for search: the words, codes and character pairs of a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from string import ascii_letters

from mnemosyned.domain.text.accent_variants import accent_variants
from mnemosyned.domain.text.foreign_stopwords import foreign_stop_words
from mnemosyned.domain.text.irregular_forms import other_forms
from mnemosyned.domain.text.stemming import WORD, fold_case
from mnemosyned.domain.text.stopwords import FUNCTION_WORDS, STOP_WORDS

TERMS_MAX = 48
"""A longer question is cut here: each further word costs time and adds little."""
PHRASE_TOKENS_MAX = 12
"""A longer code is looked for by its beginning. Each token of a phrase is compared wherever the
first one stands: `0,0,0,…` against a text of zeros takes the product of their lengths."""

# Scripts written without spaces, and Hangul, whose particles cling to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_CASES = bytes.maketrans(ascii_letters.encode(), b"a" * 26 + b"A" * 26)
_CAMEL_WORD = re.compile(r"\b[^\W\d_]*[a-z][A-Z]\w*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Terms:
    """What to look for."""

    words: tuple[str, ...]
    """Words as typed, as the index folds case in its own way (it keeps the `ß` that Python's
    `casefold` gives up), and codes such as `QX-48213`, which only match with their parts side
    by side."""
    grams: tuple[str, ...]
    """Character pairs of scripts without spaces."""

    def forms(self, word: str) -> tuple[str, ...]:
        """What the index is asked for one of the words: also `bought` for `buy`."""
        return (word, *other_forms(fold_case(word)), *accent_variants(word))

    def __bool__(self) -> bool:
        return bool(self.words or self.grams)


def terms(text: str) -> Terms:
    """Read a question: stop words go, unless there is nothing else."""
    found: dict[str, str] = {}
    stopped: dict[str, str] = {}
    for raw in _UNSPACED_RUN.sub(" ", text).split():
        token = _POSSESSIVE.sub("", _EDGES.sub("", raw))
        for word in _parts(token):
            lower = word.lower()
            (stopped if lower in FUNCTION_WORDS else found).setdefault(lower, word)
    for lower in foreign_stop_words(found.keys() | stopped.keys()):
        if lower in found:
            stopped[lower] = found.pop(lower)
    grams = tuple(dict.fromkeys(_pairs(text)))[:TERMS_MAX]
    words = found or ({} if grams else stopped)
    return Terms(tuple(words.values())[:TERMS_MAX], grams)


def content_terms(text: str) -> Terms:
    """The same without words that carry no content of their own, even if there is nothing else."""
    found = terms(text)
    return Terms(
        tuple(word for word in found.words if word.lower() not in STOP_WORDS),
        found.grams,
    )


def grams(text: str) -> str:
    """What the second index holds of a text: character pairs, and the parts of camelCase names.

    Empty for most texts. A change here needs a migration that rebuilds that index.
    """
    parts = [] if text.isascii() else _pairs(text)
    if b"aA" in text.encode().translate(_CASES):  # a tenth of the time of the pattern
        for name in _CAMEL_WORD.findall(text):
            parts.extend(_CAMEL_PART.findall(name))
    return " ".join(parts)


def has_unspaced_script(text: str) -> bool:
    """Whether some of it is written in a script without spaces."""
    return _UNSPACED_RUN.search(text) is not None


def _parts(token: str) -> list[str]:
    """A compound such as `mother/daughter` also counts by its words; a code stays whole."""
    token = _cut(token)
    words = _WORD.findall(token)
    if len(words) <= 1 or any(char.isdigit() for char in token):
        return [token] if words else []
    if token.casefold() in FUNCTION_WORDS:
        return [token]
    return [token, *(word for word in words if len(word) > 1)]


def _cut(token: str) -> str:
    """The beginning of a token, with as many of the index's tokens as a phrase may have."""
    ends = [part.end() for part in islice(WORD.finditer(token), PHRASE_TOKENS_MAX)]
    return token[: ends[-1]] if len(ends) == PHRASE_TOKENS_MAX else token


def _pairs(text: str) -> list[str]:
    pairs: list[str] = []
    for run in _UNSPACED_RUN.findall(text):
        pairs.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return pairs
