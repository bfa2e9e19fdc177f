"""How far a file of records was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The byte to go on from, and the records before it, which go on being counted."""

    offset: int = 0
    number: int = 0

    @classmethod
    def read(cls, position: str) -> RecordPosition:
        """Return what a position says; that of the beginning is empty."""
        return cls(*map(int, position.split("/"))) if position else cls()

    def __str__(self) -> str:
        return f"{self.offset}/{self.number}"
