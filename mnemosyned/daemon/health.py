"""`/livez` and `/readyz`: whether the process works, and whether a balancer should send it requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from mnemosyned.daemon.metrics import Sample
from mnemosyned.errors import MnemosynedError, SchemaTooNew
from mnemosyned.http_messages import Response
from mnemosyned.logs import logger
from mnemosyned.memory.values import EmbedderState

if TYPE_CHECKING:
    from mnemosyned.assembly.build import OpenMemory
    from mnemosyned.daemon.http.server import EventLoop

LIVE_PATH, READY_PATH = PROBE_PATHS = ("/livez", "/readyz")
"""Answered without a token, as balancers have none."""
CACHED_S = 1.0
"""A check serves the requests of so many seconds."""
CHECK_MAX_S = 3.0
"""A check that takes longer has failed."""
PASSED, UNKNOWN = "ok", "unknown"

log = logger()


class HealthProbe:
    """Answers to `/livez` and `/readyz`; safe from any thread.

    A check of the database runs in a thread of its own, so that neither busy worker threads nor a
    busy pool of connections fail it, and no event loop waits for it.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        """Begin as live and not ready; `now` is the monotonic clock."""
        self.loop: EventLoop | None = None
        """The event loop that serves requests, once there is one."""
        self.memory: OpenMemory | None = None
        """The memory that is checked, while it is open."""
        self.draining = False
        """Whether the daemon is about to stop, and still serves requests."""
        self._now = now
        self._changing = threading.Lock()
        self._began = -CACHED_S
        """When the last check began, by the monotonic clock."""
        self._found: Mapping[str, str] | None = {}
        """What the last check found, by the name of a part; None while it runs."""
        self._waiting: set[Callable[[], None]] = set()
        self._failed: list[str] = []

    def live(self) -> Response:
        """Return status 200, or 503 if the event loop or the worker threads have stopped working."""
        is_live = self.loop is None or self.loop.is_working()
        status = HTTPStatus.OK if is_live else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(status, msgspec.json.encode({"live": is_live}))

    def samples(self) -> Iterator[Sample]:
        """Yield the sample of the metric that tells whether the daemon is ready."""
        asked, checked = self._now(), threading.Event()
        response = self.ready(asked, checked.set)
        if response is None:
            checked.wait(CHECK_MAX_S)
            response = self.ready(asked, checked.set)
        is_ready = response is not None and response.status is HTTPStatus.OK
        yield Sample("mnemosyned_ready", is_ready)

    def ready(self, asked: float, wake: Callable[[], None]) -> Response | None:
        """Return whether the daemon is ready, for a request at the monotonic time `asked`.

        None while the database is checked: call this again after `wake` was called, or a moment later.
        """
        with self._changing:
            memory, now = self.memory, self._now()
            if memory is None or self.draining:
                state = UNKNOWN if memory else "awaited"
                return self._respond({"database": state, "schema": UNKNOWN}, memory)
            if self._found is None and now - self._began > CHECK_MAX_S:
                found = {"database": "no_answer", "schema": UNKNOWN}
                return self._respond(found, memory)
            if self._found is not None and self._began >= asked - CACHED_S:
                return self._respond(self._found, memory)
            if self._found is not None:
                check = threading.Thread(
                    target=self._check, args=(memory,), name="readiness", daemon=True
                )
                try:
                    check.start()
                except RuntimeError:
                    found = {"database": "no_thread", "schema": UNKNOWN}
                    return self._respond(found, memory)
                self._began, self._found = now, None
            self._waiting.add(wake)
        return None

    def _check(self, memory: OpenMemory) -> None:
        """Check the database, save the results, and wake the event loops waiting for them."""
        found = {"database": PASSED, "schema": PASSED}
        try:
            memory.store.maintenance.check_ready()
        except SchemaTooNew as error:
            found["schema"] = error.code
        except MnemosynedError as error:
            found = {"database": error.code, "schema": UNKNOWN}
        except Exception:
            log.exception("readiness_failed")
            found = {"database": MnemosynedError.code, "schema": UNKNOWN}
        with self._changing:
            self._found, waiting = found, self._waiting
            self._waiting = set()
        for wake in waiting:
            wake()

    def _respond(self, found: Mapping[str, str], memory: OpenMemory | None) -> Response:
        """Return the response for what a check found; log a change of the parts that failed."""
        vectors = memory.vectors if memory else None
        encoder = vectors.state if vectors else EmbedderState.OFF
        drain = "draining" if self.draining else PASSED
        checks = {**found, "encoder": encoder.value, "drain": drain}
        failed = [
            name
            for name, state in checks.items()
            if name != "encoder" and state not in (PASSED, UNKNOWN)
        ]
        is_required = memory is not None and memory.config.embedding.required
        if is_required and encoder is not EmbedderState.READY:
            failed.append("encoder")
        if failed != self._failed:
            self._failed = failed
            log.info("readiness_changed", failed=failed, checks=checks)
        status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
        body = {"ready": not failed, "failed": failed, "checks": checks}
        return Response(status, msgspec.json.encode(body))
