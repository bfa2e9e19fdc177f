"""Vectors as bytes: in half precision, or with four bits per number after the byte `FOUR_BITS`.

Half precision has an even count of bytes, and four bits an odd one. With four bits, recall of the
built-in encoder on LoCoMo is what it is with single precision (.553 and .558 of ten), in a quarter of
the bytes that half precision takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

FOUR_BITS = b"\x04"
"""First byte of a vector with four bits for each number, two numbers to a byte."""
CLIPPED = 0.9
"""Numbers above this share of a vector's largest number are stored as equal, in four bits."""
THREADS = "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"
"""Variables by which users limit the threads of numpy's matrix products; the first one counts."""


def load_numpy() -> ModuleType:
    """Return numpy, imported at the first call: only a process that embeds loads numpy.

    Matrix products then use one thread, unless an environment variable says otherwise or numpy was
    loaded before. More threads keep spinning after short products and took four times the processor.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in THREADS):
        import numpy  # noqa: PLC0415, ICN001
    else:
        os.environ[THREADS[0]] = "1"  # read once, when the library is loaded
        try:
            import numpy  # noqa: PLC0415, ICN001
        finally:
            os.environ.pop(THREADS[0], None)
    return numpy


def pack_four_bits(vectors: Any) -> list[bytes]:  # noqa: ANN401 numpy is loaded late
    """Return each row of a matrix, with an even count of columns, as bytes with four bits per number."""
    np = load_numpy()
    steps = 8 / (CLIPPED * np.abs(vectors).max(axis=1, keepdims=True) + 1e-12)
    numbers = (np.clip(np.floor(vectors * steps), -8, 7) + 8).astype(np.uint8)
    packed = (numbers[:, ::2] << 4) | numbers[:, 1::2]
    return [FOUR_BITS + row.tobytes() for row in packed]


def pack_half(vectors: Any) -> list[bytes]:  # noqa: ANN401 numpy is loaded late
    """Return each row of a matrix as a vector in half precision."""
    return [row.astype("<f2").tobytes() for row in vectors]


def is_four_bits(vector: bytes) -> bool:
    """Return whether a vector has four bits for each number."""
    return len(vector) % 2 == 1 and vector.startswith(FOUR_BITS)


def unpack(vectors: Sequence[bytes]) -> Any:  # noqa: ANN401 numpy is loaded late
    """Return vectors of one form as rows of a matrix; rows from four bits are scaled to length one."""
    np = load_numpy()
    if not is_four_bits(vectors[0]):
        halves = np.frombuffer(b"".join(vectors), dtype="<f2")
        return halves.reshape(len(vectors), -1).astype(np.float32)
    packed = np.frombuffer(b"".join(vectors), np.uint8).reshape(len(vectors), -1)[:, 1:]
    rows = np.empty((len(packed), 2 * packed.shape[1]), np.float32)
    rows[:, ::2] = packed >> 4
    rows[:, 1::2] = packed & 15
    rows -= 7.5
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows
