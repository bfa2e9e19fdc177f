"""What owners cost a daemon that serves many: memory, first requests, rounds of sleep.

    python tests/bench/bench_owners.py [--owners 500]

Each owner has so many memories as `EACH` says. A memory is opened at its owner's first request;
the same request to one that is open is what that is held against. A round visits those who have
something to consolidate: at first all of them, then nobody.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.measure import say
from bench.report import Report
from support.engines import new_database

from mnemosyned import process_memory
from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.assembly.parts import SharedParts
from mnemosyned.assembly.stores import OwnedStores, open_owned_stores
from mnemosyned.config import Config
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.domain.sleep.cycles import Trigger
from mnemosyned.verbs.memories import Recall, Remember, RememberMany

OWNERS = 500
EACH = 20
QUESTION = "who agreed to step 3 at the mill?"
OPENED_BAR, OPEN_BAR_KB = 10.0, 200.0


def fill(stores: OwnedStores, memories: OwnerMemories, count: int) -> list[int]:
    """Give owners something to consolidate; their numbers."""
    began = datetime.now(UTC) - timedelta(days=3)
    numbers = []
    for place in range(count):
        owner = stores.owners.add(f"owner-{place}").number
        told = [
            Remember(
                content=f"Step {step} was agreed with Huber of house {place} at the mill.",
                session=f"matter-{step % 4}",
                created_at=began + timedelta(minutes=step),
            )
            for step in range(EACH)
        ]
        memories.visit(owner).service.call(RememberMany(told))
        numbers.append(owner)
    return numbers


def first_requests(report: Report, memories: OwnerMemories, owners: list[int]) -> None:
    """Ask each twice: of the first question a part is the opening."""
    process_memory.trim(collect=True)
    before = process_memory.resident_bytes()
    seconds: list[list[float]] = [[], []]
    for owner in owners:
        for times in seconds:
            started = time.perf_counter()
            memories.get(owner).service.call(Recall(QUESTION))
            times.append(time.perf_counter() - started)
    process_memory.trim(collect=True)
    grown = process_memory.resident_bytes() - before
    first, second = map(statistics.median, seconds)
    report.figure("recall of an owner not open, ms", first * 1_000)
    report.figure("recall of an owner that is open, ms", second * 1_000)
    report.bar("first recall / next recall", first / second, "<=", OPENED_BAR)
    each_kb = report.figure("memory of an open owner, kB", grown / len(owners) / 1_000)
    report.bar("memory of an open owner, kB", each_kb, "<=", OPEN_BAR_KB)


def rounds(report: Report, memories: OwnerMemories, owners: list[int]) -> None:
    """Put all to sleep, then look at all once more."""
    for name in ("with work", "with none"):
        started = time.perf_counter()
        memories.rounds.run(Trigger.SCHEDULE)
        taken = time.perf_counter() - started
        report.figure(
            f"round over {len(owners)} owners {name}, ms each",
            taken / len(owners) * 1e3,
        )
    left = sum(
        owner.memories - EACH
        for owner in memories.owners.owners()
        if owner.number != LOCAL_OWNER
    )
    asleep = sum(bool(owner.summaries) for owner in memories.owners.owners())
    report.bar("owners that slept", asleep, ">=", len(owners))
    report.bar("memories gone", -left, "<=", 0)


@contextmanager
def served(owners: int) -> Iterator[tuple[OwnedStores, OwnerMemories]]:
    """The memories of many owners, as a daemon has them, but for the schedule."""
    config = Config(auto_sleep=False, database=new_database())
    with open_memory(config) as local, open_owned_stores(config.location) as stores:
        shared: SharedParts = local.shared
        memories = OwnerMemories(stores, shared, _roomy(config, owners))
        memories.rounds.start()
        try:
            yield stores, memories
        finally:
            memories.rounds.stop()


def _roomy(config: Config, owners: int) -> Config:
    return type(config)(
        database=config.database,
        owners=type(config.owners)(open_max=owners),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=OWNERS)
    count = parser.parse_args().owners
    report = Report("bench-owners")
    with served(count) as (stores, memories):
        say(f"filling {count} owners")
        owners = fill(stores, memories, count)
        say("asking")
        first_requests(report, memories, owners)
        say("sleeping")
        rounds(report, memories, owners)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
