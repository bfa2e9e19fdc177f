"""Ports of time: the clock, and the store that remembers what it last said."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from mnemosyned.domain.timekeeping import Sighting


class Clock(Protocol):
    """The present time; tests hand in one they can move."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        ...


class ClockStore(Protocol):
    """Keeps the last believed clock reading, and which memories lie ahead of it."""

    def last_sighting(self) -> Sighting | None:
        """Return the clock as it was last believed; None in a new store."""
        ...

    def keep_sighting(self, sighting: Sighting) -> None:
        """Replace the last believed clock reading."""
        ...

    def note_future(self, *, now: datetime) -> None:
        """Record for working memories dated in the future since when that is known."""
        ...
