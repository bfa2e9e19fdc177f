"""`GraceKeeper`: forgotten memories that can be put back for as long as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.ids import new_id
from mnemosyned.domain.instants import shift
from mnemosyned.domain.keeping.retention import Grace
from mnemosyned.domain.ports.archive.grace import GraceStore
from mnemosyned.logs import logger
from mnemosyned.service.policies import PolicyHolder

log = logger()


class _Clock(Protocol):
    def now(self) -> datetime: ...


class GraceKeeper:
    """Begins and ends grace times."""

    def __init__(
        self, *, store: GraceStore, policies: PolicyHolder, clock: _Clock
    ) -> None:
        """Take a `clock` that does not jump ahead: by it forgetting becomes final."""
        self.on_put_back: Callable[[Sequence[int]], None] = lambda _: None
        self._store = store
        self._policies = policies
        self._clock = clock

    def begin(self) -> Grace | None:
        """Return the grace time of a call; None where the settings give none."""
        hours = self._policies.current.grace_hours
        if not hours:
            return None
        now = self._clock.now()
        return Grace(new_id(now), shift(now, timedelta(hours=hours)))

    def put_back(self, id: str) -> int:
        """Put back a forgotten memory, or all that one call forgot; return how many."""
        returned = self._store.put_back(id)
        if returned:
            self.on_put_back([position for _, position in returned])
            log.info("put_back", count=len(returned))
        return len(returned)

    def finish(self, ids: Sequence[str]) -> int:
        """Forget these for good, which are so for a while; return how many."""
        return self._store.finish(ids=ids) if ids else 0

    def finish_due(self) -> int:
        """Forget for good what can no longer be put back; return how much."""
        first = self._store.recoverable().final_at
        now = self._clock.now()
        if first is None or first > now:
            return 0
        count = self._store.finish(before=now)
        log.info("forgotten_for_good", count=count)
        return count

    def check(self, ids: Iterable[str]) -> None:
        """Raise `NotFound` that says so for what is forgotten already."""
        for id in ids:
            final_at = self._store.is_recoverable(id)
            if final_at:
                raise NotFound(
                    f"{id} is forgotten already; until {final_at:%Y-%m-%d %H:%M} UTC `restore` puts "
                    "it back, and `forget` with `now` deletes it for good",
                    field="id",
                )
