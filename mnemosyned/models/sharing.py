"""Models shared by several owners or threads, each served in turn."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mnemosyned.errors import EmbedderFailed, LimitReached, SummarizerFailed
from mnemosyned.fairness import OwnerAllowance
from mnemosyned.memory.engine_ports import Embedder, TextModel


@dataclass(eq=False)
class _TurnTicket:
    """A call that waits for a model, and the model once it is assigned."""

    model: TextModel | None = None


class ModelTurns:
    """Queue that lends shared models to owners in turn, for one call each.

    An owner with many waiting calls gets no more turns than others.
    """

    def __init__(self, models: Sequence[TextModel], *, wait_s: float) -> None:
        """Share `models`; a call waits at most `wait_s` for its turn."""
        self.models = tuple(models)
        self._wait_s = wait_s
        self._free = deque(models)
        self._queues: OrderedDict[int, deque[_TurnTicket]] = OrderedDict()
        """Waiting calls by owner; the next owner comes first."""
        self._changed = threading.Condition()
        self._is_closed = False

    @contextmanager
    def borrow(self, owner: int) -> Iterator[TextModel]:
        """Return a context manager that lends a model on the owner's turn. Raises `SummarizerFailed`."""
        model = self._acquire_model(owner)
        try:
            yield model
        finally:
            with self._changed:
                self._release_model(model)
                is_done = self._is_closed and model in self._free
            if is_done:
                model.close()

    def close(self) -> None:
        """Close the free models, and every busy model once no call waits for it."""
        with self._changed:
            self._is_closed = True
            free = list(self._free)
        for model in free:
            model.close()

    def _acquire_model(self, owner: int) -> TextModel:
        """Return a free model, once it is the owner's turn. Raises `SummarizerFailed` after too long a wait."""
        ticket = _TurnTicket()
        ends = time.monotonic() + self._wait_s
        with self._changed:
            if self._free:  # then nobody waits
                return self._free.popleft()
            self._queues.setdefault(owner, deque()).append(ticket)
            while ticket.model is None:
                if (left := ends - time.monotonic()) <= 0:
                    self._queues[owner].remove(ticket)
                    if not self._queues[owner]:
                        del self._queues[owner]
                    raise SummarizerFailed(
                        f"{self.models[0].name} was busy with other owners' memories "
                        f"for {self._wait_s:g} s"
                    )
                self._changed.wait(left)
            return ticket.model

    def _release_model(self, model: TextModel) -> None:
        """Hand a model on to the oldest call of the next owner, who then comes last; else mark it free."""
        if not self._queues:
            self._free.append(model)
            return
        owner, queue = self._queues.popitem(last=False)
        queue.popleft().model = model
        if queue:
            self._queues[owner] = queue
        self._changed.notify_all()


class OwnerModel(TextModel):
    """Model as one owner sees it: each call waits for the owner's turn at the shared models."""

    def __init__(
        self, turns: ModelTurns, owner: int, *, allowance: OwnerAllowance | None = None
    ) -> None:
        """Use the models of `turns`; `allowance` limits and counts the owner's seconds of them."""
        self._turns = turns
        self._owner = owner
        self._allowance = allowance
        self._any = turns.models[0]
        self._current: TextModel | None = None
        self.name = self._any.name

    @property
    def context_tokens(self) -> int:
        """The context window in tokens of the models that owners share."""
        return self._any.context_tokens

    @property
    def parameters(self) -> int:
        """The number of weights of the models that owners share."""
        return self._any.parameters

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without waiting for a turn."""
        return self._any.count_tokens(text)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """Return a shared model's answer after the owner's turn has come.

        Raises `SummarizerFailed`, and `LimitReached` while the owner's seconds are used up.
        """
        allowance = self._allowance
        if allowance and (wait_s := math.ceil(allowance.wait_s(self._owner))):
            raise LimitReached(
                "this owner's seconds of the language model are used up "
                "(model_s_per_minute)",
                retry_after_s=wait_s,
            )
        with self._turns.borrow(self._owner) as model:
            self._current = model
            began = time.monotonic()
            try:
                return model.complete(
                    messages, max_tokens=max_tokens, temperature=temperature
                )
            finally:
                self._current = None
                if allowance:
                    allowance.use(self._owner, time.monotonic() - began)

    def close(self) -> None:
        """End the owner's running call; the models stay open for other owners."""
        if model := self._current:
            model.close()


class SharedEmbedder(Embedder):
    """Embedder that takes one call at a time, questions before memories."""

    def __init__(self, embedder: Embedder, *, wait_s: float) -> None:
        """Share `embedder`; a call waits at most `wait_s` for its turn."""
        self.name = embedder.name
        self._embedder = embedder
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._is_busy = False
        self._questions: deque[object] = deque()
        self._memories: deque[object] = deque()

    def identity(self) -> str:
        """Return the fingerprint of the embedding model that is shared."""
        return self._embedder.identity()

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text, after waiting for a turn among the calls that embed memories."""
        with self._wait_for_turn(self._memories):
            return self._embedder.embed(texts)

    def embed_question(self, text: str) -> bytes:
        """Return a question's vector, after waiting for a turn among the calls that embed questions."""
        with self._wait_for_turn(self._questions):
            return self._embedder.embed_question(text)

    def close(self) -> None:
        """Stop the processes of the embedding model that is shared."""
        self._embedder.close()

    @contextmanager
    def _wait_for_turn(self, queue: deque[object]) -> Iterator[None]:
        """Wait for a turn in `queue`; keep the embedder while the block runs. Raises `EmbedderFailed`."""
        ticket = object()
        with self._changed:
            queue.append(ticket)
            has_turn = self._changed.wait_for(
                lambda: (
                    not self._is_busy
                    and (self._questions or self._memories)[0] is ticket
                ),
                self._wait_s,
            )
            queue.remove(ticket)
            if not has_turn:
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
