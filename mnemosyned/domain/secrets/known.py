"""Secrets that some texts show, to be masked in other texts: which of very many stand in one."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.domain.memory import Detail
from mnemosyned.domain.secrets.masking import (
    KNOWN_CHARS_MIN,
    SECRET_KINDS,
    mask_secrets,
)

FEW = 16
"""So many are searched for one by one in less time than it takes to look up a text's parts."""


class KnownSecrets:
    """The secrets among some details, made ready to be found in many texts.

    A group may hold thousands of secrets and of other values: searching each value for each
    secret takes the product of both.
    """

    def __init__(self, details: Iterable[Detail]) -> None:
        secret = [detail for detail in details if detail.kind in SECRET_KINDS]
        self._by_value = {detail.value: detail for detail in secret}
        # As `mask_secrets` does: a text may end the sentence otherwise.
        self._by_value |= {detail.value.rstrip("!?"): detail for detail in secret}
        self._lengths: dict[str, set[int]] = {}
        """By how values begin, how long they are."""
        for value in self._by_value:
            if len(value) >= KNOWN_CHARS_MIN:
                self._lengths.setdefault(value[:KNOWN_CHARS_MIN], set()).add(len(value))

    def mask(self, text: str) -> str:
        """The text with every secret masked, those known and those that rules find."""
        return mask_secrets(text, self._within(text))

    def _within(self, text: str) -> Iterable[Detail]:
        if len(self._by_value) <= FEW:
            return self._by_value.values()
        found: dict[str, Detail] = {}
        for start in range(len(text) - KNOWN_CHARS_MIN + 1):
            for length in self._lengths.get(text[start : start + KNOWN_CHARS_MIN], ()):
                value = text[start : start + length]
                if detail := self._by_value.get(value):
                    found[value] = detail
        return found.values()
