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
from mnemosyned.service.backups.forgotten_list import ForgottenList
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.steps import CHUNK, in_steps

log = logger()


class _Clock(Protocol):
    def now(self) -> datetime: ...


class GraceKeeper:
    """Begins and ends grace times."""

    def __init__(
        self,
        *,
        store: GraceStore,
        policies: PolicyHolder,
        clock: _Clock,
        forgotten: ForgottenList,
    ) -> None:
        """Take a `clock` that does not jump ahead: by it forgetting becomes final."""
        self.on_put_back: Callable[[Sequence[int]], None] = lambda _: None
        self._store = store
        self._policies = policies
        self._clock = clock
        self._forgotten = forgotten

    def begin(self) -> Grace | None:
        """Return the grace time of a call; None where the settings give none."""
        hours = self._policies.current.grace_hours
        if not hours:
            return None
        now = self._clock.now()
        return Grace(new_id(now), shift(now, timedelta(hours=hours)))

    def put_back(self, id: str) -> int:
        """Put back a forgotten memory, or all that one call forgot; return how many.

        Chunk by chunk. Raises `PartlyDone` where a later one fails.
        """
        keys = self._store.kept([id])

        def put_back(chunk: Sequence[str]) -> int:
            self._forgotten.withdraw(chunk)
            returned = self._store.put_back(chunk)
            if returned:
                self.on_put_back([position for _, position in returned])
            return len(returned)

        def progress(counts: Sequence[int]) -> str:
            return f"{sum(counts):,} of {len(keys):,} are put back"

        count = sum(in_steps(keys, CHUNK, put_back, done=progress))
        if count:
            log.info("put_back", count=count)
        return count

    def kept(self, ids: Sequence[str]) -> list[str]:
        """Return the keys of what is kept of these memories or calls."""
        return self._store.kept(ids) if ids else []

    def finish(self, keys: Sequence[str]) -> int:
        """Forget for good what is kept under these keys, chunk by chunk; return how many.

        Raises `PartlyDone` where a later chunk fails.
        """

        def progress(counts: Sequence[int]) -> str:
            return f"{sum(counts):,} of {len(keys):,} are forgotten for good"

        return sum(in_steps(keys, CHUNK, self._store.finish, done=progress))

    def finish_due(self) -> int:
        """Forget for good what can no longer be put back; return how much."""
        due = self._store.kept(before=self._clock.now())
        if not due:
            return 0
        count = self.finish(due)
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
