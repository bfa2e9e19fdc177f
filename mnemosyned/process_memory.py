"""The process's memory: heaps of the C library, trims, and core dumps."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from pathlib import Path

from mnemosyned.logs import logger

ARENAS_MAX = 2
"""Heaps that glibc parts between threads. Its default is eight for each core, and each keeps what
its threads freed: after a minute of 30 clients 114 MB were resident, with two arenas 98 MB. One
arena saves 6 MB more, but threads wait for each other: the slowest recall took half as long
again."""
MAPPED_BYTES = 1 << 20
"""Blocks from this size on are mappings of their own: they grow in place, and go back to the system
once they are freed. glibc raises its own threshold to the largest block freed, up to 32 MB; from
then on large request bodies grow in the heap, where each leaves holes as it moves: clients that
uploaded 30 MB each held 260 MB for bodies of 120 MB, and 70 MB stayed."""
HEAP_TOP_BYTES = 2 * MAPPED_BYTES
"""Free memory kept at the end of a heap, in glibc's own proportion."""
TRIM_GROWTH_BYTES = 4_000_000
"""Growth that is worth a trim, which takes a few milliseconds."""
IDLE_BYTES = 80_000_000
"""Resident memory above which caches are given back once nobody asks: refilling them takes
the next recalls some milliseconds, so that a daemon of the usual size keeps them."""

_LIMITS = {
    -8: ARENAS_MAX,  # M_ARENA_MAX of glibc's malloc.h
    -3: MAPPED_BYTES,  # M_MMAP_THRESHOLD
    -1: HEAP_TOP_BYTES,  # M_TRIM_THRESHOLD
}
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

log = logger()


def limit_heap() -> None:
    """Limit number and block sizes of glibc's heaps, before threads start; do nothing without glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in _LIMITS.items():
            mallopt(parameter, value)


def trim_heap() -> None:
    """Collect garbage, and return freed memory to the system."""
    gc.collect()
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def forbid_core_dumps() -> None:
    """Make the system write no core dumps of this process, as they would contain memories."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        Path("/proc/self/coredump_filter").write_text("0", encoding="ascii")
    except OSError as error:  # a kernel that writes no dumps has no filter
        log.warning("core_dump_unfiltered", reason=str(error))


def resident_bytes() -> int:
    """Return the resident bytes of this process. Raises `FileNotFoundError` without `/proc`."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES


def exclude_present_objects() -> None:
    """Exclude the present objects from all later garbage collections; only the first call has an effect.

    Modules, tables and the parts of a memory live as long as the process. A full collection stops all
    threads: some 1 ms without them in place of 35.
    """
    if not gc.get_freeze_count():
        gc.freeze()


class MemoryGrowth:
    """Growth of resident memory since the last trim."""

    def __init__(self) -> None:
        """Note the resident memory at present as the base."""
        self._least = resident_bytes()
        self._idle = False

    def is_trim_due(self, *, idle: bool = False) -> bool:
        """Return True if memory grew by `TRIM_GROWTH_BYTES`, or exceeds `IDLE_BYTES` when `idle` begins."""
        resident = resident_bytes()
        became_idle = idle and not self._idle
        self._idle = idle
        grown = resident > self._least + TRIM_GROWTH_BYTES
        return grown or (became_idle and resident > IDLE_BYTES)

    def note_trim(self) -> None:
        """Measure growth from the present size on, as memory was just trimmed."""
        self._least = resident_bytes()
