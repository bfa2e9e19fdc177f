"""Secrets in a text: where keys, tokens and passwords stand, and the text with them masked.

Sources of the rules: the forms that AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI and others
document, as gathered by detect-secrets 1.5 (Apache-2.0) and gitleaks 8 (MIT). What stands behind
a word such as `password` or `API key` follows rules of our own, made for prose, not for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from math import log2
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from mnemosyned.domain.errors import SecretRefused
from mnemosyned.domain.memory import Detail, DetailKind, Memory

PASSWORD_CHARS_MIN = 4
KEY_CHARS_MIN = 8
BARE_KEY_CHARS_MIN = 16
"""Behind a bare "key", which has many meanings, a value must be longer."""
ENTROPY_MIN = 2.5
"""Bits per character; "20260317a" has 2.7, a word with a number behind it less."""
KNOWN_CHARS_MIN = 6
"""A secret at least this long is masked wherever it stands, not only where a rule saw it."""
KNOWN_MAX = 200
"""More in one text are a table; each is still masked where a rule sees it."""

SECRET_KINDS = frozenset(
    {
        DetailKind.PASSWORD,
        DetailKind.PRIVATE_KEY,
        DetailKind.AWS_KEY,
        DetailKind.GITHUB_TOKEN,
        DetailKind.GITLAB_TOKEN,
        DetailKind.SLACK_TOKEN,
        DetailKind.JWT,
        DetailKind.API_KEY,
        DetailKind.TOKEN,
    }
)

_HINTS = (
    "key", "token", "secret", "passw", "passphrase", "passcode", "pass phrase", "pwd", "bearer",
    "mot de passe", "kennwort", "clave", "senha", "contrasena", "wachtwoord",
)  # fmt: skip
_HINTS_BEYOND_ASCII = (
    "schlüssel", "contraseña", "hasło", "пароль", "密码", "密碼", "パスワード", "暗証番号"
)  # fmt: skip
_HINTS_AS_WRITTEN = ("eyJ", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "SG.")
_HINTS_WITH = {
    "_": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "k_live_", "k_test_", "hf_", "npm_"),
    "-": ("sk-", "xox", "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-",
          "glagent-", "pypi-AgE", "-----BEGIN"),
    "hooks.slack.com": ("/services/",),
}  # fmt: skip
"""One of these is in every text that has a secret, URLs apart: others are passed over in 3 µs."""

_FORMS = re.compile(
    r"(?P<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*+"
    r"(?:-----END[^\n]{0,60}?-----)?)"
    r"|(?P<aws_key>\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16})\b"
    r"|(?P<github_token>\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}))"
    r"|(?P<gitlab_token>\bgl(?:pat|dt|ft|soat|rt|cbt|ptt|agent)-[\w-]{16,255})"
    r"|(?P<slack_token>\bxox[abeposr]-[\w-]{10,255}"
    r"|https://hooks\.slack\.com/services/[\w/]{16,100})"
    r"|(?P<jwt>\beyJ[\w-]{8,8000}+\.[\w-]{4,8000}+(?:\.[\w-]{0,8000}+)?)"
    r"|(?P<api_key>\b(?:sk-[\w-]{16,255}|[rsp]k_(?:live|test)_[A-Za-z0-9]{10,255}|AIza[\w-]{35}"
    r"|hf_[A-Za-z0-9]{24,64}|npm_[A-Za-z0-9]{30,64}|pypi-AgE[\w-]{40,512}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}))"
)
_IN_URL = re.compile(r"://[^\s:/@]{0,128}+:(?P<password>(?![\[${<])[^\s@/]{1,256}+)@")


def _any_case(words: str) -> str:
    """A pattern for words in any case that opens with a set, so that a search skips the rest."""
    return re.sub(r"\w", lambda at: f"[{at[0].lower()}{at[0].upper()}]", words)


_LINK = (
    r"(?P<link>[\"'`]?\s{0,3}(?::|=>?|：|＝|\b(?:is|ist|lautet|es|est|è|é|was|war)\b|は|是|为)"
    r"\s{0,3})"
)
_PASSWORD_WORDS = _any_case(
    "password|passwort|passwörter|passphrase|pass phrase|passcode|passwd|pwd|kennwort|contraseña"
    "|contrasena|mot de passe|senha|hasło|wachtwoord|пароль|密码|密碼|パスワード|暗証番号"
)
_KEY_WORDS = _any_case("key|token|secret|schlüssel|clave")
_SPOKEN = re.compile(
    rf"(?:(?P<word>{_PASSWORD_WORDS})|(?P<key>{_KEY_WORDS})|{_any_case('bearer')}\s{{1,3}}"
    r"(?P<bearer>[\w.~+/-]{16,4096}=*))"
    rf"(?(bearer)|(?:s\b|_\w{{1,30}})?{_LINK}(?P<value>[^\s\[]\S{{0,4095}}))"
)
_NAMED = re.compile(
    r"(?:api|access|secret|auth|private|signing|encryption|client|service|account|shared|licen[cs]e"
    r"|refresh|session|deploy|webhook|master|zugangs|app)[ _-]?$"
)
_KEY_VALUE = re.compile(r"[\w.+/=~-]{8,4096}")
_OPENING = "\"'`“”„‘«<(「『"
_CLOSING = ".,;:!?)]}>\"'`“”’»」』。、，"
_NO_PASSWORDS = frozenset(
    "a an and any changed das default der die empty expired falsch false for incorrect invalid is "
    "it leer missing my needed neu new nicht no none not null optional out password required "
    "reset set still str string text that the there to todo too true unknown unset up very was "
    "weak wrong xxx yes your".split()
)


class SecretRule(StrEnum):
    """What becomes of a secret in a memory handed in."""

    KEEP = "keep"
    MASK = "mask"
    REFUSE = "refuse"


class Secret(NamedTuple):
    """Where a secret stands in a text, and what it is."""

    kind: DetailKind
    start: int
    stop: int


def secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order and apart from each other."""
    found: list[Secret] = []
    if _formed(text):
        forms = _FORMS.finditer(text)
        found += [Secret(DetailKind(match.lastgroup or ""), *match.span()) for match in forms]
    if "@" in text and "://" in text:
        urls = _IN_URL.finditer(text)
        found += [Secret(DetailKind.PASSWORD, *match.span("password")) for match in urls]
    if _spoken_of(text.lower()):
        found += filter(None, map(_spoken, _SPOKEN.finditer(text)))
    if len(found) < 2:
        return found
    # What is known by its form is called by it; a rule of another kind adds nothing.
    apart: list[Secret] = []
    for secret in sorted(found, key=attrgetter("start")):
        if not apart or secret.start >= apart[-1].stop:
            apart.append(secret)
    return apart


def _formed(text: str) -> bool:
    for hint in _HINTS_AS_WRITTEN:
        if hint in text:
            return True
    for sign, hints in _HINTS_WITH.items():
        if sign in text and any(map(text.__contains__, hints)):
            return True
    return False


def _spoken_of(low: str) -> bool:
    for hint in _HINTS:
        if hint in low:
            return True
    return not low.isascii() and any(map(low.__contains__, _HINTS_BEYOND_ASCII))


def _spoken(match: re.Match[str]) -> Secret | None:
    """The secret that stands behind a word such as "password" or "API key", where one does."""
    text = match.string
    if match["bearer"]:
        return Secret(DetailKind.TOKEN, *match.span("bearer"))
    start, stop = match.span("value")
    while start < stop and text[start] in _OPENING:
        start += 1
    if match["word"]:
        stop = start + len(text[start:stop].rstrip(_CLOSING))
        quoted = start > match.start("value")
        good = _is_password(text, start, stop, link=match["link"].strip(), quoted=quoted)
        return Secret(DetailKind.PASSWORD, start, stop) if good else None
    value = _KEY_VALUE.match(text, start)
    if value is None:
        return None
    key = match["key"].lower()
    before = text[max(0, match.start() - 16) : match.start()].lower()
    named = key not in ("key", "clave", "schlüssel") or _NAMED.search(before)
    stop = start + len(value[0].rstrip(_CLOSING))
    if not _is_random(text[start:stop], KEY_CHARS_MIN if named else BARE_KEY_CHARS_MIN):
        return None
    kind = DetailKind.TOKEN if key in ("token", "secret") else DetailKind.API_KEY
    return Secret(kind, start, stop)


def _is_password(text: str, start: int, stop: int, *, link: str, quoted: bool) -> bool:
    """Whether what follows "password:" or "the password is" can be one, and no plain word."""
    value = text[start:stop]
    if len(value) < PASSWORD_CHARS_MIN or not value.strip("*•.xX-_") or value[0] in "$%{<[":
        return False
    if value.lower() in _NO_PASSWORDS:
        return False
    if quoted or not value.isalpha():
        return True
    if link in ("is", "was", "ist", "war", "es", "est", "è", "é"):
        return value not in (value.lower(), value.title())
    # A plain word is one where nothing follows it: "password: opensesame".
    return not text[stop : stop + 2].strip(_CLOSING + "\n")


def _is_random(value: str, least: int) -> bool:
    """Whether it has letters and digits mixed as no word or number has."""
    if len(value) < least or not any(char.isdigit() for char in value):
        return False
    if not any(char.isalpha() for char in value):
        return False
    counts = [value.count(char) for char in set(value)]
    return -sum(n / len(value) * log2(n / len(value)) for n in counts) >= ENTROPY_MIN


def masked(text: str, known: Iterable[Detail] = ()) -> str:
    """The text with `[secret:KIND]` for every secret in it.

    `known` are details of other texts, whose secrets are masked here too.
    """
    found = secrets(text)
    values = {detail.value: detail.kind for detail in known if detail.kind in SECRET_KINDS}
    if found:
        values |= {text[start:stop]: kind for kind, start, stop in found[:KNOWN_MAX]}
        parts, done = [], 0
        for kind, start, stop in found:
            parts += [text[done:start], mask(kind)]
            done = stop
        text = "".join([*parts, text[done:]])
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= KNOWN_CHARS_MIN and value in text:
            text = text.replace(value, mask(values[value]))
    return text


def mask(kind: DetailKind) -> str:
    """What stands for a secret."""
    return f"[secret:{kind.value}]"


def masked_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with the secrets in its strings masked, its keys telling what they are."""
    return {key: _masked_value(value, key) for key, value in metadata.items()}


def _masked_value(value: Any, key: str) -> Any:  # noqa: ANN401 whatever JSON can hold
    if isinstance(value, str):
        alone = masked(value)
        name = f"{key}: "
        return masked(name + value).removeprefix(name) if alone == value else alone
    if isinstance(value, Mapping):
        return masked_values(value)
    if isinstance(value, list | tuple):
        return [_masked_value(member, key) for member in value]
    return value


def masked_memory(memory: Memory, known: Iterable[Detail] = ()) -> Memory:
    """The memory as anyone may see it."""
    content = masked(memory.content, known)
    metadata = masked_values(memory.metadata)
    if content == memory.content and metadata == memory.metadata:
        return memory
    return replace(memory, content=content, metadata=metadata)


def admitted(
    memory: Memory, rule: SecretRule, *, place: str = ""
) -> tuple[Memory, Literal["", "kept", "masked"]]:
    """The memory as it may be stored, and what became of its secrets.

    Raises `SecretRefused`, which names the kind of secret and its field, never its value.
    """
    other = masked_memory(memory)
    if other is memory:
        return memory, ""
    if rule is SecretRule.KEEP:
        return memory, "kept"
    if rule is SecretRule.MASK:
        return other, "masked"
    found = secrets(memory.content)
    field = "content" if found else "metadata"
    kind = f" ({found[0].kind.value})" if found else ""
    raise SecretRefused(
        f"{place}{field} holds a secret{kind}, which the setting `secrets` refuses; "
        "take it out, or set `secrets` to mask or keep",
        field=place + field,
    )
