"""Counts of what the server does, for `/metrics`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mnemosyned.prometheus import Histogram

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
OTHER = "other"
"""The label of all paths that do not exist."""


class ServerActivity:
    """Counts of requests and connections; the event loop and its threads write, any may read."""

    def __init__(self) -> None:
        self.requests = Histogram(
            "mnemosyned_request_duration_seconds",
            "Time to answer a request, by verb or path and by status; of a stream, to its head.",
            ("verb", "status"),
            bounds=BOUNDS_S,
        )
        self.refused: Counter[int] = Counter()
        """Requests refused before they were read, by status."""
        self.connections = {True: 0, False: 0}
        """Open connections over the socket, and over TCP."""
        self.connections_max = 0
        self.streams = 0
        """Streams that are being sent."""
        self.started_at = time.time()
        self._lock = threading.Lock()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count a stream while it is sent."""
        with self._lock:
            self.streams += 1
        try:
            yield
        finally:
            with self._lock:
                self.streams -= 1

    def refuse(self, status: int) -> None:
        """Count a request that was refused before it was read."""
        self.refused[status] += 1
