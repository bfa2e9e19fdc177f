"""Finds the secrets of a text, and masks them, together with known secrets of other texts.

Two sets of rules find them: formats that are secrets wherever they occur, and values that follow
a name such as `password` or `API key`. The second set is written for prose, not for code.

Sources of the formats: the forms that AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI and others
document, as gathered by detect-secrets 1.5 (Apache-2.0) and gitleaks 8 (MIT); ISO/IEC 7812 (cards)
and ISO 13616 (IBAN) for the numbers. Every repetition is bounded, so that time is linear.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from mnemosyned.text import rule_files, terms
from mnemosyned.text.details import SECRET_KINDS, Detail, DetailKind, Secret
from mnemosyned.text.secrets.prose import find_by_name
from mnemosyned.text.word_cache import clear_on_forget

_TABLES = rule_files.read_tables(__file__, "formats.toml")
TOKEN_HINTS: dict[str, list[str]] = _TABLES["token_hints"]
"""Strings of which every text with a token contains one, grouped by a common part."""
_TOKENS = rule_files.compile_on_use(
    "|".join(
        pattern if "(?P<" in pattern else f"(?P<{kind}>{pattern})"
        for kind, pattern in _TABLES["tokens"].items()
    ).replace("\n", "")
)
_PATTERNS = rule_files.read_patterns(__file__, "formats.toml")
_BASIC, _SIGNED, _COOKIE, _PAIR, _DIGITS, _NUMBERS = (
    rule_files.compile_on_use(_PATTERNS[name])
    for name in ("basic", "signed", "cookies", "cookie", "digits", "numbers")
)
_COOKIE_NAMES = rule_files.compile_on_use(_PATTERNS["cookie_names"], re.IGNORECASE)
_PGPASS = rule_files.compile_on_use(_PATTERNS["pgpass"], re.MULTILINE)
_COMMANDS = {
    hint: rule_files.compile_on_use(
        rule_files.fill_parts(pattern.replace("\n", ""), _PATTERNS)
    )
    for hint, pattern in _TABLES["commands"].items()
}
"""Commands that take a password as an argument, by a word of the text that hints at them."""

_CARD_DIGITS = {"34": 15, "37": 15, "30": 14, "36": 14, "38": 14, "35": 16}
"""Digits of card numbers that begin with 3; others have 16."""
_IBAN_CHARS = {code[:2]: int(code[2:]) for code in _TABLES["ibans"].split()}


def find_by_format(text: str) -> list[Secret]:
    """Return the secrets of a known format in a text, such as an AWS key; they are unsorted and may overlap."""
    if not text.isascii():
        text = terms.without_unspaced(text)  # in which a token ends, as at a space
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
    """Yield a secret for each match of a pattern whose groups are named as kinds of secrets."""
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
    """Yield the values of signature and token parameters in URLs, if they contain a digit."""
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
    """Return the length of a text that is a card number, or 0 if its size or check digit is wrong."""
    digits = re.sub(r"\W", "", text)
    wanted = _CARD_DIGITS.get(digits[:2], 0) if digits[0] == "3" else 16
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    checksum = sum(map(int, digits[-1::-2])) + sum(doubled)
    valid = len(digits) == wanted and checksum % 10 == 0
    return len(text) * valid


def _measure_nir(text: str) -> int:
    """Return the length of a text that is a French social security number, or 0 if it is invalid."""
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
    # No number of these areas is ever issued.
    "ssn": (
        DetailKind.SSN,
        lambda text: 0 if text.startswith(("000", "666", "9")) else len(text),
    ),
    "nir": (DetailKind.SSN, _measure_nir),
    "iban": (DetailKind.IBAN, _measure_iban),
}
"""The kind of each number, and a function that returns its length within a match, 0 if invalid."""


KNOWN_CHARS_MIN = 6
"""Minimum length of a secret that is masked wherever it occurs, not only where a rule matches."""
KNOWN_MAX = 200
"""Secrets of one text masked wherever they occur; more are masked where a rule matches."""

LEVELS_MAX = 200
"""Levels of metadata that are searched for secrets."""
TOO_DEEP = "[nested too deeply to be shown]"


class PlainTexts(set[str]):
    """Short texts without secrets, as last found; a full set is cleared."""

    cache_clear = set.clear


PLAIN_TEXTS = clear_on_forget(PlainTexts())
PLAIN_MAX, PLAIN_CHARS_MAX = 4_000, 500
"""Texts remembered, some 1 MB, and characters of each: a recall masks a memory twice, and often again soon."""


_WIDE = rule_files.compile_on_use(r"[^\D0-9]|[Ａ-Ｚａ-ｚ]")
_DIGIT = rule_files.compile_on_use(r"[^\D0-9]")
_ASCII = {0x3000: 0x20} | {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Characters of full width, and those of ASCII that look the same. Secrets are found as if a text had ASCII in
their place, and in place of digits of other scripts, such as `۴`."""


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in a text in order; secrets that overlap are merged into one."""
    if text in PLAIN_TEXTS:
        return []
    plain = text
    if not text.isascii() and _WIDE.search(text):
        plain = _DIGIT.sub(lambda each: str(int(each[0])), text.translate(_ASCII))
    secrets = [*find_by_format(plain), *find_by_name(plain)]
    if not secrets and len(text) <= PLAIN_CHARS_MAX:
        if len(PLAIN_TEXTS) >= PLAIN_MAX:
            PLAIN_TEXTS.clear()
        PLAIN_TEXTS.add(text)
    secrets.sort(key=attrgetter("start"))
    apart = secrets[:1]
    for secret in secrets[1:]:
        last = apart[-1]
        if secret.start >= last.stop:
            apart.append(secret)
        elif secret.stop > last.stop:  # two rules match parts of one secret
            apart[-1] = last._replace(stop=secret.stop)
    return apart


def extract_secrets(text: str) -> list[Detail]:
    """Return the secrets of a text as exact values, up to `KNOWN_MAX`."""
    return [
        Detail(kind, text[start:stop], sensitive=True)
        for kind, start, stop in find_secrets(text)[:KNOWN_MAX]
    ]


def mask_secrets(text: str, known: Iterable[Detail] = ()) -> str:
    """Return the text with `[secret:KIND]` in place of every secret.

    Secrets of at least `KNOWN_CHARS_MIN` characters among `known`, details of other texts, are masked as well.
    A secret that ends in `!` or `?` is also masked without this sign, which may belong to the sentence.
    """
    secrets = find_secrets(text)
    known_secrets = [detail for detail in known if detail.kind in SECRET_KINDS]
    values = {detail.value: detail.kind for detail in known_secrets}
    if secrets:
        values |= {text[start:stop]: kind for kind, start, stop in secrets[:KNOWN_MAX]}
        parts, end = [], 0
        for kind, start, stop in secrets:
            parts += [text[end:start], secret_placeholder(kind)]
            end = stop
        text = "".join([*parts, text[end:]])
    if not values:
        return text
    values |= {value.rstrip("!?"): kind for value, kind in values.items()}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= KNOWN_CHARS_MIN and value in text:
            text = text.replace(value, secret_placeholder(values[value]))
    return text


PLACEHOLDER = re.compile(r"\[secret:\w+\]")
"""Pattern of the text that replaces a masked secret."""


def secret_placeholder(kind: DetailKind) -> str:
    """Return the placeholder of a kind of secret, such as `[secret:password]`."""
    return f"[secret:{kind.value}]"


def mask_metadata(
    metadata: Mapping[str, Any], *, levels: int = LEVELS_MAX
) -> dict[str, Any]:
    """Return a copy of a JSON object with the secrets in its strings masked.

    A value is a secret too if its key names one, such as "password". Objects and lists nested
    deeper than `levels` are replaced by a remark.
    """
    return {key: _mask_value(value, key, levels) for key, value in metadata.items()}


def _mask_value(value: Any, key: str, levels: int) -> Any:  # noqa: ANN401 whatever JSON can hold
    """Return a JSON value with secrets masked, and as a whole if its name `key` is that of a secret."""
    if isinstance(value, str):
        masked = mask_secrets(value)
        if masked != value:
            return masked
        name = f"{key}: "  # the text may be the value that its key names
        return mask_secrets(name + value).removeprefix(name)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not levels:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return mask_metadata(value, levels=levels - 1)
    return [_mask_value(member, key, levels - 1) for member in value]


SCANNED_SECRETS_MAX = 16
"""Up to this many, searching one by one is faster than looking up the parts of a text."""


class KnownSecrets:
    """An index of known secrets, which finds and masks them in many texts.

    A group of memories may have thousands of secrets and of other values: searching each value for
    each secret takes the product of both.
    """

    def __init__(self, details: Iterable[Detail]) -> None:
        """Index the secrets among some details by their values and first characters."""
        secret = [detail for detail in details if detail.kind in SECRET_KINDS]
        self._by_value = {detail.value: detail for detail in secret}
        # As in `mask_secrets`: another text may end the sentence with another mark.
        self._by_value |= {detail.value.rstrip("!?"): detail for detail in secret}
        self._lengths: dict[str, set[int]] = {}
        """Lengths of the values, by their first characters."""
        for value in self._by_value:
            if len(value) >= KNOWN_CHARS_MIN:
                self._lengths.setdefault(value[:KNOWN_CHARS_MIN], set()).add(len(value))

    def mask(self, text: str) -> str:
        """Return the text with its own secrets and all known secrets masked."""
        if len(self._by_value) <= SCANNED_SECRETS_MAX:
            return mask_secrets(text, self._by_value.values())
        matches: dict[str, Detail] = {}
        for start in range(len(text) - KNOWN_CHARS_MIN + 1):
            for length in self._lengths.get(text[start : start + KNOWN_CHARS_MIN], ()):
                value = text[start : start + length]
                if detail := self._by_value.get(value):
                    matches[value] = detail
        return mask_secrets(text, matches.values())

    def mark(self, detail: Detail) -> Detail:
        """Return the exact value, marked as sensitive if it contains a secret."""
        if detail.sensitive or self.mask(detail.value) == detail.value:
            return detail
        return replace(detail, sensitive=True)
