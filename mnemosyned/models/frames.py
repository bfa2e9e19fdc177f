"""Framing of messages between a process and its worker: a length, then the payload."""

from __future__ import annotations

import struct
from typing import IO

FRAME_BYTES_MAX = 1 << 30
_LENGTH = struct.Struct(">I")


def write_frame(stream: IO[bytes], payload: bytes) -> None:
    """Write a payload to a stream, after its length, and flush."""
    stream.write(_LENGTH.pack(len(payload)) + payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next payload of a stream, or None at its end or for an oversized payload."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    payload = stream.read(length) if length <= FRAME_BYTES_MAX else b""
    return payload if len(payload) == length else None
