"""The processes that a process has started."""

from __future__ import annotations

import os
from pathlib import Path


def child_pids(parent: int | None = None) -> set[int]:
    """Return the ids of the children of `parent`, or of this process."""
    parent = os.getpid() if parent is None else parent
    pids = set()
    # The lists of children below /proc go with the thread that started them.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(fields[1]) == parent:
            pids.add(int(stat.parent.name))
    return pids


def has_ended(pid: int) -> bool:
    """Tell whether a process ended, also one that nobody reaps, as without an init."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
