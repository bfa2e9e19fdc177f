"""Follows the daemon's live events in a thread of its own, whatever becomes of the daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.verbs.streams.events import Event

AGAIN_S = 2.0
"""Seconds until events are asked for again after the stream ended or was refused."""


class Listener:
    """Hands each event to a function, until the end."""

    def __init__(self, connection: Connection, tell: Callable[[Event], object]) -> None:
        self._connection = connection
        self._tell = tell
        self._over = threading.Event()

    def start(self) -> None:
        """Begin; the thread keeps no program from ending, as it waits for the daemon."""
        threading.Thread(target=self._listen, name="events", daemon=True).start()

    def stop(self) -> None:
        """Tell of no further event."""
        self._over.set()

    def _listen(self) -> None:
        while not self._over.is_set():
            with suppress(MnemosynedError, OSError):  # the state says that it is gone
                self._follow()
            self._over.wait(AGAIN_S)

    def _follow(self) -> None:
        for event in self._connection.events():
            if self._over.is_set():
                return
            self._tell(event)
