"""`Pruner`: takes the words of old originals out of the archive, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from mnemosyned.domain.errors import ClockJumped
from mnemosyned.domain.keeping.retention import Prunable, Retention
from mnemosyned.domain.ports.archive.retention import RetentionStore
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.logs import logger
from mnemosyned.service.clock_guard import ClockGuard
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.steps import CHUNK, in_steps
from mnemosyned.verbs.retention import Prune, Pruned

PRUNED_MAX = 200_000
"""Originals that one call takes; the others wait for the next."""

log = logger()


class Pruner:
    """Prunes by the settings after each cycle, or as one request says."""

    def __init__(
        self,
        *,
        store: RetentionStore,
        policies: PolicyHolder,
        clock: Clock,
        guard: ClockGuard | None,
        on_removal: Callable[[], None],
    ) -> None:
        """Call `on_removal` after text was deleted. Without a `guard` the clock is believed."""
        self._store = store
        self._policies = policies
        self._clock = clock
        self._guard = guard
        self._on_removal = on_removal

    def prune(self, request: Prune) -> Pruned:
        retention = self._retention(request)
        if request.believe_clock and self._guard and not request.dry_run:
            self._guard.confirm()
        doubt = self.doubt(retention)
        now = self._clock.now()
        if request.dry_run:
            prunable = self._prunable(retention, now=now)
            return _result(prunable, dry_run=True, doubt=doubt)
        if doubt:
            raise ClockJumped(
                f"nothing was pruned: {doubt} Check the date; if it is right, add --believe-clock",
                field="believe_clock",
            )
        return self._pruned(retention, now=now)

    def prune_by_settings(self) -> None:
        """Prune what the settings say; by default that is nothing."""
        retention = self._policies.retention
        if retention == Retention():
            return
        clock = self._guard or self._clock
        pruned = self._pruned(retention, now=clock.now())
        if pruned.memories:
            log.info(
                "archive_pruned",
                count=pruned.memories,
                characters=pruned.characters,
            )

    def doubt(self, retention: Retention | None = None) -> str:
        """Why nothing is pruned by the clock's age, in a sentence; empty where it is believed."""
        keep = (retention or self._policies.retention).keep
        if self._guard is None or keep is None:
            return ""
        return self._guard.doubt()

    def _retention(self, request: Prune) -> Retention:
        """Return what the request keeps, or else what the settings keep."""
        days, characters_max = request.keep_days, request.characters_max
        if days is None and characters_max is None:
            return self._policies.retention
        keep = None if days is None else timedelta(days=days)
        return Retention(keep=keep, characters_max=characters_max)

    def _pruned(self, retention: Retention, *, now: datetime) -> Pruned:
        prunable = self._prunable(retention, now=now)

        def prune(chunk: Sequence[str]) -> int:
            count = self._store.prune(chunk, now=now)
            self._on_removal()
            return count

        def progress(counts: Sequence[int]) -> str:
            return f"{sum(counts):,} of {len(prunable.ids):,} originals were pruned"

        in_steps(prunable.ids, CHUNK, prune, done=progress)
        return _result(prunable)

    def _prunable(self, retention: Retention, *, now: datetime) -> Prunable:
        return self._store.prunable(retention, now=now, limit=PRUNED_MAX)


def _result(prunable: Prunable, *, dry_run: bool = False, doubt: str = "") -> Pruned:
    return Pruned(
        dry_run=dry_run,
        memories=len(prunable.ids),
        characters=prunable.characters,
        oldest=prunable.oldest,
        newest=prunable.newest,
        more=len(prunable.ids) >= PRUNED_MAX,
        doubt=doubt,
    )
