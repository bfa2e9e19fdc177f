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
KEY_CHARS_MAX = 4096
"""Masked of one key; what follows it is read anew."""
JUDGED_CHARS = 128
"""Enough of a key to see that it is random, however long it is."""
_N_LOG_N = [n * log2(n) if n else 0.0 for n in range(JUDGED_CHARS + 1)]

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

_KEY_WORDS = ("key", "token", "secret", "clave", "bearer")
_PASSWORD_WORDS = (
    "password", "passwort", "passphrase", "pass phrase", "passcode", "passwd", "pwd", "kennwort",
    "contrasena", "mot de passe", "senha", "wachtwoord",
)  # fmt: skip
_WORDS = (*_KEY_WORDS, *_PASSWORD_WORDS)
_WORDS_BEYOND_ASCII = (
    "schlüssel", "contraseña", "hasło", "пароль", "密码", "密碼", "パスワード", "暗証番号"
)  # fmt: skip
_HINTS_OF_WORDS = (
    "key", "token", "secret", "clave", "bearer", "pass", "pwd", "kennwort", "contrasena", "senha",
    "wachtwoord",
)  # fmt: skip
"""One of these is in every one of the words: most texts are passed over in 2 µs."""
_HINTS_WITH = {
    "A": ("AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza"),
    "G": ("SG.",),
    "_": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "k_live_", "k_test_", "hf_", "npm_"),
    "-": ("sk-", "xox", "pypi-AgE", "-----BEGIN"),
    "gl": ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-", "glagent-"),
    "hooks.slack.com": ("/services/",),
}  # fmt: skip
"""One of these is in every text that has a secret, URLs apart: others are passed over in 1 µs."""

_FORMS = re.compile(
    r"(?P<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*+"
    r"(?:-----END[^\n]{0,60}?-----)?)"
    r"|(?P<aws_key>\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16})\b"
    r"|(?P<github_token>\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}))"
    r"|(?P<gitlab_token>\bgl(?:pat|dt|ft|soat|rt|cbt|ptt|agent)-[\w-]{16,255})"
    r"|(?P<slack_token>\bxox[abeposr]-[\w-]{10,255}"
    r"|https://hooks\.slack\.com/services/[\w/]{16,100})"
    r"|(?P<api_key>\b(?:sk-[\w-]{16,255}|[rsp]k_(?:live|test)_[A-Za-z0-9]{10,255}|AIza[\w-]{35}"
    r"|hf_[A-Za-z0-9]{24,64}|npm_[A-Za-z0-9]{30,64}|pypi-AgE[\w-]{40,512}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}))"
)
_JWT = re.compile(r"\b(?P<jwt>eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?)|\beyJ[\w-]*+")
"""The second alternative passes over what is none, so that no character is read twice."""
_IN_URL = re.compile(r"://[^\s:/@]{0,128}+:(?P<password>(?![\[${<])[^\s@/]{1,256}+)@")


_BEHIND = re.compile(
    r"(?:s\b|_\w{1,30})?"
    r"(?P<link>[\"'`]?\s{0,3}(?::|=>?|：|＝|\b(?:is|ist|lautet|es|est|è|é|was|war)\b|は|是|为)"
    r"\s{0,3})(?P<value>[^\s\[]\S{0,255})"
)
_BEARER = re.compile(r"\s{1,3}(?P<value>[\w.~+/-]{16,4096}=*)")
_NAMED = re.compile(
    r"(?:api|access|secret|auth|private|signing|encryption|client|service|account|shared|licen[cs]e"
    r"|refresh|session|deploy|webhook|master|zugangs|app)[ _-]?$"
)
_KEY_RUN = re.compile(r"[\w.+/=~-]*+")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
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
    if "J" in text and "eyJ" in text:  # "J" is rare, and found faster
        tokens = _JWT.finditer(text)
        found += [Secret(DetailKind.JWT, *match.span()) for match in tokens if match["jwt"]]
    if "@" in text and "://" in text:
        urls = _IN_URL.finditer(text)
        found += [Secret(DetailKind.PASSWORD, *match.span("password")) for match in urls]
    found += _spoken(text)
    if len(found) < 2:
        return found
    # What is known by its form is called by it; a rule of another kind adds nothing.
    apart: list[Secret] = []
    for secret in sorted(found, key=attrgetter("start")):
        if not apart or secret.start >= apart[-1].stop:
            apart.append(secret)
    return apart


def _formed(text: str) -> bool:
    for sign, hints in _HINTS_WITH.items():
        if sign in text:
            for hint in hints:  # `any` takes a third longer
                if hint in text:
                    return True
    return False


def _spoken(text: str) -> Iterator[Secret]:
    """What stands behind words such as "password" or "API key".

    The words are looked for one by one: 17 searches take 2 µs, one pattern of all of them 30.
    """
    low = text.lower()
    if len(low) != len(text):  # a few letters are two in lower case
        low = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    words: tuple[str, ...] = () if low.isascii() else _WORDS_BEYOND_ASCII
    if any(map(low.__contains__, _HINTS_OF_WORDS)):
        words = _WORDS + words
    runs = _KeyRuns(text)
    for word in words:
        at = low.find(word)
        while at >= 0:
            if secret := _behind(text, low, word, at, runs):
                yield secret
            at = low.find(word, at + len(word))


class _KeyRuns:
    """Runs of characters that a key can have, each read once however many words are in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._stop = -1

    def value(self, start: int) -> str:
        """The longest value that begins here."""
        if not self._start <= start < self._stop:
            run = _KEY_RUN.match(self._text, start)
            self._start, self._stop = start, run.end() if run else start
        return self._text[start : min(self._stop, start + KEY_CHARS_MAX)]


def _behind(text: str, low: str, word: str, at: int, runs: _KeyRuns) -> Secret | None:
    match = (_BEARER if word == "bearer" else _BEHIND).match(text, at + len(word))
    if match is None:
        return None
    start, stop = match.span("value")
    if word == "bearer":
        return Secret(DetailKind.TOKEN, start, stop)
    while start < stop and text[start] in _OPENING:
        start += 1
    if word in _KEY_WORDS or word == "schlüssel":
        stop = start + len(runs.value(start).rstrip(_CLOSING))
        named = word in ("token", "secret") or _NAMED.search(low[max(0, at - 16) : at])
        good = _is_random(text[start:stop], KEY_CHARS_MIN if named else BARE_KEY_CHARS_MIN)
        kind = DetailKind.TOKEN if word in ("token", "secret") else DetailKind.API_KEY
    else:
        stop = start + len(text[start:stop].rstrip(_CLOSING))
        quoted = start > match.start("value")
        good = _is_password(text, start, stop, link=match["link"].strip(), quoted=quoted)
        kind = DetailKind.PASSWORD
    return Secret(kind, start, stop) if good else None


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
    if len(value) < least:
        return False
    value = value[:JUDGED_CHARS]
    if not _DIGIT.search(value) or not _LETTER.search(value):
        return False
    counts = map(value.count, set(value))
    return log2(len(value)) - sum(map(_N_LOG_N.__getitem__, counts)) / len(value) >= ENTROPY_MIN


def masked(text: str, known: Iterable[Detail] = ()) -> str:
    """The text with `[secret:KIND]` for every secret in it.

    `known` are details of other texts, whose secrets are masked here too.
    """
    found = secrets(text)
    values = {detail.value: detail.kind for detail in known if detail.kind in SECRET_KINDS}
    if not found and not values:
        return text
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
    metadata = masked_values(memory.metadata) if memory.metadata else memory.metadata
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
