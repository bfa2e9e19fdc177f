"""A soak of the real daemon: 30 clients with mixed load, and its memory over time.

    python tests/bench/bench_soak.py --minutes 30 [--clients 30] [--forgets 6] [--seed 7]

Every answer, every acknowledged memory and the file itself are checked; see `tests/soak`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import plot
from bench.measure import say
from bench.report import Report
from soak.run import Soaked, soak
from soak.sampler import Sample

RESIDENT_MB_MAX = 120.0
FLAT = 1.05
"""Growth of a median from the middle third to the last; a leak grows by more in half an hour."""
PICTURE_POINTS = 400


def publish(report: Report, done: Soaked) -> None:
    """Fill the report: figures, tables, bars and the picture."""
    rows: list[list[object]] = [
        [verb, count, done.slowest.get(verb, 0.0)]
        for verb, count in done.requests.most_common()
    ]
    report.table("Requests", ["request", "count", "slowest, s"], rows)
    errors: list[list[object]] = [
        [error, n] for error, n in done.expected_errors.most_common()
    ]
    report.table("Expected errors", ["request and code", "count"], errors)
    report.table(
        "Findings", ["what is wrong"], [[finding] for finding in done.findings]
    )
    report.figure("requests", done.requests.total())
    report.figure("requests per second", done.requests.total() / done.seconds)
    report.figure("memories", done.memories)
    report.figure("forgotten", done.forgotten)
    report.figure("file, MB", done.file_mb)
    report.figure("resident memory after the load, MB", done.calm_mb)
    samples = done.samples
    report.bar("findings", len(done.findings), "<=", 0)
    resident = samples.highest(lambda sample: sample.resident_mb)
    report.bar("highest resident memory, MB", resident, "<=", RESIDENT_MB_MAX)
    for name, value in _measured().items():
        report.bar(
            f"{name}: last third against middle", samples.growth(value), "<=", FLAT
        )
    report.picture("soak", picture(samples.taken))


def _measured() -> dict[str, Callable[[Sample], float]]:
    return {
        "resident memory": lambda sample: sample.resident_mb,
        "descriptors": lambda sample: sample.descriptors,
        "threads": lambda sample: sample.threads,
    }


def picture(taken: Sequence[Sample]) -> str:
    """Resident memory over time; of a long run the highest of each stretch."""
    size = -(-len(taken) // PICTURE_POINTS)
    stretches = [taken[start : start + size] for start in range(0, len(taken), size)]
    points = [
        (stretch[0].seconds / 60, max(sample.resident_mb for sample in stretch))
        for stretch in stretches
    ]
    return plot.timeline(
        "Resident memory under mixed load",
        x_label="minutes",
        y_label="MB",
        points=points,
        limit=RESIDENT_MB_MAX,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--forgets", type=float, default=6.0, help="a minute; 0: none")
    parser.add_argument(
        "--pause-ms", type=float, default=50.0, help="between a client's requests"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    say(f"{given.clients} clients for {given.minutes:g} minutes, --seed {given.seed}")
    report = Report("soak")
    with tempfile.TemporaryDirectory(prefix="soak-") as room:
        done = soak(
            Path(room),
            seconds=given.minutes * 60,
            clients=given.clients,
            seed=given.seed,
            forgets_per_minute=given.forgets,
            pause_s=given.pause_ms / 1000,
            say=say,
        )
    publish(report, done)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
