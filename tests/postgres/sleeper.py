"""A process that runs one cycle and names each group on standard output when its model begins."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from support.fakes import FakeClock, FakeSummarizer

from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.service.intake import Intake
from mnemosyned.service.policies import Policies, PolicyHolder
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import CommitPacing, SleepPolicy
from mnemosyned.storage.postgres.store import open_store

WRITING_S = 0.05


def write(memories: Sequence[MemoryRecord]) -> None:
    print(memories[0].source, flush=True)
    time.sleep(WRITING_S)


def main(dsn: str, migrations: str) -> None:
    policies = Policies(
        intake=Intake(content_bytes_max=10_000),
        sleep=SleepPolicy(wm_max=1_000, pacing=CommitPacing(groups_max=1)),
    )
    with open_store(dsn, migrations=Path(migrations)) as store:
        SleepCycle(
            store=store,
            lease=SummarizerLease(FakeSummarizer(meanwhile=write)),
            clock=FakeClock(),
            policies=PolicyHolder(policies),
        ).run(CycleRequest(trigger=Trigger.EXPLICIT))


if __name__ == "__main__":
    main(*sys.argv[1:])
