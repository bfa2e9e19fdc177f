"""Finds the names of secrets in a text, and the positions after them where a value may begin.

Names are searched for around their hints. A value follows its name directly, or after a colon or a
copula ("is", "lautet") within a bounded window. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice
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
from mnemosyned.domain.text.terms import has_unspaced_script

WINDOW_CHARS = 160
"""Distance from the end of a name within which its value must begin."""
WORDS_BETWEEN = 10
NAME_CHARS = 48
"""Longest reach of a name on either side of its hint."""
CLOSING_QUOTES = "\"'`"
EDGES = "\"'`“”„‘’«»<>()[]{}.,;:!?「」『』"
"""Stripped off a word before it is looked up."""
FIRST_WITHOUT_SPACES = "\u3000"
"""First character of the scripts without spaces between words."""


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
        """Tell whether its script puts spaces between words."""
        return self.word[-1] < FIRST_WITHOUT_SPACES


class Link(NamedTuple):
    """The connection of a name to its value."""

    sign: str
    """`:`, `is` for a copula, or empty."""
    start: int
    """Position where the value begins."""
    apart: bool
    """Whether other words separate the name from its value."""


def all_words(*tables: Mapping[str, str]) -> frozenset[str]:
    """Return the words of all languages in these tables."""
    rows = [row for table in tables for row in table.values()]
    return frozenset(" ".join(rows).split())


@cache
def _pattern(hint: str) -> re.Pattern[str]:
    """Compile a pattern of the names with this hint, one group per label.

    Compiled on first use: all of them together would delay every start.
    """
    groups = [_MASKED]
    for label, table in LABELS.items():
        all_names = chain.from_iterable(table.values())
        names = "|".join(name for name in all_names if hint in name)
        if names:
            names = names.replace(" ", "[ _-]")
            groups.append(f"(?P<{label.name}>{names})")
    return re.compile("|".join(groups))


_MASKED = r"(?P<MASK>\[secret:\w{1,20}\])"
_SUFFIX = re.compile(r"(?:s\b|_\w{1,30})?")
_LONGER = re.compile(r"[a-z]|[./#]\w")
"""Follows a name that is part of a longer word or of a path."""
_BOUNDED = frozenset(Label) - {
    Label.PASSWORD, Label.PHRASE, Label.KEY, Label.NAMED_KEY, Label.TOKEN, Label.BEARER,
}  # fmt: skip
"""Labels whose names must begin a word: "shopping" has "pin", "encode" has "code"."""
_COLON_ONLY = ("pass", "psk")
"""Names that are other words unless a colon follows. Scripts without spaces need one, too."""
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
"""Names that a noun or adjective may follow: "mot de passe NETFLIX"."""
_COLON = re.compile(
    r"[\"'`”»)\]]{0,2}\s{0,3}(?::=|=>|->|[:=：＝→]|(?:は|是|为|為|가|는|은)(?=[!-~「『“]))"
    r"\s{0,3}"
)
_COLONS = ("=", ":", "：", "->", "=>")
_ENDS = (".", "!", "?", ";", '"', '",', "',", ")")
TOKEN = re.compile(r"\S{1,100}")
_SPACE = re.compile(r"[^\S\n]{0,3}")
_COPULAS, _ADVERBS = all_words(COPULAS), all_words(ADVERBS)
_PREPOSITIONS = all_words(PREPOSITIONS)
_ELIDED = ("d'", "l'", "dell'", "all'", "nell'", "d’", "l’", "dell’", "all’")


def find_names(text: str) -> Iterator[Name]:
    """Yield the names of secrets in a text, in order."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(map(_single_lower, text))
    for hint, start, stop in _windows(low):
        for match in _pattern(hint).finditer(low, start, stop):
            if match.lastgroup != "MASK" and (name := _name(text, low, match)):
                yield name


def _single_lower(char: str) -> str:
    """Return a letter in lower case, unless that is two letters."""
    lower = char.lower()
    return lower if len(lower) == 1 else char


def _name(text: str, low: str, match: re.Match[str]) -> Name | None:
    label = Label[match.lastgroup or ""]
    start = match.start()
    end = _end(_SUFFIX, low, match.end())
    if _LONGER.match(low, end) or low.endswith(KEYWORDS, 0, start):
        return None
    before = low[max(0, start - 1) : start]
    within_word = before.isalnum() and not has_unspaced_script(before)
    if within_word and label in _BOUNDED:
        return None
    return Name(text, low, match[0], label, start, end)


def _windows(low: str) -> Iterator[tuple[str, int, int]]:
    """Yield the windows that can contain names, with their hint; overlapping windows are joined.

    Searching for a hint takes 50 ns, one pattern of all names 1 µs for each character.
    """
    hits = _hint_positions(low)
    if not hits:
        return
    stop, window = hits[0]
    start = max(0, stop - NAME_CHARS)
    for position, hint in hits:
        if position - NAME_CHARS > stop:
            yield window, start, stop
            start, window = position - NAME_CHARS, hint
        elif hint != window:
            window = ""  # names of all hints
        stop = position + NAME_CHARS
    yield window, start, stop


def _hint_positions(low: str) -> list[tuple[int, str]]:
    """Return the hints in a text with their positions, in order."""
    hints: tuple[str, ...] = HINTS if low.isascii() else HINTS + HINTS_BEYOND_ASCII
    if LOGIN_SIGN in low:
        hints += HINTS_OF_LOGINS
    present = [hint for hint in hints if hint in low]  # in half of the time of `find`
    hits = []
    for hint in present:
        position = low.find(hint)
        while position >= 0:
            hits.append((position, hint))
            position = low.find(hint, position + 1)
    hits.sort()
    return hits


def find_links(name: Name) -> Iterator[Link]:
    """Yield the links to where the value of a name may begin, the likeliest first."""
    text, end = name.text, name.end
    if colon := _COLON.match(text, end):
        yield Link(":", colon.end(), apart=False)
        return
    needs_colon = name.word in _COLON_ONLY or not name.spaced
    if not needs_colon and not _is_quoted(name):
        yield from _find_distant_links(name)


def _is_quoted(name: Name) -> bool:
    """Tell whether the name itself is in quotation marks, as a value or a mention."""
    mark = name.text[name.end : name.end + 1]
    return mark != "" and mark in CLOSING_QUOTES and name.text[name.start - 1] == mark


def _find_distant_links(name: Name) -> Iterator[Link]:
    """Yield links word by word: after a colon, after copulas, or directly after the name."""
    text, low = name.text, name.low
    start = name.end + text.startswith(",", name.end)
    limit = _line_end(text, name.end)
    inside = False
    for token in islice(TOKEN.finditer(text, start, limit), WORDS_BETWEEN):
        raw, adjacent = token[0], token.start() == start
        word = low[token.start() : token.end()].strip(EDGES)
        if _is_copula(raw, word, adjacent=adjacent):
            value_start = skip_words(low, token.end(), limit, _ADVERBS)
            yield Link(_sign_of(word), value_start, apart=inside)
            inside = True
            continue
        if _is_colon(raw, word):
            yield Link(":", _end(_SPACE, text, token.end()), apart=True)
            return
        if inside or word in _ADVERBS:
            if _ends_clause(raw, word):
                return
            continue
        inside = True
        if _opens_attribute(raw, word):
            continue
        if not adjacent:
            yield Link("", token.start(), apart=False)
        if not _may_name_go_on(name, raw, word):
            return


def _sign_of(copula: str) -> str:
    return "" if copula in AMBIGUOUS else "is"


def _may_name_go_on(name: Name, raw: str, word: str) -> bool:
    """Tell whether the word after a name may belong to it: "mot de passe NETFLIX"."""
    return name.word.startswith(_ROMANCE) and not _ends_clause(raw, word)


def _ends_clause(raw: str, word: str) -> bool:
    return word != "" and raw.endswith(_ENDS)


def _is_copula(raw: str, word: str, *, adjacent: bool) -> bool:
    return raw in ("'s", "’s") or (word in _COPULAS and not adjacent)


def _is_colon(raw: str, word: str) -> bool:
    return raw in _COLONS or (raw[-1] in ":：" and word != "")


def _opens_attribute(raw: str, word: str) -> bool:
    """Tell whether a word begins an attribute of the name: "the password OF the router"."""
    return raw[0] == "(" or word in _PREPOSITIONS or word.startswith(_ELIDED)


def _line_end(text: str, start: int) -> int:
    limit = min(start + WINDOW_CHARS, len(text))
    newline = text.find("\n", start, limit)
    return newline if newline >= 0 else limit


def skip_words(low: str, start: int, limit: int, words: frozenset[str]) -> int:
    """Return where the first word begins that is not one of these."""
    for token in TOKEN.finditer(low, start, limit):
        if token[0].strip(",") not in words:
            return token.start()
    return limit


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a pattern that may match nothing ends."""
    match = pattern.match(text, start)
    return match.end() if match else start
