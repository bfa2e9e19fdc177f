"""Caches of values computed per word, bounded in size and cleared when memories are forgotten."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

WORD_CHARS_MAX = 64
"""Longer words are rare and not cached, as thousands of them could be a megabyte each."""

V = TypeVar("V")


class ClearableCache(Protocol):
    """A cache that can be cleared, such as a function behind `lru_cache`."""

    def cache_clear(self) -> None:
        """Remove all cached values."""
        ...


F = TypeVar("F", bound=ClearableCache)


class WordCache(dict[str, V], Generic[V]):
    """Values computed once per word, read as `cache[word]`.

    It takes half the time of `lru_cache`. A full cache is cleared, which costs a few milliseconds.
    """

    __slots__ = ("__weakref__", "_compute", "_entries_max")

    def __init__(self, compute: Callable[[str], V], *, entries_max: int) -> None:
        """Make an empty cache of up to `entries_max` values that `compute` returns for words."""
        super().__init__()
        self._compute = compute
        self._entries_max = entries_max
        clear_on_forget(self)

    def __missing__(self, word: str) -> V:
        """Compute and return the value of an uncached word; cache it unless the word is long."""
        value = self._compute(word)
        if len(word) <= WORD_CHARS_MAX:
            if len(self) >= self._entries_max:
                self.clear()
            self[word] = value
        return value

    def cache_clear(self) -> None:
        """Remove all cached values."""
        self.clear()


def clear_on_forget(cache: F) -> F:
    """Register a cache to be cleared when memories are forgotten, and return it; usable as decorator."""
    _caches[:] = [known for known in _caches if known() is not None]
    _caches.append(weakref.ref(cache))
    return cache


def clear_word_caches() -> None:
    """Clear all registered caches and the cache of `re`, which may contain words of forgotten memories."""
    for reference in _caches.copy():
        cache = reference()
        if cache is not None:
            cache.cache_clear()
    re.purge()  # its cache has patterns made of names and of words of questions


_caches: list[weakref.ReferenceType[ClearableCache]] = []
