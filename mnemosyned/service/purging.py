"""Purging of forgotten words from the file: at once, or in turns while other requests are served."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from mnemosyned.errors import (
    DatabaseUnreachable,
    MemoryBusy,
    MnemosynedError,
    NotFound,
    NotPurged,
    StorageFailed,
)
from mnemosyned.logs import log_failure, logger

REST_TIMES = 24
"""A purge reads and writes the whole file. While others are served, the next one waits this many
times as long as the last one took, so that purges take 4 % of the time at most."""
REST_FREE_S = 0.05
"""Seconds of a purge after which nobody needs a rest: those of a small file."""
REST_MAX_S = 600.0
WAIT_MAX_S = 1.0
"""Seconds that a caller waits for a turn; for a later one it does not wait."""
LOOK_S = 0.5
"""Seconds between looks whether others are still served."""
RETRY_S = 60.0
"""Seconds until a purge is tried again that another program or the disk forbade; doubled each
time, up to `REST_MAX_S`."""
START_S = 2.0
"""Seconds after the start until what an earlier process left to purge is purged."""
CLOSE_S = 20.0
"""At the close, a purge is run if the last one took less than this many seconds."""
HOST_S = 60.0
"""Seconds within which a host usually purges for one of many memories."""

WORDS_REMAIN = (
    "the words of what is forgotten can still be read in the file until the next cycle, or the "
    "next forget, has purged them"
)
ANOTHER_READS = "another program reads the database: let it end, then try again"

log = logger()


@dataclass(eq=False, kw_only=True)
class Purger:
    """Runs purges. Safe from any thread."""

    due: Callable[[], bool]
    """Returns whether deleted text waits for a purge."""
    work: Callable[[], bool]
    """Deletes forgotten text from the files; returns True if all of it was purged."""
    busy: Callable[[], bool]
    """Returns whether requests are being served."""
    background: bool = False
    """Whether a purge may wait for these, in a thread, until the close."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._planned: float | None = None
        self._rested = 0.0
        self._took_s = 0.0
        self._refused = 0

    def start(self) -> None:
        """Plan the purge that an earlier process left undone."""
        try:
            is_due = self.due()
        except StorageFailed as error:
            log.warning("purge_put_off", reason=error.reason)
            is_due = True
        if is_due:
            self._plan_purge(START_S)

    def purge(self) -> bool:
        """Purge the text deleted before this call, or plan to; return whether it is purged now.

        It is not if requests are being served and the last purge was a moment ago, or if another
        program reads the file; `wait_s` then tells when it will be tried. Raises `StorageFailed`.
        """
        with self._turn:
            if not self.due():
                return True
            rest_s = self._rested - time.monotonic()
            if rest_s > 0 and self.background and self.busy():
                if rest_s > WAIT_MAX_S:
                    self._plan_purge(rest_s)
                    return False
                time.sleep(rest_s)
            return self._run_purge()

    def attempt(self) -> tuple[bool, str]:
        """Purge after a deletion; return whether all is purged, and the reason if the purge failed."""
        try:
            return self.purge(), ""
        except StorageFailed as error:
            log_failure("purge_put_off", error)
            return False, f"{WORDS_REMAIN}: {error.reason}"

    def finish_earlier(self, unknown: NotFound) -> None:
        """Purge what an earlier call deleted, when the same call is repeated and finds nothing.

        `unknown` is the repeated call's error: the caller raises it, and here it is only quoted.
        Raises `NotPurged` if the purge fails, or if another program reads the database. Returns if
        all is purged, and also if the purge was put off because requests are being served.
        """
        complete, problem = self.attempt()
        if not complete and (problem or self._refused):
            problem = problem or f"{WORDS_REMAIN}: {ANOTHER_READS}"
            raise NotPurged(
                f"{unknown.message}. If it was forgotten before: {problem}",
                field=unknown.field,
            ) from unknown

    def wait_s(self) -> float | None:
        """Return the seconds until the planned purge; None if none is planned."""
        with self._wake:
            return (
                None
                if self._planned is None
                else max(0.0, self._planned - time.monotonic())
            )

    def close(self) -> None:
        """Stop the thread, and run a due purge now unless purges take long: then after the next start."""
        with self._wake:
            self.background = False
            self._wake.notify()
        if self._thread:
            self._thread.join()
        with self._turn:
            if self._took_s < CLOSE_S:
                self._run_due_or_log()

    def run_due(self) -> bool:
        """Run a purge if one is due; return whether no text is left. A failure is logged."""
        with self._turn:
            return self._run_due_or_log()

    def _run_purge(self) -> bool:
        """Purge the files; return whether no deleted text is left, else plan the next attempt."""
        began = time.monotonic()
        clean = False
        try:
            clean = self.work()
        finally:
            now = time.monotonic()
            self._took_s = now - began
            self._refused = 0 if clean else self._refused + 1
            rest_s = REST_TIMES * max(0.0, self._took_s - REST_FREE_S)
            self._rested = now + min(REST_MAX_S, rest_s)
            if clean:
                with self._wake:
                    self._planned = None
            else:
                self._plan_purge(
                    min(
                        REST_MAX_S,
                        max(rest_s, RETRY_S * 2 ** min(10, self._refused - 1)),
                    )
                )
        return clean

    def _plan_purge(self, wait_s: float) -> None:
        """Plan a purge in `wait_s` seconds at the latest, and start the thread that runs it."""
        with self._wake:
            if not self.background:
                return
            due = time.monotonic() + wait_s
            self._planned = due if self._planned is None else min(self._planned, due)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_planned, name="purge", daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def _run_planned(self) -> None:
        """Run each planned purge when it is due, until the purger is closed; runs in the thread."""
        while True:
            with self._wake:
                while self.background:
                    # At its time, or once nobody would notice it.
                    if self._planned is not None and (
                        time.monotonic() >= self._planned
                        or not (self._refused or self.busy())
                    ):
                        break
                    self._wake.wait(None if self._planned is None else LOOK_S)
                if not self.background:
                    return
                self._planned = None
            with self._turn:
                self._run_due_or_log()

    def _run_due_or_log(self) -> bool:
        """Run a purge if one is due, and log a failure; return whether no text is left."""
        complete = False
        try:
            if not self.due():
                return True
            complete = self._run_purge()
        except (StorageFailed, MemoryBusy) as error:
            log.warning("purge_put_off", reason=error.reason)
            if isinstance(error, DatabaseUnreachable):
                self._plan_purge(RETRY_S)
        except MnemosynedError:
            log.exception("purge_failed")
        else:
            log.info("purged", complete=complete, duration_s=round(self._took_s, 3))
        return complete


@dataclass(eq=False, kw_only=True)
class HostedPurger(Purger):
    """Leaves purges to a host: many memories have the same tables, which are purged in turn."""

    busy: Callable[[], bool] = lambda: False
    soon: Callable[[], None]
    """Asks the host to call `run_due`: within `HOST_S` seconds if other memories leave it time."""

    def start(self) -> None:
        """Ask the host to run the purge that an earlier process left undone."""
        self.purge()

    def purge(self) -> bool:
        """Ask the host for a purge if one is due; return True if none is."""
        if not self.due():
            return True
        self.soon()
        return False

    def wait_s(self) -> float | None:
        """Return the seconds within which the host purges."""
        return HOST_S

    def close(self) -> None:
        """Do nothing: the host purges the text left in its next round."""
