"""Port of upkeep: totals, health, durability and backups of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mnemosyned.domain.memory import Tier, TierTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """The contents of a copy of the store, which was read through."""

    bytes: int
    memories: int
    episodes: int
    problems: tuple[str, ...] = ()
    """Faults that the store itself has, and the copy with it."""


class MaintenanceStore(Protocol):
    """The store as its operator sees it."""

    def totals(self) -> Mapping[Tier, TierTotals]:
        """Return the size of each tier."""
        ...

    def bytes_on_disk(self) -> int:
        """Return the size of the database, with its logs where they lie beside it."""
        ...

    def problems(self) -> list[str]:
        """Return present faults of the store, a sentence each; empty if it is healthy."""
        ...

    def warnings(self) -> list[str]:
        """Return conditions that endanger the stored data, the gravest first."""
        ...

    def longest_write_s(self) -> float:
        """Return the longest that one commit blocked other writers since the start."""
        ...

    def ensure_durable(self) -> None:
        """Verify that acknowledged writes will last, and repair what endangers them.

        Raises `DatabaseReplaced` if nothing more can be stored until a restart.
        """
        ...

    def flush(self) -> None:
        """Make all writes durable."""
        ...

    def run_upkeep(self) -> bool:
        """Do deferred work now that would otherwise delay a later write.

        False if it should be tried again after the next write.
        """
        ...

    def run_idle_upkeep(self) -> None:
        """Do deferred work that only pays while nothing is written."""
        ...

    def release_memory(self, *, words: bool = False) -> None:
        """Free caches; later calls refill them. `words`: also those that know words of memories."""
        ...

    def back_up(self, target: Path) -> CopyReport:
        """Write a consistent copy of the store to a new file, and read it through."""
        ...
