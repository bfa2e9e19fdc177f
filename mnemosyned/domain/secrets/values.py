"""Reads the value after a name, and judges whether it looks like a password, a key or a phrase."""

from __future__ import annotations

import re
from math import log2
from typing import NamedTuple

from mnemosyned.domain.secrets.words import NO_PASSWORDS, PROSE
from mnemosyned.domain.text.sentence_marks import UNSPACED

PASSWORD_CHARS_MIN = 4
VALUE_CHARS_MAX = 4_096
JUDGED_CHARS = 64
"""Characters of a value that are judged, so that a long one takes no more time."""
ENTROPY_MIN = 2.5
"""Bits per character of a random value: "20260317a" has 2.7, a word and a number fewer."""
PHRASE_WORDS = range(3, 13)
PHRASE_CHARS_MAX = 120
QUOTES_MAX = 4
BARE_PHRASE_WORDS = range(4, 9)
"""Words of a phrase after "password:", where a sentence is likelier than after "passphrase:"."""

CLOSING = ".,;:)]}>\"'`“”’»」』。、，"
"""Marks that end a value without being part of it. `!` and `?` may be its last character."""
_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "“”", "‘": "’", "«": "»", "「": "」", "『": "』",
}  # fmt: skip
_RUN = re.compile(rf"\S{{1,{JUDGED_CHARS}}}")
_REST = re.compile(rf"\S{{0,{VALUE_CHARS_MAX}}}")
_OPENING = "\"'`“”„‘’«<(「『"
_NEXT = re.compile(rf"(?<=[!-~])[\u3001-\u303f{UNSPACED}]|[;&][\w ]{{1,40}}=")
"""Another script, or the next of several settings."""
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
SIGNS = "!#$%&*+@^~?_=|\\"
_SPLIT = re.compile(r"[_.:/=-]+")
_WORDS = re.compile(
    r"[^\W\d_]+(?: [^\W\d_]+){2,11}"
    r"(?=[.!?,;)\"'”»]*(?:\n|\s*$|[.!?,;)]\s))"
)
_NO_PHRASE = PROSE | NO_PASSWORDS
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
    bare = run[0].lstrip(_OPENING)
    quotes = min(len(run[0]) - len(bare), QUOTES_MAX)
    words = run[0][quotes:]
    following = _NEXT.search(words, 1)
    if following:
        words = words[: following.start()]
    if following or run.end() < start + JUDGED_CHARS:
        words = words.rstrip(CLOSING)
    return _unquoted(words, start + quotes) if words else None


def _unquoted(words: str, begin: int) -> Value:
    return Value(words, begin, begin + len(words), quoted=False)


def _read_quotation(text: str, start: int) -> Value | None:
    closing = _QUOTES.get(text[start : start + 1])
    if not closing:
        return None
    line = text[start + 1 : start + 1 + JUDGED_CHARS].partition("\n")[0]
    ends = [line.find(mark) for mark in closing]
    end = min((end for end in ends if end > 0), default=0)
    if not end:
        return None
    inside = line[:end]
    begin = start + 1 + len(inside) - len(inside.lstrip())
    inside = inside.strip()
    return Value(inside, begin, begin + len(inside), quoted=True)


def extend_value(text: str, value: Value) -> Value:
    """Return the value up to its end, if it is longer than the part that was judged."""
    if value.quoted or len(value.text) < JUDGED_CHARS - QUOTES_MAX:
        return value
    remainder = _REST.match(text, value.stop)
    stop = remainder.end() if remainder else value.stop
    return _unquoted(text[value.start : stop].rstrip(CLOSING), value.start)


def is_possible(value: str) -> bool:
    """Tell whether it is no blank, placeholder, address, date or piece of code."""
    blank = not value.strip("*•.xX-_")
    if blank or len(value) < PASSWORD_CHARS_MIN:
        return False
    if value.lower().rstrip("!?") in NO_PASSWORDS:
        return False
    return not _UNLIKELY.fullmatch(value)


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
    parts = filter(None, _SPLIT.split(value))
    if all(part.isalpha() or part.isdigit() for part in parts):
        return False
    return _entropy(value) >= ENTROPY_MIN


def _entropy(text: str) -> float:
    """Return Shannon's entropy of the characters of a text, in bits per character."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)


def read_passphrase(text: str, start: int, *, named: bool) -> Value | None:
    """Return the words from here to the end of a sentence, if they can be a passphrase."""
    limit = start + PHRASE_CHARS_MAX
    match = _WORDS.match(text, start, limit)
    if match is None or match.end() == limit < len(text):
        return None
    words = match[0].split(" ")
    low = match[0].lower().split(" ")
    if low[0] in PROSE or _CLAUSE.intersection(low):
        return None
    if named:
        plausible = len(words) in PHRASE_WORDS and low[1] not in PROSE
    else:
        plausible = words == low and _is_bare_phrase(words)
    return _unquoted(match[0], start) if plausible else None


def _is_bare_phrase(words: list[str]) -> bool:
    """Tell whether words in lower case are a phrase and no sentence."""
    if len(words) not in BARE_PHRASE_WORDS or min(map(len, words)) <= 2:
        return False
    return _NO_PHRASE.isdisjoint(words)
