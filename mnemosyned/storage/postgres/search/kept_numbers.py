"""What is kept from one question to the next, of all memories together, within a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

NUMBERS_MAX = 1_000_000
"""Numbers that are kept of a kind: 8 MB."""
_EACH = 32
"""What a value takes besides its numbers, in numbers."""
V = TypeVar("V")


class KeptNumbers(Generic[V]):
    """Values that hold many numbers each; those not used for longest make room. For any thread."""

    def __init__(self, numbers_max: int = NUMBERS_MAX) -> None:
        self._numbers_max = numbers_max
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        """Those used last are at the end."""
        self._numbers = 0
        self._changing = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        with self._changing:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, value: V, numbers: int) -> None:
        """Keep a value that holds so many numbers, in place of the one before."""
        size = numbers + _EACH
        if size > self._numbers_max:
            return
        with self._changing:
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = value, size
            self._numbers += size - before
            while self._numbers > self._numbers_max:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._numbers -= dropped
