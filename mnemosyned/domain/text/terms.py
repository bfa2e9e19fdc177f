"""Parses texts into search terms: words, codes, and character pairs of unspaced scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from string import ascii_letters

from mnemosyned.domain.text.sentence_marks import UNSPACED
from mnemosyned.domain.text.stemming import WORD, fold_case
from mnemosyned.domain.text.words.accent_variants import accent_variants
from mnemosyned.domain.text.words.compounds import joins
from mnemosyned.domain.text.words.foreign_stopwords import foreign_stop_words
from mnemosyned.domain.text.words.irregular_forms import other_forms
from mnemosyned.domain.text.words.stopwords import FUNCTION_WORDS, STOP_WORDS

TERMS_MAX = 48
"""Terms of a question; each further one costs time and adds little."""
PHRASE_TOKENS_MAX = 12
"""Tokens of a code that are searched for. FTS5 compares each token of a phrase wherever the first
one occurs: `0,0,0,…` in a text of zeros takes the product of their lengths."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_SPACED_BYTES = bytes(range(0xE0)) + b"\xe2"
"""First bytes, in UTF-8, of letters that are in no script without spaces, and of common signs."""
_LETTER = re.compile("[^\\W_]|[\u0300-\u036f]")
_CASES = bytes.maketrans(ascii_letters.encode(), b"a" * 26 + b"A" * 26)
_CAMEL_WORD = re.compile(r"\b[^\W\d_]*[a-z][A-Z]\w*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a search."""

    words: tuple[str, ...]
    """Words as typed, as the index folds case in its own way (it keeps the `ß` that Python's
    `casefold` replaces), and codes such as `QX-48213`, which match only as phrases."""
    grams: tuple[str, ...]
    """Character pairs of scripts without spaces."""
    joins: tuple[tuple[str, str], ...] = ()
    """Words with the form in which they would be joined with a neighbor: `call` and `oncall`."""

    def forms(self, word: str) -> tuple[str, ...]:
        """Return the forms of a word to search for, such as `bought` for `buy`."""
        return (word, *other_forms(fold_case(word)), *accent_variants(word))

    def __bool__(self) -> bool:
        return bool(self.words or self.grams)


def terms(text: str) -> Terms:
    """Parse a question; stop words are dropped unless there is nothing else."""
    words = _words(text)
    stopped = FUNCTION_WORDS | foreign_stop_words(words.keys())
    content = [word for lower, word in words.items() if lower not in stopped]
    grams = tuple(dict.fromkeys(_pairs(text)))[:TERMS_MAX]
    if not content and not grams:
        content = list(words.values())
    return Terms(tuple(content[:TERMS_MAX]), grams, joins(text, content))


def _words(text: str) -> dict[str, str]:
    """Return the words of a question as typed, each once, by their lower case."""
    words: dict[str, str] = {}
    for raw in _UNSPACED_RUN.sub(" ", text).split():
        token = _POSSESSIVE.sub("", _EDGES.sub("", raw))
        for word in _parts(token):
            words.setdefault(word.lower(), word)
    return words


def content_terms(text: str) -> Terms:
    """Parse a question without any stop word, even if there is nothing else."""
    parsed = terms(text)
    return Terms(
        tuple(word for word in parsed.words if word.lower() not in STOP_WORDS),
        parsed.grams,
        parsed.joins,
    )


def grams(text: str) -> str:
    """Return the text for the second index: character pairs, and the parts of camelCase names.

    It is empty for most texts. A change here needs a migration that rebuilds that index.
    """
    parts = [] if text.isascii() else _pairs(text)
    if b"aA" in text.encode().translate(_CASES):  # a tenth of the time of the pattern
        for name in _CAMEL_WORD.findall(text):
            parts.extend(_CAMEL_PART.findall(name))
    return " ".join(parts)


def glued_words(text: str) -> list[str]:
    """Return the words and codes that touch a script without spaces: `v1.2` of `版本v1.2已发布`.

    The index keeps each of them and the letters that it touches as one word.
    """
    if not may_be_unspaced(text):
        return []
    glued: list[str] = []
    pieces = _UNSPACED_RUN.split(text)
    last = len(pieces) - 1
    for number, piece in enumerate(pieces):
        begins = number > 0 and _LETTER.match(piece)
        ends = number < last and _LETTER.match(piece[-1:])
        if begins or ends:
            words = piece.split()
            if begins:
                glued.append(words[0])
            if ends and not (begins and len(words) == 1):
                glued.append(words[-1])
    return glued


def with_words_apart(text: str) -> str:
    """Return the text with spaces around each part in a script without spaces."""
    return _UNSPACED_RUN.sub(r" \g<0> ", text) if may_be_unspaced(text) else text


def without_unspaced(text: str) -> str:
    """Return the text with `。` for each letter of a script without spaces, at the same places."""
    if not may_be_unspaced(text):
        return text
    return _UNSPACED_RUN.sub(lambda run: "。" * len(run[0]), text)


def may_be_unspaced(text: str) -> bool:
    """Tell whether a text may have a script without spaces; in a tenth of the time of a pattern."""
    if text.isascii():
        return False
    return bool(text.encode("utf-8", "surrogatepass").translate(None, _SPACED_BYTES))


def has_unspaced_script(text: str) -> bool:
    """Tell whether part of a text is in a script without spaces."""
    return _UNSPACED_RUN.search(text) is not None


def _parts(token: str) -> list[str]:
    """Return a compound such as `mother/daughter` with its words; a code stays whole."""
    token = _cut(token)
    words = _WORD.findall(token)
    if not words:
        return []
    is_code = len(words) == 1 or any(map(str.isdigit, token))
    if is_code or token.casefold() in FUNCTION_WORDS:
        return [token]
    return [token, *(word for word in words if len(word) > 1)]


def _cut(token: str) -> str:
    """Return the beginning of a token, with as many index tokens as a phrase may have."""
    ends = [part.end() for part in islice(WORD.finditer(token), PHRASE_TOKENS_MAX)]
    return token[: ends[-1]] if len(ends) == PHRASE_TOKENS_MAX else token


def _pairs(text: str) -> list[str]:
    pairs: list[str] = []
    for run in _UNSPACED_RUN.findall(text):
        pairs.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return pairs
