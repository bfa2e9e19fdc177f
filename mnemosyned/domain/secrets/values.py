"""Reads the value after a name, and judges whether it looks like a password, a key or a phrase."""

from __future__ import annotations

import re
from math import log2
from typing import NamedTuple

from mnemosyned.domain.secrets.words import NO_PASSWORDS, PROSE

PASSWORD_CHARS_MIN = 4
VALUE_CHARS_MAX = 4_096
JUDGED_CHARS = 64
"""Characters of a value that are judged, so that a long one takes no more time."""
ENTROPY_MIN = 2.5
"""Bits per character of a random value: "20260317a" has 2.7, a word and a number fewer."""
PHRASE_WORDS = range(3, 13)
QUOTES_MAX = 4
BARE_PHRASE_WORDS = range(4, 9)
"""Words of a phrase after "password:", where a sentence is likelier than after "passphrase:"."""

CLOSING = ".,;:)]}>\"'`“”’»」』。、，"
"""Marks that end a value without being part of it. `!` and `?` may be its last character."""
_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "“”", "‘": "’", "«": "»", "「": "」", "『": "』",
}  # fmt: skip
_RUN = re.compile(rf"\S{{1,{JUDGED_CHARS}}}+")
_REST = re.compile(rf"\S{{0,{VALUE_CHARS_MAX}}}+")
_NEXT = re.compile(
    r"(?<=[!-~])[\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7a3]|[;&][\w ]{1,40}="
)
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
SIGNS = "!#$%&*+@^~?_=|\\"
_SPLIT = re.compile(r"[_.:/=-]+")
_WORDS = re.compile(
    r"[^\W\d_]+(?: [^\W\d_]+){2,11}"
    r"(?=[.!?,;)\"'”»]*(?:\n|\s*$|[.!?,;)]\s))"
)
_CLAUSE = frozenset(
    "than should must is are not be was has ist sind est sont es è sono doit".split()
)
_UNLIKELY = re.compile(
    r"[\W_]{1,99}"  # no letter or digit
    r"|[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"  # an address
    r"|\w{1,20}://.*|(?:\.{0,2}/|~/).*"  # a URL, a path
    r"|\d{1,4}([./-])\d{1,2}\1\d{1,4}|\d{1,2}:\d\d(?::\d\d)?(?:[ap]m)?"  # a date, a time
    r"|v?\d{1,9}(?:[.,]\d{1,9}){1,8}\w{0,4}|\d{1,9}(?:[a-z]{1,3}|%)|[#§]\d{1,9}"  # a version
    r"|[A-Za-z_.]{1,99}:\d{1,9}|[A-Za-z_.][\w.]{0,99}[\[(].*|.*\(\).*"  # code
    r"|(?:self|this|cls|args|opts|options|config|settings|request|req|env|os|params|ctx)\..*"
    r"|\w{0,40}(?:passw|pwd|user|cred|auth)[a-z_]*|%[sdr(].*|[A-Za-z_]{1,40}=(?:[\"'].*)?"
    r"|[A-Za-z_-]{1,40}=[\"'].*|(?:[$%]\w*[{(]|\$[A-Za-z_]|[{<\[\\]|--).*"  # a variable
    r"|[xX•.*-]{1,99}",  # a blank
    re.DOTALL,
)


class Value(NamedTuple):
    """The text after a name, and whether it is in quotation marks."""

    text: str
    start: int
    stop: int
    quoted: bool


def read_value(text: str, start: int) -> Value | None:
    """Return the quotation that begins here, or else the run of characters."""
    if quotation := _read_quotation(text, start):
        return quotation
    run = _RUN.match(text, start)
    if run is None:
        return None
    begin, words = start, run[0]
    while words and begin < start + QUOTES_MAX and words[0] in "\"'`“”„‘’«<(「『":
        begin, words = begin + 1, words[1:]
    if following := _NEXT.search(
        words, 1
    ):  # another script, or the next of several settings
        words = words[: following.start()]
    elif begin + len(words) == start + JUDGED_CHARS:
        return Value(words, begin, begin + len(words), quoted=False)
    words = words.rstrip(CLOSING)
    return Value(words, begin, begin + len(words), quoted=False) if words else None


def _read_quotation(text: str, start: int) -> Value | None:
    closing = _QUOTES.get(text[start : start + 1])
    if not closing:
        return None
    line = text[start + 1 : start + 1 + JUDGED_CHARS].partition("\n")[0]
    ends = [end for mark in closing if (end := line.find(mark)) > 0]
    if not ends:
        return None
    inside = line[: min(ends)]
    begin = start + 1 + len(inside) - len(inside.lstrip())
    inside = inside.strip()
    return Value(inside, begin, begin + len(inside), quoted=True)


def extend_value(text: str, value: Value) -> Value:
    """Return the value up to its end, if it is longer than the part that was judged."""
    if value.quoted or len(value.text) < JUDGED_CHARS - QUOTES_MAX:
        return value
    remainder = _REST.match(text, value.stop)
    words = (value.text + remainder[0] if remainder else value.text).rstrip(CLOSING)
    return Value(words, value.start, value.start + len(words), quoted=False)


def is_possible(value: str) -> bool:
    """Tell whether it is no blank, placeholder, address, date or piece of code."""
    return (
        len(value) >= PASSWORD_CHARS_MIN
        and value.lower().rstrip("!?") not in NO_PASSWORDS
        and bool(value.strip("*•.xX-_"))
        and not _UNLIKELY.fullmatch(value)
    )


def is_strong(value: str, *, signs: str = SIGNS) -> bool:
    """Tell whether a possible value is no word: letters with digits or signs among them."""
    inside = value.rstrip("!?")
    if not _LETTER.search(inside):
        return False
    return bool(_DIGIT.search(inside)) or not set(signs).isdisjoint(inside)


def is_random(value: str, least: int) -> bool:
    """Tell whether letters and digits mix as in no word, number or identifier."""
    if len(value) < least:
        return False
    value = value[:JUDGED_CHARS]
    if not _DIGIT.search(value) or not _LETTER.search(value):
        return False
    if all(part.isalpha() or part.isdigit() for part in _SPLIT.split(value) if part):
        return False
    counts = [value.count(char) for char in set(value)]
    return -sum(n / len(value) * log2(n / len(value)) for n in counts) >= ENTROPY_MIN


def read_passphrase(text: str, start: int, *, named: bool) -> Value | None:
    """Return the words from here to the end of a sentence, if they can be a passphrase."""
    match = _WORDS.match(text, start, start + 120)
    if match is None or (match.end() == start + 120 < len(text)):
        return None
    words = match[0].split(" ")
    low = [word.lower() for word in words]
    if low[0] in PROSE or _CLAUSE.intersection(low):
        return None
    if named:
        plausible = len(words) in PHRASE_WORDS and low[1] not in PROSE
    else:
        plausible = words == low and _is_bare_phrase(words)
    return Value(match[0], *match.span(), quoted=False) if plausible else None


def _is_bare_phrase(words: list[str]) -> bool:
    """Tell whether words in lower case are a phrase and no sentence."""
    return (
        len(words) in BARE_PHRASE_WORDS
        and min(map(len, words)) > 2
        and not PROSE.intersection(words)
        and not NO_PASSWORDS.intersection(words)
    )
