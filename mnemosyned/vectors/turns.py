"""Owners who wait for the one embedding model: their questions first, then their memories."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque

from mnemosyned.vectors.question import Question

QUESTIONS_MAX = 256
OWN_QUESTIONS_MAX = 16
OWNERS_MAX = 100_000
"""Owners whose memories may wait; others are found by the next round."""


class OwnerTurns:
    """Queues in which each owner has one turn after another's. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: OrderedDict[int, deque[Question]] = OrderedDict()
        """By owner; the owner whose turn is next comes first."""
        self._asked = 0
        self._gathering: OrderedDict[int, float] = OrderedDict()
        """Owners with new memories, and when their turn may come: more may follow till then."""
        self._ready: OrderedDict[int, None] = OrderedDict()

    def ask(self, owner: int, question: Question) -> bool:
        """Have a question wait; whether there was room for it."""
        with self._lock:
            own = self._questions.get(owner, ())
            if self._asked >= QUESTIONS_MAX or len(own) >= OWN_QUESTIONS_MAX:
                return False
            self._questions.setdefault(owner, deque()).append(question)
            self._asked += 1
        return True

    def question(self) -> Question | None:
        """Take the question whose turn it is; its owner comes last then."""
        with self._lock:
            if not self._questions:
                return None
            owner, own = self._questions.popitem(last=False)
            question = own.popleft()
            self._asked -= 1
            if own:
                self._questions[owner] = own
        return question

    def add(self, owner: int, *, after_s: float = 0.0) -> None:
        """Have an owner's memories wait for their turn, which comes after so long at the earliest."""
        with self._lock:
            waiting = len(self._ready) + len(self._gathering)
            if owner in self._ready or owner in self._gathering or waiting > OWNERS_MAX:
                return
            if after_s:
                self._gathering[owner] = time.monotonic() + after_s
            else:
                self._ready[owner] = None

    def owner(self) -> int | None:
        """Take the owner whose memories come next; None where nobody's turn has come."""
        now = time.monotonic()
        with self._lock:
            while self._gathering and next(iter(self._gathering.values())) <= now:
                self._ready[self._gathering.popitem(last=False)[0]] = None
            return self._ready.popitem(last=False)[0] if self._ready else None

    def next_s(self) -> float | None:
        """Return the seconds until the next owner's turn; None where no owner waits."""
        with self._lock:
            if self._ready:
                return 0.0
            first = next(iter(self._gathering.values()), None)
        return None if first is None else max(0.0, first - time.monotonic())
