"""Secrets in a text: where keys, tokens and passwords stand, and the text with them masked.

Two sets of rules find them: forms that are secrets wherever they stand, and values that follow a
name such as `password` or `API key`. The second are rules of our own, made for prose, not code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal

from mnemosyned.domain.errors import SecretRefused
from mnemosyned.domain.memory import Detail, DetailKind, MemoryRecord
from mnemosyned.domain.secrets.formats import Secret, find_by_format
from mnemosyned.domain.secrets.sentences import find_by_name

KNOWN_CHARS_MIN = 6
"""A secret at least this long is masked wherever it stands, not only where a rule saw it."""
KNOWN_MAX = 200
"""More in one text are a table; each is still masked where a rule sees it."""

LEVELS_MAX = 200
"""Levels of metadata that are searched for secrets."""
TOO_DEEP = "[nested too deeply to be shown]"

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
        DetailKind.ACCESS_CODE,
        DetailKind.LOGIN_CODE,
        DetailKind.SEED_PHRASE,
        DetailKind.COOKIE,
        DetailKind.SIGNATURE,
        DetailKind.CARD_NUMBER,
        DetailKind.IBAN,
        DetailKind.SSN,
    }
)


class SecretRule(StrEnum):
    """What becomes of a secret in a memory handed in."""

    KEEP = "keep"
    MASK = "mask"
    REFUSE = "refuse"


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order and apart from each other."""
    found = [*find_by_format(text), *find_by_name(text)]
    if len(found) < 2:
        return found
    found.sort(key=attrgetter("start"))
    apart = found[:1]
    for secret in found[1:]:
        last = apart[-1]
        if secret.start >= last.stop:
            apart.append(secret)
        elif (
            secret.stop > last.stop
        ):  # what two rules see of one secret is masked together
            apart[-1] = last._replace(stop=secret.stop)
    return apart


def mask_secrets(text: str, known: Iterable[Detail] = ()) -> str:
    """The text with `[secret:KIND]` for every secret in it.

    `known` are details of other texts, whose secrets are masked here too. A last `!` or `?` may
    be of the secret or of its sentence: elsewhere it is masked with and without.
    """
    found = find_secrets(text)
    values = {
        detail.value: detail.kind for detail in known if detail.kind in SECRET_KINDS
    }
    if not found and not values:
        return text
    if found:
        values |= {text[start:stop]: kind for kind, start, stop in found[:KNOWN_MAX]}
        parts, done = [], 0
        for kind, start, stop in found:
            parts += [text[done:start], placeholder(kind)]
            done = stop
        text = "".join([*parts, text[done:]])
    values |= {value.rstrip("!?"): kind for value, kind in values.items()}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= KNOWN_CHARS_MIN and value in text:
            text = text.replace(value, placeholder(values[value]))
    return text


def placeholder(kind: DetailKind) -> str:
    """What stands for a secret."""
    return f"[secret:{kind.value}]"


def mask_metadata(
    metadata: Mapping[str, Any], *, levels: int = LEVELS_MAX
) -> dict[str, Any]:
    """The same object with the secrets in its strings masked, its keys telling what they are.

    What is nested deeper than `levels` is left out; requests that deep are refused.
    """
    return {key: _mask_value(value, key, levels) for key, value in metadata.items()}


def _mask_value(value: Any, key: str, levels: int) -> Any:  # noqa: ANN401 whatever JSON can hold
    if isinstance(value, str):
        alone = mask_secrets(value)
        name = f"{key}: "
        return (
            mask_secrets(name + value).removeprefix(name) if alone == value else alone
        )
    if isinstance(value, Mapping | list | tuple) and not levels:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return mask_metadata(value, levels=levels - 1)
    if isinstance(value, list | tuple):
        return [_mask_value(member, key, levels - 1) for member in value]
    return value


def mask_memory(memory: MemoryRecord, known: Iterable[Detail] = ()) -> MemoryRecord:
    """The memory as anyone may see it."""
    content = mask_secrets(memory.content, known)
    metadata = mask_metadata(memory.metadata) if memory.metadata else memory.metadata
    if content == memory.content and metadata == memory.metadata:
        return memory
    return replace(memory, content=content, metadata=metadata)


def apply_secret_rule(
    memory: MemoryRecord, rule: SecretRule, *, place: str = ""
) -> tuple[MemoryRecord, Literal["", "kept", "masked"]]:
    """The memory as it may be stored, and what became of its secrets.

    Raises `SecretRefused`, which names the kind of secret and its field, never its value.
    """
    other = mask_memory(memory)
    if other is memory:
        return memory, ""
    if rule is SecretRule.KEEP:
        return memory, "kept"
    if rule is SecretRule.MASK:
        return other, "masked"
    found = find_secrets(memory.content)
    field = "content" if found else "metadata"
    kind = f" ({found[0].kind.value})" if found else ""
    raise SecretRefused(
        f"{place}{field} holds a secret{kind}, which the setting `secrets` refuses; "
        "take it out, or set `secrets` to mask or keep",
        field=place + field,
    )
