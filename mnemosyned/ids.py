"""ULIDs: ids that sort by the time they were made."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in CROCKFORD for second in CROCKFORD]
"""Ten bits each: half as many steps to write an id."""
_CHARS, _TIME_CHARS = 26, 10
_TAIL_BITS = 60
"""Bits of the last twelve letters of an id; the letters before stay the same within a millisecond."""


def _encode_bits(value: int, *, bits: int) -> str:
    """Return the number as `bits` / 5 letters of Crockford's base 32."""
    return "".join(
        [_PAIRS[value >> shift & 1023] for shift in range(bits - 10, -1, -10)]
    )


class IdFactory:
    """Makes ULIDs: 48 bits of milliseconds, 80 random bits, ascending within a process.

    Source: the ULID specification, https://github.com/ulid/spec.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._head = (0, "")

    def __call__(self, moment: datetime) -> str:
        """Return a new ULID for a moment; it sorts after all earlier ids of this factory."""
        millis = int(moment.timestamp() * 1000)
        with self._lock:
            value = self._last + 1
            if millis > value >> 80:
                value = millis << 80 | int.from_bytes(os.urandom(10), "big")
            self._last = value
        high, low = value >> _TAIL_BITS, value & (1 << _TAIL_BITS) - 1
        head = self._head
        if head[0] != high:  # which the ids of a batch have in common
            self._head = head = (high, _encode_bits(high, bits=130 - _TAIL_BITS))
        return head[1] + _encode_bits(low, bits=_TAIL_BITS)


new_id = IdFactory()


def made_at(id: str) -> datetime | None:
    """Return when a ULID was made, from its first ten letters; None for another form of id."""
    if len(id) != _CHARS or not set(id) <= set(CROCKFORD) or id[0] > "7":
        return None
    millis = 0
    for letter in id[:_TIME_CHARS]:
        millis = millis * len(CROCKFORD) + CROCKFORD.index(letter)
    try:
        return datetime.fromtimestamp(millis / 1000, UTC)
    except (ValueError, OverflowError):  # after the last year there is
        return None
