"""Vectors as rows: which memories are to be embedded again, and how pgvector reads a vector."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from mnemosyned.storage.postgres.database.session import Session

NUMBERS_MAX = 16_000
"""Numbers that a `halfvec` may have."""


def embed_again(session: Session, positions: Sequence[int]) -> None:
    """Have the memories at these positions, and all after them, seen to once more."""
    session.execute(
        "UPDATE embedding_model SET done = %(before)s "
        "WHERE owner = %(owner)s AND done > %(before)s",
        before=min(positions) - 1,
    )


def halfvec(vector: bytes) -> str | None:
    """Return a vector of half precision in the form of pgvector; None for what it cannot hold."""
    count, odd = divmod(len(vector), 2)
    if odd or not 0 < count <= NUMBERS_MAX:
        return None
    numbers = struct.unpack(f"<{count}e", vector)
    return (
        f"[{','.join(map(repr, numbers))}]"
        if all(map(math.isfinite, numbers))
        else None
    )
