"""Port of single memories: remember them, read them with their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.memory import Acknowledged, Episode, MemoryRecord


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory handed in, with what else its storing entails."""

    memory: MemoryRecord
    dedupe: bool = False
    """Answer with an earlier memory of the same words, if there is one, instead of storing."""
    secrets: Literal["", "kept", "masked"] = ""
    """How secrets in the text were treated; empty if it has none."""
    supersedes: str | None = None
    """The id of the memory that this one replaces."""
    learnings: tuple[Learning, ...] = ()
    """Learnings recognized in the text."""
    has_new_id: bool = False
    """Whether its id was made for it, so that no record can have it already."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of storing drafts."""

    acknowledged: list[Acknowledged]
    """One answer for each draft, in order."""
    working: int
    """The size of the working tier, the new memories included."""
    learned: int = 0
    """How many learnings in force came with them."""


class RecordStore(Protocol):
    """Single memories and episodes, by id."""

    def remember(self, drafts: Sequence[Draft]) -> Remembered:
        """Store all drafts with their learnings, or none.

        Raises `IdTaken`, and `NotFound` for the id that a draft should supersede.
        """
        ...

    def get(self, id: str) -> MemoryRecord | Episode:
        """Return the memory or episode with this id. Raises `NotFound`."""
        ...

    def originals(self, episode: str) -> list[MemoryRecord]:
        """Return all originals under a summary of any level, oldest first, word for word."""
        ...

    def summaries(self, ids: Sequence[str]) -> list[Episode]:
        """Return the existing ones of these summaries, oldest first.

        Provenance and details are left empty.
        """
        ...

    def working(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return those of these memories still in the working tier, oldest first."""
        ...

    def existing(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories that exist of these, in either tier and in no order."""
        ...

    def working_count(self) -> int:
        """Count the memories of the working tier."""
        ...

    def history(self, id: str) -> list[MemoryRecord]:
        """Return the memories that this one superseded, the newest first."""
        ...
