"""Vectors for tests, and what looking at each of them would find."""

import math
import random
import struct
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

WIDTH = 3
ROUNDING = 1e-6
"""Sums of numbers up to one, in single precision: a cosine near none has few digits right."""
angles = st.tuples(*[st.floats(-1, 1)] * WIDTH).filter(
    lambda numbers: math.hypot(*numbers) > 0.1
)


def pack(numbers: Sequence[float]) -> bytes:
    length = math.hypot(*numbers)
    return struct.pack(f"<{len(numbers)}e", *(number / length for number in numbers))


def unpack(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 2}e", vector)


def cosine(one: bytes, other: bytes) -> float:
    return math.fsum(a * b for a, b in zip(unpack(one), unpack(other), strict=True))


def sign_differences(one: bytes, other: bytes) -> int:
    """How many numbers differ in sign."""
    pairs = zip(unpack(one), unpack(other), strict=True)
    return sum((a > 0) != (b > 0) for a, b in pairs)


def nearby(
    centre: Sequence[float], spread: float, chance: random.Random
) -> list[float]:
    return [number + spread * chance.gauss(0, 1) for number in centre]


def nearest(question: bytes, vectors: Mapping[int, bytes], count: int) -> list[int]:
    """By looking at each."""
    return sorted(
        vectors, key=lambda seq: cosine(question, vectors[seq]), reverse=True
    )[:count]
