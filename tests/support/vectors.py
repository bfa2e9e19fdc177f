"""Vectors for tests, and what looking at each of them would find."""

import math
import random
import struct
from collections.abc import Mapping, Sequence

WIDTH = 3
ROUNDING = 1e-6
"""Sums of numbers up to one, in single precision: a cosine near none has few digits right."""


def pack(numbers: Sequence[float]) -> bytes:
    length = math.hypot(*numbers)
    return struct.pack(f"<{len(numbers)}e", *(number / length for number in numbers))


def unpack(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 2}e", vector)


def cosine(one: bytes, other: bytes) -> float:
    return math.fsum(a * b for a, b in zip(unpack(one), unpack(other), strict=True))


def nearby(
    centre: Sequence[float], spread: float, chance: random.Random
) -> list[float]:
    return [number + spread * chance.gauss(0, 1) for number in centre]


def nearest(question: bytes, vectors: Mapping[int, bytes], count: int) -> list[int]:
    """By looking at each."""
    return sorted(
        vectors, key=lambda seq: cosine(question, vectors[seq]), reverse=True
    )[:count]
