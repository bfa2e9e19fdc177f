"""The state of the store and the daemon, put together for `status`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.statuses import EmbedderStatus
from mnemosyned.service.backup_keeper import BackupKeeper
from mnemosyned.service.forgetting.pruning import Pruner
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.verbs.status import SleepStatus, Stats, Status
from mnemosyned.verbs.watching import WatchedFolder

# Loaded by who has an embedding model.
if TYPE_CHECKING:
    from mnemosyned.vectors.indexer import Vectors


class StatusService:
    """Describes an open memory."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        sleeper: Sleeper,
        pruner: Pruner,
        policies: PolicyHolder,
        about: About,
        keeper: BackupKeeper,
        vectors: Vectors | None,
        count_today: Callable[[], int],
        watched: Callable[[], list[WatchedFolder]],
    ) -> None:
        self._store = store
        self._sleeper = sleeper
        self._pruner = pruner
        self._policies = policies
        self._about = about
        self._keeper = keeper
        self._vectors = vectors
        self._count_today = count_today
        self._watched = watched
        self._started = time.monotonic()

    def status(self, _: Status) -> Stats:
        maintenance = self._store.maintenance
        return Stats(
            version=self._about.version,
            schema_version=self._about.schema_version,
            database=str(self._about.database),
            bytes_on_disk=_bytes_on_disk(self._about.database),
            tiers=dict(maintenance.totals()),
            today=self._count_today(),
            wm_max=self._policies.sleep.wm_max,
            sleep=self._sleep_status(),
            summarizer=self._sleeper.cycle.lease.status(),
            counter=self._policies.window.counter.name,
            embedder=self._vectors.status() if self._vectors else EmbedderStatus(),
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 3),
            clock=self._pruner.doubt(),
            longest_write_ms=round(maintenance.longest_write_s() * 1_000, 3),
            purge_due=self._store.deletion.purge_due(),
            recoverable=self._store.deletion.recoverable(),
            agents=self._store.agents.activity(),
            watched=self._watched(),
            backup=self._keeper.status(),
            restart_needed=list(self._policies.restart_needed),
            problems=maintenance.problems(),
            warnings=[*maintenance.warnings(), *self._keeper.warnings()],
        )

    def _sleep_status(self) -> SleepStatus:
        status = self._sleeper.status()
        return SleepStatus(
            auto=status.next_cycle is not None,
            schedule=status.schedule,
            last_cycle=status.last_cycle,
            next_cycle=status.next_cycle,
            running=status.running,
            due=status.due,
            progress=status.progress,
            waits_for=status.waits_for,
            paused_until=self._sleeper.cycle.stopper.held_until(),
        )


def _bytes_on_disk(database: Path) -> int:
    total = 0
    for suffix in ("", "-wal", "-shm"):
        path = database.with_name(database.name + suffix)
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
