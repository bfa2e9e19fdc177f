"""Finds secrets by their format: tokens, keys, command lines, files and numbers with a checksum.

Sources: the forms that AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI and others document, as
gathered by detect-secrets 1.5 (Apache-2.0) and gitleaks 8 (MIT); ISO/IEC 7812 (cards) and ISO
13616 (IBAN) for the numbers. Every repetition is bounded, so that time is linear.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from mnemosyned.text.details import DetailKind
from mnemosyned.text.rule_files import fill_parts, read_patterns, read_tables
from mnemosyned.text.terms import without_unspaced


class Secret(NamedTuple):
    """The kind of a secret and its position in a text."""

    kind: DetailKind
    start: int
    stop: int


_TABLES = read_tables(__file__, "formats.toml")
TOKEN_HINTS: dict[str, list[str]] = _TABLES["token_hints"]
"""Strings of which every text with a token has one, by a string that they share."""
_TOKENS = re.compile(
    "|".join(
        pattern if "(?P<" in pattern else f"(?P<{kind}>{pattern})"
        for kind, pattern in _TABLES["tokens"].items()
    ).replace("\n", "")
)
_PATTERNS = read_patterns(__file__, "formats.toml")
_BASIC, _SIGNED, _COOKIE, _PAIR, _DIGITS, _NUMBERS = (
    re.compile(_PATTERNS[name])
    for name in ("basic", "signed", "cookies", "cookie", "digits", "numbers")
)
_COOKIE_NAMES = re.compile(_PATTERNS["cookie_names"], re.IGNORECASE)
_PGPASS = re.compile(_PATTERNS["pgpass"], re.MULTILINE)
_COMMANDS = {
    hint: re.compile(fill_parts(pattern.replace("\n", ""), _PATTERNS))
    for hint, pattern in _TABLES["commands"].items()
}
"""Commands that take a password as an argument, by a word of the text that hints at them."""

_CARD_DIGITS = {"34": 15, "37": 15, "30": 14, "36": 14, "38": 14, "35": 16}
"""Digits of card numbers that begin with 3; others have 16."""
_IBAN_CHARS = {code[:2]: int(code[2:]) for code in _TABLES["ibans"].split()}


def find_by_format(text: str) -> list[Secret]:
    """Return the secrets of a known format in a text, such as an AWS key or a card number."""
    if not text.isascii():
        text = without_unspaced(text)  # in which a token ends, as at a space
    secrets: list[Secret] = []
    for sign, hints in TOKEN_HINTS.items():
        # Every text with a token has one of these strings.
        if sign in text and any(hint in text for hint in hints):
            secrets += _find_spans(_TOKENS, text)
            break
    for sign, finders in _FINDERS.items():
        if sign in text:
            for hint, finder in finders:
                if hint in text:
                    secrets += finder(text)
    if " -" in text or "$" in text or "|" in text or " /user" in text:
        for hint, command in _COMMANDS.items():
            if hint in text:
                secrets += _find_spans(command, text)
    if _DIGITS.search(text):
        for match in _NUMBERS.finditer(text):
            kind, measure = _NUMBER_KINDS[match.lastgroup or ""]
            if chars := measure(match[0]):
                secrets.append(Secret(kind, match.start(), match.start() + chars))
    return secrets


def _find_spans(pattern: re.Pattern[str], text: str) -> Iterator[Secret]:
    """Yield a secret for each match of a pattern; the matched group has the name of its kind."""
    for match in pattern.finditer(text):
        if kind := match.lastgroup:
            yield Secret(DetailKind(kind), *match.span(kind))


def _find_basic_auth(text: str) -> Iterator[Secret]:
    """Yield the credentials of `Basic` authentication, `user:password` in base64."""
    for match in _BASIC.finditer(text):
        with suppress(NotBase64):
            if b":" in b64decode(match["token"], validate=True):
                yield Secret(DetailKind.PASSWORD, *match.span("token"))


def _find_pgpass_passwords(text: str) -> Iterator[Secret]:
    """Yield the passwords in lines of a `.pgpass` file, which have five fields."""
    if text.count(":") >= 4:
        yield from _find_spans(_PGPASS, text)


def _find_signatures(text: str) -> Iterator[Secret]:
    """Yield the signatures and tokens in the query of a URL, if they contain a digit."""
    if "?" not in text and "&" not in text:
        return
    for match in _SIGNED.finditer(text):
        kind = DetailKind.SIGNATURE if match["_sig"] else DetailKind.TOKEN
        if any(map(str.isdigit, match["signature"])):
            yield Secret(kind, *match.span("signature"))


def _find_cookies(text: str) -> Iterator[Secret]:
    """Yield the values of cookies whose names are of a session or a login."""
    for match in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *match.span("pairs")):
            if _COOKIE_NAMES.search(text, pair.start(), pair.start("cookie")):
                yield Secret(DetailKind.COOKIE, *pair.span("cookie"))


_FINDER_FUNCTIONS = {
    "basic_auth": _find_basic_auth,
    "pgpass": _find_pgpass_passwords,
    "signatures": _find_signatures,
    "cookies": _find_cookies,
}
_FINDERS: dict[str, list[tuple[str, Callable[[str], Iterator[Secret]]]]] = {}
"""Functions that find secrets, each with a hint without which a text has none, by a string that
several hints share."""
for _format in _TABLES["formats"]:
    if "finder" in _format:
        _finder = _FINDER_FUNCTIONS[_format["finder"]]
    else:
        _finder = partial(_find_spans, re.compile(_format["pattern"].replace("\n", "")))
    _FINDERS.setdefault(_format["sign"], []).append((_format["hint"], _finder))


def _measure_card_number(text: str) -> int:
    """Return the length of the card number at a text's start, or 0 if its check digit is wrong."""
    digits = re.sub(r"\W", "", text)
    wanted = _CARD_DIGITS.get(digits[:2], 0) if digits[0] == "3" else 16
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    checksum = sum(map(int, digits[-1::-2])) + sum(doubled)
    valid = len(digits) == wanted and checksum % 10 == 0
    return len(text) * valid


def _measure_ssn(text: str) -> int:
    """Return the length of the US social security number at a text's start.

    It is 0 if the area number is never issued.
    """
    unused = text.startswith(("000", "666", "9"))
    return len(text) * (not unused)


def _measure_nir(text: str) -> int:
    """Return the length of the French social security number at a text's start.

    It is 0 if the check digits are wrong.
    """
    digits = re.sub(r"\W", "", text)
    number, key = int(digits[:13]), int(digits[13:])
    return len(text) * (97 - number % 97 == key)


def _measure_iban(text: str) -> int:
    """Return the length of the IBAN at the start of a text, with its spaces, or 0 for none."""
    size = _IBAN_CHARS.get(text[:2], 0)
    if not size:
        return 0
    ends = [end for end, char in enumerate(text, start=1) if char != " "][:size]
    if len(ends) < size or text[ends[-1] : ends[-1] + 1].isalnum():
        return 0
    number = text[: ends[-1]].replace(" ", "")
    rotated = number[4:] + number[:4]
    digits = "".join(str(int(char, 36)) for char in rotated)
    return ends[-1] if int(digits) % 97 == 1 else 0


_NUMBER_KINDS: dict[str, tuple[DetailKind, Callable[[str], int]]] = {
    "card": (DetailKind.CARD_NUMBER, _measure_card_number),
    "ssn": (DetailKind.SSN, _measure_ssn),
    "nir": (DetailKind.SSN, _measure_nir),
    "iban": (DetailKind.IBAN, _measure_iban),
}
"""The kind of each number, and a function that returns its length within a match, 0 if invalid."""
