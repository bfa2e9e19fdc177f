"""Clients that remember and recall while what they speak to is killed or replaced."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from mnemosyned import Client
from mnemosyned.errors import MnemosynedError

PAUSE_S = 0.02


class SteadyClient:
    """Remembers and recalls in a thread until it is stopped, and keeps what was acknowledged."""

    def __init__(self, number: int, open_client: Callable[[], Client]) -> None:
        self.acknowledged: set[str] = set()
        self.missed: list[str] = []
        """Acknowledged, and not found at once."""
        self.errors: Counter[str] = Counter()
        """By code, or in full if they are none of ours."""
        self._name = f"w{number}"
        self._open_client = open_client
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _work(self) -> None:
        count = 0
        with self._open_client() as client:
            while not self._stopped.is_set():
                count += 1
                word = f"{self._name}x{count}"
                try:
                    client.remember(f"Note {word} was taken.", id=word, session=word)
                    self.acknowledged.add(word)
                    found = client.recall(word, session=word)
                except MnemosynedError as error:
                    self.errors[error.code] += 1
                    time.sleep(PAUSE_S)
                    continue
                except Exception as error:  # noqa: BLE001 the test's thread judges it
                    self.errors[repr(error)] += 1
                    continue
                if word not in [hit.id for hit in (*found.hits, *found.nearest)]:
                    self.missed.append(word)
