"""How long a cycle takes, and what remember and recall notice of it: `make bench-sleep`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Corpus, aged, fresh
from bench.daemon import embedded, running
from bench.measure import as_request, fill, latency, say, timed
from bench.report import Report

from mnemosyned import Client
from mnemosyned.memory.consolidation import CycleReport

SIZES = (1_000, 10_000, 100_000)
IDLE_S = 5.0
SETTLE_S = 1.0
PAUSE_S = 0.01
"""Between two pairs of calls: an agent at work, not a flood."""
BURNING = "import os; os.nice(10)\nwhile True: pass"
"""What a helping process takes of the machine, without a cycle."""
RATIO_SIZES = SIZES[1:]
"""A cycle of 1,000 is over before there are calls enough for a percentile."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Seconds of calls made meanwhile."""

    remember: list[float]
    recall: list[float]


@dataclass(frozen=True, slots=True)
class Measured:
    """One size."""

    entries: int
    cycle_s: float
    beside_s: float
    """The same while others talk: it gives way to them."""
    report: CycleReport
    idle: Calls
    """As many before the cycle as after it: recall has more to show once there are episodes."""
    during: Calls
    burning: Calls
    """Without a cycle, beside a process that only computes, as politely as one that helps."""
    lock_ms: float

    def ratio(self, verb: str, of: Calls | None = None) -> float:
        """p95 during the cycle, or of other calls, to p95 without one."""
        calls, idle = getattr(of or self.during, verb), getattr(self.idle, verb)
        return latency(calls).p95_ms / latency(idle).p95_ms


def main() -> int:
    """Measure each size on a daemon and a database of its own; exit 1 if a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes: Sequence[int] = options.parse_args().sizes
    measured = []
    for entries in sizes:
        say(f"{entries:,} entries")
        with tempfile.TemporaryDirectory(prefix="bench-") as room:
            measured.append(measure(Path(room), entries))
        say(f"{entries:,} entries: {measured[-1].cycle_s:.2f} s")
    return finish(measured)


def measure(room: Path, entries: int) -> Measured:
    """A cycle by itself, and one beside which others talk."""
    corpus = aged(entries)
    filled = room / "filled.db"
    with embedded(filled) as memory:  # its large commits are not the cycle's
        fill(memory, corpus)
    quiet = Path(shutil.copy(filled, room / "quiet.db"))
    with running(quiet) as daemon, daemon.client() as client:
        cycle_s, report = timed(client.sleep)
    with running(filled) as daemon, daemon.client() as client, daemon.client() as other:
        beside = talk(client, corpus)
        before = calls(beside, until=threading.Event(), seconds=IDLE_S)
        over = threading.Event()
        results: list[tuple[float, CycleReport]] = []

        def sleep() -> None:
            try:
                results.append(timed(other.sleep))
            finally:
                over.set()

        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        during = calls(beside, until=over, seconds=3_600)
        sleeper.join()
        time.sleep(SETTLE_S)
        after = calls(beside, until=threading.Event(), seconds=IDLE_S)
        lock_ms = client.status().longest_write_ms
        with a_process_computing():
            burning = calls(beside, until=threading.Event(), seconds=IDLE_S)
    ((beside_s, _),) = results
    if report.evicted < entries or report.failed:
        raise RuntimeError(
            f"the cycle left something behind: {report.evicted} of {entries}"
        )
    idle = Calls(before.remember + after.remember, before.recall + after.recall)
    return Measured(entries, cycle_s, beside_s, report, idle, during, burning, lock_ms)


@contextmanager
def a_process_computing() -> Iterator[None]:
    """It runs until the block is left."""
    process = subprocess.Popen([sys.executable, "-c", BURNING])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def talk(client: Client, corpus: Corpus) -> Iterator[tuple[float, float]]:
    """Pairs of calls without end: seconds to remember something new, and to recall something."""
    questions = cycle([ask for kind in corpus.questions(50).values() for ask in kind])
    new = fresh(100_000)
    for number, question in zip(count(), questions, strict=False):
        remember, _ = timed(client.call, as_request(new.entry(number)))
        recall, _ = timed(client.recall, question.text)
        yield remember, recall


def calls(
    pairs: Iterator[tuple[float, float]], *, until: threading.Event, seconds: float
) -> Calls:
    """Call until the event, or for so long."""
    ends = time.monotonic() + seconds
    made = Calls([], [])
    while not until.is_set() and time.monotonic() < ends:
        remember, recall = next(pairs)
        made.remember.append(remember)
        made.recall.append(recall)
        time.sleep(PAUSE_S)
    return made


def finish(measured: Sequence[Measured]) -> int:
    report = Report("bench-sleep")
    rows: list[list[object]] = []
    for one in measured:
        name = f"{one.entries}"
        report.figure(f"cycle_s.{name}", one.cycle_s)
        report.figure(f"cycle_in_company_s.{name}", one.beside_s)
        report.figure(f"rows_per_s.{name}", one.entries / one.cycle_s)
        report.figure(f"lock_held_max_ms.{name}", one.lock_ms)
        report.figure(f"rolled_up.{name}", one.report.rolled_up)
        for verb in ("remember", "recall"):
            idle, during = (
                latency(getattr(one.idle, verb)),
                latency(getattr(one.during, verb)),
            )
            calls_made = len(getattr(one.during, verb))
            rows.append(
                [name, verb, idle.p95_ms, during.p95_ms, one.ratio(verb), calls_made]
            )
            report.figure(
                f"beside_a_computing_process.{verb}.{name}",
                one.ratio(verb, one.burning),
            )
        report.bar(
            f"the write lock is held at most, ms ({name})", one.lock_ms, "<=", 100
        )
    report.table(
        "p95, ms", ["entries", "verb", "idle", "during a cycle", "ratio", "calls"], rows
    )
    by_size = {one.entries: one for one in measured}
    if 1_000 in by_size:
        report.bar("1,000 entries, s", by_size[1_000].cycle_s, "<=", 0.5)
    if {10_000, 100_000} <= by_size.keys():
        growth = by_size[100_000].cycle_s / by_size[10_000].cycle_s
        report.bar("100,000 entries to 10,000", growth, "<=", 12)
    for size in RATIO_SIZES:
        if size in by_size:
            for verb in ("remember", "recall"):
                report.bar(
                    f"p95 of {verb} to idle ({size})",
                    by_size[size].ratio(verb),
                    "<=",
                    2,
                )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
