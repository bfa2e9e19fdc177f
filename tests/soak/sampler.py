"""Samples of a process while it is under load: resident memory, descriptors, threads."""

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process held at a moment."""

    seconds: float
    resident_mb: float
    descriptors: int
    threads: int


@dataclass(slots=True)
class Samples:
    """All samples of a run, oldest first."""

    taken: list[Sample] = field(default_factory=list)

    def third(self, number: int) -> Sequence[Sample]:
        """The first (0), middle (1) or last (2) third."""
        size = max(1, len(self.taken) // 3)
        return self.taken[number * size : (number + 1) * size]

    def growth(self, value: Callable[[Sample], float]) -> float:
        """The median of the last third against that of the middle one."""
        middle, last = (
            statistics.median(map(value, self.third(number))) for number in (1, 2)
        )
        return last / middle

    def highest(self, value: Callable[[Sample], float]) -> float:
        """The highest of all samples."""
        return max(map(value, self.taken))


def sample(pid: int, began: float) -> Sample:
    """What the process holds now."""
    folder = Path(f"/proc/{pid}")
    resident = (
        int((folder / "statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    )
    return Sample(
        seconds=time.monotonic() - began,
        resident_mb=resident / 1_000_000,
        descriptors=len(list((folder / "fd").iterdir())),
        threads=len(list((folder / "task").iterdir())),
    )


@contextmanager
def sampling(pid: int, *, every_s: float) -> Iterator[Samples]:
    """Take samples in the background while the block runs."""
    samples, ended, began = Samples(), threading.Event(), time.monotonic()

    def take() -> None:
        while True:
            try:
                samples.taken.append(sample(pid, began))
            except (FileNotFoundError, ProcessLookupError):
                return  # the process ended
            if ended.wait(every_s):
                return

    thread = threading.Thread(target=take, name="sampler")
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()
