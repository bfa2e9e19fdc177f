"""Secrets in a text: where keys, tokens and passwords stand, and the text with them masked.

Sources of the rules: the forms that AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI and others
document, as gathered by detect-secrets 1.5 (Apache-2.0) and gitleaks 8 (MIT). What stands behind
a word such as `password` or `API key` follows rules of our own, made for prose, not for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from math import log2
from typing import Any, Literal, NamedTuple

from mnemosyned.domain.errors import SecretRefused
from mnemosyned.domain.memory import Detail, DetailKind, Memory

KEY_CHARS_MIN = 8
BARE_KEY_CHARS_MIN = 16
"""Behind a bare "key", which has many meanings, a value must be longer."""
ENTROPY_MIN = 2.5
"""Bits per character; "20260317a" has 2.7, a word with a number behind it less."""
KNOWN_CHARS_MIN = 6
"""A secret at least this long is masked wherever it stands, not only where a rule saw it."""
SECRETS_MAX = 1_000
"""More in one text are no secrets but data; the rest is left."""

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
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "bearer",
    "kennwort",
    "clave",
    "senha",
    "contrasena",
    "wachtwoord",
)
_HINTS_AS_WRITTEN = ("eyJ", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "SG.")
_HINTS_WITH = {
    "_": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "k_live_", "k_test_", "hf_", "npm_"),
    "-": ("sk-", "xox", "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-",
          "glagent-", "pypi-AgE", "-----BEGIN"),
    "://": ("@", "hooks.slack"),
}  # fmt: skip
_HINTS_BEYOND_ASCII = (
    "schlüssel", "contraseña", "hasło", "пароль", "密码", "密碼", "パスワード", "暗証"
)  # fmt: skip
"""One of these is in every text that has a secret: most others are passed over in 3 µs."""

_SAID_BEFORE = (
    r"pass ?words?|passwort|passwörter|pass ?phrase|passwd|pwd|kennwort|contraseña|contrasena"
    r"|mot de passe|senha|hasło|wachtwoord|пароль|密码|密碼|パスワード|暗証番号"
)
_KEY_WORDS = (
    r"(?:api|access|secret|auth|private|signing|encryption|client|service|account|shared|licen[cs]e"
    r"|refresh|bearer|session|deploy|webhook|master)[ _-]?(?:access[ _-]?)?(?:key|token|secret)"
    r"|(?:api|zugangs)?-?(?:schlüssel)|clave|secrets?|tokens?"
)
_LINK = r"[\"'`]?\s{0,3}(?::|=>?|：|＝|\b(?:is|ist|lautet|es|est|è|é|was|war)\b|は|是|为)\s{0,3}"
_RULES = re.compile(
    r"(?P<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*+"
    r"(?:-----END[^\n]{0,60}?-----)?)"
    r"|\b(?P<aws_key>(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16})\b"
    r"|\b(?P<github_token>gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255})"
    r"|\b(?P<gitlab_token>gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent)-[\w-]{16,255})"
    r"|\b(?P<slack_token>xox[abeposr]-[\w-]{10,255}"
    r"|https://hooks\.slack\.com/services/[\w/]{16,100})"
    r"|\b(?P<jwt>eyJ[\w-]{8,8000}+\.[\w-]{4,8000}+(?:\.[\w-]{0,8000}+)?)"
    r"|\b(?P<api_key>sk-[\w-]{16,255}|[rsp]k_(?:live|test)_[A-Za-z0-9]{10,255}|AIza[\w-]{35}"
    r"|hf_[A-Za-z0-9]{24,64}|npm_[A-Za-z0-9]{30,64}|pypi-AgE[\w-]{40,512}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64})"
    r"|://[^\s:/@]{0,128}+:(?P<in_url>[^\s@/]{1,256}+)@"
    rf"|(?<![^\W\d_])(?i:{_SAID_BEFORE})(?P<link>{_LINK})(?P<password>[^\s\[]\S{{0,255}})"
    r"|\b(?i:bearer)\s{1,3}(?P<bearer>(?!eyJ)[\w.~+/-]{16,4096}=*)"
    rf"|(?<![^\W\d_])(?P<named>(?i:{_KEY_WORDS})){_LINK}"
    r"[\"'`]?(?P<token>[\w.+/=~-]{8,4096})"
    rf"|(?i:key){_LINK}[\"'`]?(?P<bare>[\w.+/=~-]{{16,4096}})"
)
_OPENING = "\"'`“”„‘«<(「『"
_CLOSING = ".,;:!?)]}>\"'`“”’»」』。、，"
_NO_PASSWORDS = frozenset(
    "a an and any changed das default der die empty expired falsch false for incorrect invalid is "
    "it leer missing my needed neu new nicht no none not null optional out password required "
    "reset set still str string text that the there to todo too true unknown unset up very was "
    "weak wrong xxx yes your".split()
)
_SHORT_MASK = "[secret:{}]"
_KINDS = {
    "in_url": DetailKind.PASSWORD,
    "bearer": DetailKind.TOKEN,
    "bare": DetailKind.API_KEY,
}


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
    """The secrets in a text, in order."""
    return list(_found(text)) if _hinted(text) else []


def _hinted(text: str) -> bool:
    low = text.lower()
    for hint in _HINTS:
        if hint in low:
            return True
    for hint in _HINTS_AS_WRITTEN:
        if hint in text:
            return True
    for sign, hints in _HINTS_WITH.items():
        if sign in text and any(map(text.__contains__, hints)):
            return True
    return not text.isascii() and any(map(low.__contains__, _HINTS_BEYOND_ASCII))


def _found(text: str) -> Iterator[Secret]:
    count = 0
    for match in _RULES.finditer(text):
        rule = match.lastgroup or ""
        start, stop = match.span(rule)
        if rule == "password":
            while start < stop and text[start] in _OPENING:
                start += 1
            quoted = start > match.start(rule)
            stop = start + len(text[start:stop].rstrip(_CLOSING))
            said = match["link"].strip() in (
                "is",
                "was",
                "ist",
                "war",
                "es",
                "est",
                "è",
                "é",
                "lautet",
            )
            if not _is_password(text, start, stop, said=said, quoted=quoted):
                continue
        elif rule in ("token", "bare"):
            stop = start + len(text[start:stop].rstrip(_CLOSING))
            least = BARE_KEY_CHARS_MIN if rule == "bare" else KEY_CHARS_MIN
            if not _is_random(text[start:stop], least):
                continue
        elif rule == "in_url" and text[start:stop].startswith(("[", "$", "{", "<")):
            continue
        kind = _KINDS.get(rule) or DetailKind(rule)
        if rule == "token" and "key" in match["named"].lower():
            kind = DetailKind.API_KEY
        yield Secret(kind, start, stop)
        count += 1
        if count >= SECRETS_MAX:
            return


def _is_password(text: str, start: int, stop: int, *, said: bool, quoted: bool) -> bool:
    """Whether what follows "password:" or "the password is" can be one, and no plain word."""
    value = text[start:stop]
    if len(value) < 4 or not value.strip("*•.xX-_") or value[0] in "$%{<[":
        return False
    if value.lower() in _NO_PASSWORDS:
        return False
    if quoted or not value.isalpha():
        return True
    if said and not text[:start].rstrip().endswith(("lautet", "は", "是")):
        return value not in (value.lower(), value.title())
    rest = text[stop : stop + 2]
    return not rest.strip(_CLOSING + " ") and (not rest or rest[0] != " " or len(rest) == 1)


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
    values = {text[start:stop]: kind for kind, start, stop in found}
    for kind, start, stop in reversed(found):
        text = text[:start] + mask(kind) + text[stop:]
    values |= {detail.value: detail.kind for detail in known if detail.kind in SECRET_KINDS}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= KNOWN_CHARS_MIN and value in text:
            text = text.replace(value, mask(values[value]))
    return text


def mask(kind: DetailKind) -> str:
    """What stands for a secret."""
    return _SHORT_MASK.format(kind.value)


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
