"""Names of secrets in a text, and the places behind them where a value may begin.

A name is looked for around its hints; what ties it to a value, in a window of bounded size behind
it: a colon, a copula ("is", "lautet"), or nothing at all. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from mnemosyned.domain.secrets.words import (
    ADVERBS,
    AMBIGUOUS,
    COPULAS,
    HINTS,
    HINTS_BEYOND_ASCII,
    HINTS_OF_LOGINS,
    KEYWORDS,
    LABELS,
    LOGIN_SIGN,
    PREPOSITIONS,
    Label,
)

WINDOW_CHARS = 160
"""How far behind its name a value may begin."""
WORDS_BETWEEN = 10
NAME_CHARS = 48
"""No name reaches farther from its hint, with the words that belong to it."""
CLOSING_QUOTES = "\"'`"
EDGES = "\"'`“”„‘’«»<>()[]{}.,;:!?「」『』"
"""Stripped off a word before it is looked up."""
FIRST_WITHOUT_SPACES = "\u3000"
"""From this character on scripts put no space between words."""


class Name(NamedTuple):
    """A name of a secret in a text."""

    text: str
    low: str
    """The text in lower case."""
    word: str
    label: Label
    start: int
    end: int

    @property
    def spaced(self) -> bool:
        """Whether its script puts spaces between words."""
        return self.word[-1] < FIRST_WITHOUT_SPACES


class Link(NamedTuple):
    """What ties a name to a value: `:`, a copula or nothing, and whether words stand between."""

    sign: str
    start: int
    """Where the value begins."""
    apart: bool


def all_words(*tables: Mapping[str, str]) -> frozenset[str]:
    """The words of all languages in these tables."""
    return frozenset(
        word for table in tables for row in table.values() for word in row.split()
    )


@cache
def _pattern(hint: str) -> re.Pattern[str]:
    """A pattern of the names that have this hint, a group for each label.

    Made when it is first needed: all of them together would delay each start.
    """
    groups = []
    for label, table in LABELS.items():
        names = [name for row in table.values() for name in row if hint in name]
        if names:
            groups.append(f"(?P<{label.name}>{'|'.join(names).replace(' ', '[ _-]')})")
    return re.compile("|".join([_MASKED, *groups]))


_MASKED = r"(?P<MASK>\[secret:\w{1,20}\])"
_SUFFIX = re.compile(r"(?:s\b|_\w{1,30})?")
_LONGER = re.compile(r"[a-z]|[./#]\w")
"""The name is part of a longer word or of a path."""
_BOUNDED = frozenset(Label) - {
    Label.PASSWORD, Label.PHRASE, Label.KEY, Label.NAMED_KEY, Label.TOKEN, Label.BEARER,
}  # fmt: skip
"""Part of a longer word, these are another word: "shopping", "encode"."""
_COLON_ONLY = ("pass", "psk")
"""Verbs and the like, where no colon follows. Scripts without spaces need one, too."""
_ROMANCE = (
    "mot de passe",
    "mdp",
    "contrase",
    "senha",
    "phrase",
    "frase",
    "cl",
    "parola",
)
"""After these a noun or adjective may follow: "mot de passe NETFLIX"."""
_COLON = re.compile(
    r"[\"'`”»)\]]{0,2}\s{0,3}(?::=|=>|->|[:=：＝→]|(?:は|是|为|為|가|는|은)(?=[!-~「『“]))"
    r"\s{0,3}"
)
_COLONS = ("=", ":", "：", "->", "=>")
_ENDS = (".", "!", "?", ";", '"', '",', "',", ")")
TOKEN = re.compile(r"\S{1,100}+")
_SPACE = re.compile(r"[^\S\n]{0,3}")
_COPULAS, _ADVERBS = all_words(COPULAS), all_words(ADVERBS)
_PREPOSITIONS = all_words(PREPOSITIONS)
_ELIDED = ("d'", "l'", "dell'", "all'", "nell'", "d’", "l’", "dell’", "all’")


def find_names(text: str) -> Iterator[Name]:
    """The names of secrets in a text, in order."""
    low = text.lower()
    if len(low) != len(text):  # a few letters are two in lower case
        low = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    for hint, start, stop in _windows(low):
        for match in _pattern(hint).finditer(low, start, stop):
            if match.lastgroup != "MASK" and (name := _name(text, low, match)):
                yield name


def _name(text: str, low: str, match: re.Match[str]) -> Name | None:
    label = Label[match.lastgroup or ""]
    start, end = match.span()
    if suffix := _SUFFIX.match(low, end):
        end = suffix.end()
    if _LONGER.match(low, end) or low.endswith(KEYWORDS, 0, start):
        return None
    if label in _BOUNDED and low[max(0, start - 1) : start].isalnum():
        return None
    return Name(text, low, match[0], label, start, end)


def _windows(low: str) -> Iterator[tuple[str, int, int]]:
    """Where names can stand: around each hint, those that overlap as one; and which hint it is.

    Looking for a hint takes 50 ns, one pattern of all names 1 µs for each character.
    """
    hints: tuple[str, ...] = HINTS if low.isascii() else HINTS + HINTS_BEYOND_ASCII
    if LOGIN_SIGN in low:
        hints += HINTS_OF_LOGINS
    places = []
    for hint in hints:
        if hint in low:
            place = low.find(hint)
            while place >= 0:
                places.append((place, hint))
                place = low.find(hint, place + 1)
    if not places:
        return
    places.sort()
    stop, window = places[0]
    start = max(0, stop - NAME_CHARS)
    for place, hint in places:
        if place - NAME_CHARS > stop:
            yield window, start, stop
            start, window = place - NAME_CHARS, hint
        elif hint != window:
            window = ""  # names of all hints
        stop = place + NAME_CHARS
    yield window, start, stop


def find_links(name: Name) -> Iterator[Link]:
    """Where the value of a name may begin, the likeliest first."""
    text, end = name.text, name.end
    if colon := _COLON.match(text, end):
        yield Link(":", colon.end(), apart=False)
    elif name.spaced and name.word not in _COLON_ONLY and not _is_quoted(name):
        yield from _find_distant_links(name)


def _is_quoted(name: Name) -> bool:
    """Whether the word itself is in quotation marks, as a value or a mention."""
    mark = name.text[name.end : name.end + 1]
    return mark != "" and mark in CLOSING_QUOTES and name.text[name.start - 1] == mark


def _find_distant_links(name: Name) -> Iterator[Link]:
    """Word by word: up to a colon, past copulas, or what follows the name directly."""
    text, low = name.text, name.low
    start = name.end + text.startswith(",", name.end)
    limit = _line_end(text, name.end)
    inside, nouns = False, name.word.startswith(_ROMANCE)
    for count, token in enumerate(TOKEN.finditer(text, start, limit)):
        said, at_name = token[0], token.start() == start
        word = low[token.start() : token.end()].strip(EDGES)
        if count >= WORDS_BETWEEN:
            return
        if said in ("'s", "’s") or (word in _COPULAS and not at_name):
            sign = "" if word in AMBIGUOUS else "is"
            yield Link(
                sign, skip_words(low, token.end(), limit, _ADVERBS), apart=inside
            )
            inside = True
        elif said in _COLONS or (said[-1] in ":：" and word):
            yield Link(":", _skip_spaces(text, token.end()), apart=True)
            return
        elif inside or word in _ADVERBS:
            if word and said.endswith(_ENDS):
                return
        elif word in _PREPOSITIONS or word.startswith(_ELIDED) or said[0] == "(":
            inside = True
        else:
            if not at_name:
                yield Link("", token.start(), apart=False)
            if not nouns or (word and said.endswith(_ENDS)):
                return
            inside = True


def _line_end(text: str, start: int) -> int:
    limit = min(start + WINDOW_CHARS, len(text))
    newline = text.find("\n", start, limit)
    return newline if newline >= 0 else limit


def skip_words(low: str, start: int, limit: int, words: frozenset[str]) -> int:
    """Where the first word begins that is none of these."""
    for token in TOKEN.finditer(low, start, limit):
        if token[0].strip(",") not in words:
            return token.start()
    return limit


def _skip_spaces(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start
