"""Masks secrets known from other texts, however many there are."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.domain.memory import Detail
from mnemosyned.domain.secrets.masking import (
    KNOWN_CHARS_MIN,
    SECRET_KINDS,
    mask_secrets,
)

FEW = 16
"""Up to this many, searching one by one is faster than looking up the parts of a text."""


class KnownSecrets:
    """The secrets among some details, indexed to be found in many texts.

    A group of memories may have thousands of secrets and of other values: searching each value
    for each secret takes the product of both.
    """

    def __init__(self, details: Iterable[Detail]) -> None:
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
        """Return the text with all known secrets masked, and those that rules find."""
        return mask_secrets(text, self._within(text))

    def _within(self, text: str) -> Iterable[Detail]:
        if len(self._by_value) <= FEW:
            return self._by_value.values()
        matches: dict[str, Detail] = {}
        for start in range(len(text) - KNOWN_CHARS_MIN + 1):
            for length in self._lengths.get(text[start : start + KNOWN_CHARS_MIN], ()):
                value = text[start : start + length]
                if detail := self._by_value.get(value):
                    matches[value] = detail
        return matches.values()
