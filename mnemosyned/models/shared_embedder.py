"""`SharedEmbedder`: one embedding model for several threads, questions before memories."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mnemosyned.domain.errors import EmbedderFailed
from mnemosyned.domain.ports.models import Embedder


class SharedEmbedder(Embedder):
    """An `Embedder` that takes one call at a time, in the order of their coming."""

    def __init__(self, embedder: Embedder, *, wait_s: float) -> None:
        """A call waits `wait_s` at most for its turn."""
        self.name = embedder.name
        self._embedder = embedder
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._is_busy = False
        self._questions: deque[object] = deque()
        self._memories: deque[object] = deque()

    def identity(self) -> str:
        return self._embedder.identity()

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        with self._turn(self._memories):
            return self._embedder.embed(texts)

    def embed_question(self, text: str) -> bytes:
        with self._turn(self._questions):
            return self._embedder.embed_question(text)

    def close(self) -> None:
        self._embedder.close()

    @contextmanager
    def _turn(self, queue: deque[object]) -> Iterator[None]:
        ticket = object()
        with self._changed:
            queue.append(ticket)
            came = self._changed.wait_for(
                lambda: not self._is_busy and self._next() is ticket, self._wait_s
            )
            queue.remove(ticket)
            if not came:
                self._changed.notify_all()
                raise EmbedderFailed(
                    f"{self.name} was busy with other calls; try again later"
                )
            self._is_busy = True
        try:
            yield
        finally:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()

    def _next(self) -> object:
        return (self._questions or self._memories)[0]
