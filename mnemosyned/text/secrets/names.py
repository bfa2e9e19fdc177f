"""Finds the names of secrets in a text, and the positions after them where a value may begin.

Names are searched for around their hints. A value follows its name directly, or after a colon or
a copula ("is", "lautet") within a bounded window. Time is linear in the text. The words of all
languages are in `names.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.terms import has_unspaced_script

_TABLES = read_tables(__file__, "names.toml")


def words_in_tables(*tables: str) -> frozenset[str]:
    """Return the words of all languages in these tables of `names.toml`."""
    rows = [row for table in tables for row in _TABLES[table].values()]
    return frozenset(" ".join(rows).split())


LABELS: dict[str, dict[str, list[str]]] = _TABLES["labels"]
"""Patterns of the names with each label, by language."""
HINTS: tuple[str, ...] = tuple(_TABLES["hints"])
HINTS_BEYOND_ASCII = tuple(_TABLES["hints_beyond_ascii"])
HINTS_OF_LOGINS = tuple(_TABLES["hints_of_logins"])
LOGIN_SIGN = " / "
COPULAS, ADVERBS = words_in_tables("copulas"), words_in_tables("adverbs")
FROM_TO: dict[str, set[str]] = {}
"""Words between an old and a new value, by the word before the old one."""
for _from, _to in _TABLES["from_to"].values():
    FROM_TO.setdefault(_from, set()).update(_to.split("|"))
NO_PASSWORDS = frozenset(_TABLES["no_passwords"].split())
PROSE = frozenset(_TABLES["prose"].split())

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


class SecretName(NamedTuple):
    """A name of a secret, such as "password", and its position in a text."""

    text: str
    low: str
    """The text in lower case."""
    word: str
    label: str
    """Its key in `LABELS`, the kind of value that it announces."""
    start: int
    end: int

    @property
    def has_spaces(self) -> bool:
        """Whether the name is in a script that puts spaces between words."""
        return self.word[-1] < FIRST_WITHOUT_SPACES


class ValueLink(NamedTuple):
    """A place where the value of a secret may begin, and how its name leads there."""

    sign: str
    """`:`, `is` for a copula, or empty."""
    start: int
    """Start of the value."""
    apart: bool
    """Whether other words separate the name from its value."""


@cache
def _compile_names_pattern(hint: str) -> re.Pattern[str]:
    """Return a pattern of all secret names with `hint` in them, one group for each kind of value.

    It is compiled on first use: all of them together would delay every start.
    """
    groups = [_MASKED]
    for label, table in LABELS.items():
        all_names = chain.from_iterable(table.values())
        names = "|".join(name for name in all_names if hint in name)
        if names:
            names = names.replace(" ", "[ _-]")
            groups.append(f"(?P<{label}>{names})")
    return re.compile("|".join(groups))


_MASKED = r"(?P<MASK>\[secret:\w{1,20}\])"
_SUFFIX = re.compile(r"(?:s\b|_\w{1,30})?")
_LONGER = re.compile(r"[a-z]|[./#]\w")
"""Follows a name that is part of a longer word or of a path."""
_BOUNDED = frozenset("pass code combination login_code seed answer login".split())
"""Labels whose names must begin a word: "shopping" has "pin", "encode" has "code"."""
_COLON_ONLY = ("pass", "psk")
"""Names that are other words unless a colon follows. Scripts without spaces need one, too."""
_ROMANCE = (
    "mot de passe", "mdp", "contrase", "senha", "phrase", "frase", "cl", "parola",
)  # fmt: skip
"""Names that a noun or adjective may follow: "mot de passe NETFLIX"."""
_COLON = re.compile(
    r"[\"'`”»)\]]{0,2}\s{0,3}(?::=|=>|->|[:=：＝→]|(?:は|是|为|為|가|는|은)(?=[!-~「『“]))"
    r"\s{0,3}"
)
_COLONS = ("=", ":", "：", "->", "=>")
_ENDS = (".", "!", "?", ";", '"', '",', "',", ")")
TOKEN = re.compile(r"\S{1,100}")
_SPACE = re.compile(r"[^\S\n]{0,3}")
_PREPOSITIONS = words_in_tables("prepositions")
_AMBIGUOUS_COPULAS = frozenset(_TABLES["ambiguous_copulas"])
_KEYWORDS = tuple(_TABLES["keywords"])
_ELIDED = ("d'", "l'", "dell'", "all'", "nell'", "d’", "l’", "dell’", "all’")


def find_names(text: str) -> Iterator[SecretName]:
    """Yield each name of a secret in a text, such as "password" or "API key", in order."""
    low = text.lower()
    if len(low) != len(text):
        # A letter whose lower case is two letters stays, so that positions agree.
        low = "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
    for hint, start, stop in _find_name_windows(low):
        for match in _compile_names_pattern(hint).finditer(low, start, stop):
            begin, label = match.start(), match.lastgroup or ""
            suffix = _SUFFIX.match(low, match.end())
            end = suffix.end() if suffix else match.end()
            # In a longer word or a term such as "mot clé", a name is none.
            if label == "MASK" or _LONGER.match(low, end):
                continue
            before = low[max(0, begin - 1) : begin]
            within_word = before.isalnum() and not has_unspaced_script(before)
            if low.endswith(_KEYWORDS, 0, begin) or (within_word and label in _BOUNDED):
                continue
            yield SecretName(text, low, match[0], label, begin, end)


def _find_name_windows(low: str) -> Iterator[tuple[str, int, int]]:
    """Yield (hint, start, end) of each part of a lower-case text that may have secret names in it.

    A hint is a string such as "passw", of which every name contains one. Overlapping parts are
    joined; the hint is empty if a part has several. Searching for a hint takes 50 ns, one pattern
    of all names 1 µs for each character.
    """
    hints = HINTS if low.isascii() else HINTS + HINTS_BEYOND_ASCII
    if LOGIN_SIGN in low:
        hints += HINTS_OF_LOGINS
    present = [hint for hint in hints if hint in low]  # in half of the time of `find`
    hits = []
    for hint in present:
        position = low.find(hint)
        while position >= 0:
            hits.append((position, hint))
            position = low.find(hint, position + 1)
    if not hits:
        return
    hits.sort()
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


def find_value_links(name: SecretName) -> Iterator[ValueLink]:
    """Yield the places after a name where its secret value may begin, the likeliest first."""
    text, end = name.text, name.end
    if colon := _COLON.match(text, end):
        yield ValueLink(":", colon.end(), apart=False)
        return
    mark = text[end : end + 1]
    is_quoted = mark and mark in CLOSING_QUOTES and text[name.start - 1] == mark
    if name.word not in _COLON_ONLY and name.has_spaces and not is_quoted:
        yield from _find_distant_links(name)


def _find_distant_links(name: SecretName) -> Iterator[ValueLink]:
    """Yield the places where a value may begin, word by word after a secret's name.

    A value may follow a colon, a copula such as "is", or the name directly.
    """
    text = name.text
    start = name.end + text.startswith(",", name.end)
    limit = min(name.end + WINDOW_CHARS, len(text))
    newline = text.find("\n", name.end, limit)
    limit = newline if newline >= 0 else limit
    inside = False
    for token in islice(TOKEN.finditer(text, start, limit), WORDS_BETWEEN):
        raw, adjacent = token[0], token.start() == start
        word = name.low[token.start() : token.end()].strip(EDGES)
        if raw in ("'s", "’s") or (word in COPULAS and not adjacent):
            value_start = skip_words(name.low, token.end(), limit, ADVERBS)
            sign = "" if word in _AMBIGUOUS_COPULAS else "is"
            yield ValueLink(sign, value_start, apart=inside)
            inside = True
            continue
        if raw in _COLONS or (word and raw[-1] in ":："):
            space = _SPACE.match(text, token.end())
            yield ValueLink(":", space.end() if space else token.end(), apart=True)
            return
        ends_clause = word and raw.endswith(_ENDS)
        if inside or word in ADVERBS:
            if ends_clause:
                return
            continue
        inside = True
        # An attribute may follow: "the password OF the router".
        if raw[0] == "(" or word in _PREPOSITIONS or word.startswith(_ELIDED):
            continue
        if not adjacent:
            yield ValueLink("", token.start(), apart=False)
        if ends_clause or not name.word.startswith(_ROMANCE):
            return


def skip_words(low: str, start: int, limit: int, words: frozenset[str]) -> int:
    """Return the position of the first word from `start` on that is not in `words`.

    It is `limit` if there is none before. `low` is the text in lower case.
    """
    for token in TOKEN.finditer(low, start, limit):
        if token[0].strip(",") not in words:
            return token.start()
    return limit
