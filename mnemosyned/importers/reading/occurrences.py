"""Equal records told apart by how often they came before."""

from __future__ import annotations

import hashlib
from collections import Counter

DIFFERENT_MAX = 200_000
"""Different records of which repetitions are counted; later ones count as the first."""


class Occurrences:
    """Counts equal texts, in bounded memory."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def next(self, text: str) -> int:
        """Return how often this text has come, this time included."""
        key = hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]
        if key not in self._seen and len(self._seen) >= DIFFERENT_MAX:
            return 1
        self._seen[key] += 1
        return self._seen[key]
