"""Matching shared by the readers of records: the first pattern or reader that fits, and groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")
K = TypeVar("K", bound=Hashable)


def first_match(patterns: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match of the first pattern that the whole text has."""
    for pattern in patterns:
        if match := pattern.fullmatch(text):
            return match
    return None


def first_reading(readers: Iterable[Callable[[S], T | None]], source: S) -> T | None:
    """Return what the first reader that can read the source makes of it."""
    for reader in readers:
        if value := reader(source):
            return value
    return None


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by their key, keys and items in the order they come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
