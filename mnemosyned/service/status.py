"""The state of the store and the daemon, put together for `status`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from mnemosyned.domain.statuses import EmbedderStatus
from mnemosyned.service.parts import ServiceParts
from mnemosyned.verbs.status import SleepStatus, Stats, Status
from mnemosyned.verbs.watching import WatchedFolder


class StatusService:
    """Describes an open memory."""

    def __init__(
        self,
        parts: ServiceParts,
        *,
        count_today: Callable[[], int],
        watched: Callable[[], list[WatchedFolder]],
    ) -> None:
        self._parts = parts
        self._count_today = count_today
        self._watched = watched
        self._started = time.monotonic()

    def status(self, _: Status) -> Stats:
        parts = self._parts
        maintenance = parts.store.maintenance
        return Stats(
            version=parts.about.version,
            schema_version=parts.about.schema_version,
            database=parts.about.database,
            # Of a database that others share, the size is not this owner's to know.
            bytes_on_disk=0 if parts.about.is_shared else maintenance.bytes_on_disk(),
            tiers=dict(maintenance.totals()),
            today=self._count_today(),
            wm_max=parts.policies.sleep.wm_max,
            sleep=self._sleep_status(),
            summarizer=parts.sleeper.cycle.lease.status(),
            counter=parts.policies.window.counter.name,
            embedder=parts.vectors.status() if parts.vectors else EmbedderStatus(),
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 3),
            clock=parts.retention.pruner.doubt(),
            longest_write_ms=round(maintenance.longest_write_s() * 1_000, 3),
            purge_due=parts.store.deletion.purge_due(),
            recoverable=parts.store.archive.grace.recoverable(),
            agents=parts.store.surroundings.agents.activity(),
            watched=self._watched(),
            backup=parts.keeper.status(),
            restart_needed=list(parts.policies.restart_needed),
            problems=maintenance.problems(),
            warnings=[*maintenance.warnings(), *parts.keeper.warnings()],
        )

    def _sleep_status(self) -> SleepStatus:
        sleeper = self._parts.sleeper
        status = sleeper.status()
        return SleepStatus(
            auto=status.next_cycle is not None,
            schedule=status.schedule,
            last_cycle=status.last_cycle,
            next_cycle=status.next_cycle,
            running=status.running,
            due=status.due,
            progress=status.progress,
            waits_for=status.waits_for,
            paused_until=sleeper.cycle.stopper.held_until(),
        )
