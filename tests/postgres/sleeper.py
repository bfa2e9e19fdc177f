"""A process that runs one cycle and names each group on standard output when its model begins."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from support.fakes import FakeClock, FakeSummarizer
from support.settings import settings_in_force

from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.sleep.context import CommitPacing, CycleRequest, SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.postgres.store import open_store

WRITING_S = 0.05


def write(memories: Sequence[MemoryRecord]) -> None:
    print(memories[0].source, flush=True)
    time.sleep(WRITING_S)


def main(dsn: str, migrations: str) -> None:
    with open_store(dsn, migrations=Path(migrations)) as store:
        cycle = SleepCycle(
            store=store,
            lease=SummarizerLease(FakeSummarizer(meanwhile=write)),
            clock=FakeClock(),
            settings=settings_in_force({"wm_max": 1_000}),
        )
        cycle.pacing = CommitPacing(groups_max=1)
        cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))


if __name__ == "__main__":
    main(*sys.argv[1:])
