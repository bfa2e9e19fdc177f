"""Settings of watched folders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """The settings of watching."""

    paths: tuple[str, ...] = ()
    files_max: int = 20_000
    """Files followed in all folders together."""
    settle_s: float = 5.0
    """Seconds without a change after which a note counts as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    """Limits of the thread that follows."""

    grow_s: float = 0.5
    """How soon a file that grows is read after a change."""
    settle_max_s: float = 600.0
    """A note that changes all the time is read after this long."""
    slow_s: float = 0.05
    """Processor time for each memory stored, beyond which a file is read less often: it is one
    that is read again from its beginning."""
    slow_pause: float = 20.0
    """How many times as long such a file then waits for its next reading."""
    slow_files_max: int = 1_000
    retry_s: float = 30.0
    """Pause after a failure of the store."""
    rest_max_s: float = 0.02
    """The longest pause between two readings; it is as long as the reading before took."""
    busy_s: float = 1.0
    """How long a reading waits at most for a rush of requests to end."""
    rescan_s: float = 600.0
    """How often folders are looked through for what no event told."""
    poll_s: float = 10.0
    """The same where events cannot be had."""
    look_s: float = 2.0
    """How often it is looked whether a folder was deleted, replaced, or is there again."""
    read_bytes: int = 1 << 20
    """Bytes of a transcript read at a time."""
    batch: int = 100
