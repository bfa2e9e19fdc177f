"""Finds the secrets of a text, and masks them, together with known secrets of other texts.

Two sets of rules find them: formats that are secrets wherever they occur, and values that follow
a name such as `password` or `API key`. The second set is written for prose, not for code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from mnemosyned.text.details import SECRET_KINDS, Detail, DetailKind
from mnemosyned.text.secrets.formats import Secret, find_by_format
from mnemosyned.text.secrets.prose import find_by_name

KNOWN_CHARS_MIN = 6
"""Longer secrets are masked wherever they occur, not only where a rule matches."""
KNOWN_MAX = 200
"""Secrets of one text masked wherever they occur; more are masked where a rule matches."""

LEVELS_MAX = 200
"""Levels of metadata that are searched for secrets."""
TOO_DEEP = "[nested too deeply to be shown]"


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in a text in order; secrets that overlap are merged into one."""
    secrets = [*find_by_format(text), *find_by_name(text)]
    if len(secrets) < 2:
        return secrets
    secrets.sort(key=attrgetter("start"))
    apart = secrets[:1]
    for secret in secrets[1:]:
        last = apart[-1]
        if secret.start >= last.stop:
            apart.append(secret)
        elif secret.stop > last.stop:  # two rules match parts of one secret
            apart[-1] = last._replace(stop=secret.stop)
    return apart


def mask_secrets(text: str, known: Iterable[Detail] = ()) -> str:
    """Return the text with `[secret:KIND]` in place of every secret.

    `known` are details of other texts, whose secrets are masked as well. A final `!` or `?` may
    belong to the secret or to its sentence: elsewhere both forms are masked.
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


def secret_placeholder(kind: DetailKind) -> str:
    """Return the placeholder of a kind of secret, such as `[secret:password]`."""
    return f"[secret:{kind.value}]"


def mask_metadata(
    metadata: Mapping[str, Any], *, levels: int = LEVELS_MAX
) -> dict[str, Any]:
    """Return a copy of a JSON object with the secrets in its strings masked.

    A key may be the name of a secret, as "password". Values nested deeper than `levels` are
    replaced by a remark.
    """
    return {key: _mask_value(value, key, levels) for key, value in metadata.items()}


def _mask_value(value: Any, key: str, levels: int) -> Any:  # noqa: ANN401 whatever JSON can hold
    """Return a copy of a JSON value with secrets masked; `key` is the name of the value.

    Values nested deeper than `levels` are replaced by a remark.
    """
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
        return mask_secrets(text, self._find_known_details(text))

    def mark(self, detail: Detail) -> Detail:
        """Return the exact value, marked as sensitive if it has a known secret in it."""
        if detail.sensitive or self.mask(detail.value) == detail.value:
            return detail
        return replace(detail, sensitive=True)

    def _find_known_details(self, text: str) -> Iterable[Detail]:
        """Return the known secrets that may occur in a text; a short list is returned whole."""
        if len(self._by_value) <= SCANNED_SECRETS_MAX:
            return self._by_value.values()
        matches: dict[str, Detail] = {}
        for start in range(len(text) - KNOWN_CHARS_MIN + 1):
            for length in self._lengths.get(text[start : start + KNOWN_CHARS_MIN], ()):
                value = text[start : start + length]
                if detail := self._by_value.get(value):
                    matches[value] = detail
        return matches.values()
