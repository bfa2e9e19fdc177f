"""`Question`: the text of a question, and its vector when the model has made it."""

from __future__ import annotations

import threading
import time


class Question:
    """A question on its way to the model, while the words are looked up."""

    def __init__(self, text: str, *, until: float) -> None:
        self.text = text
        self.until = until
        self._answered = threading.Event()
        self._vector: bytes | None = None

    def answer(self, vector: bytes | None) -> None:
        """Hand the vector over, or that there will be none."""
        self._vector = vector
        self._answered.set()

    def vector(self) -> bytes | None:
        """The vector, if it comes in time."""
        self._answered.wait(max(0.0, self.until - time.monotonic()))
        return self._vector
