"""`SharedVectors`: vectors of many owners' memories, by one embedding model and one thread.

Nothing of an owner is held in memory: its vectors are in the storage, and so is how far they are.
Several daemons may do the same work: what one has claimed the others pass by.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from mnemosyned.domain.errors import (
    EmbedderFailed,
    MnemosynedError,
    ModelUnavailable,
    NotFound,
)
from mnemosyned.domain.ports.models import Embedder
from mnemosyned.domain.ports.vectors import (
    EmbeddingInput,
    OwnedVectorStore,
    VectorProgress,
)
from mnemosyned.domain.statuses import EmbedderState, EmbedderStatus
from mnemosyned.logs import logger
from mnemosyned.vectors.pieces import embedded, pieces
from mnemosyned.vectors.question import Question
from mnemosyned.vectors.retrying import RETRY_S, retrying
from mnemosyned.vectors.turns import OWNERS_MAX, OwnerTurns

BATCH = 32
"""Memories of a turn, which share a commit."""
GATHER_S = 0.5
"""New memories wait so long for others that share their turn."""
ROUND_S = 60.0
"""Seconds between rounds, which find the owners that no request of this daemon named."""
ROUND_PAGE = 200
CLAIM_S = 300.0
FAILED_AGAIN_S = 10.0
"""After so long an owner's turn comes again that failed, as with the database."""
STOP_S = 10.0
PREPARED_AT_ONCE = 500

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersWithVectors:
    """Access to the vectors of owners."""

    store: Callable[[int], OwnedVectorStore]
    """Returns the vectors of an owner."""
    lacking: Callable[[str, int, int], Sequence[int]]
    """Lists owners who lack vectors of a model, above a number, up to a count."""


class _Descent(NamedTuple):
    """A way through an owner's memories, from the newest down."""

    progress: VectorProgress
    before: int


class SharedVectors:
    """The embedding model of many owners, from `with` to its end. Safe from any thread."""

    def __init__(
        self, *, owners: OwnersWithVectors, embedder: Embedder, retry_s: float = RETRY_S
    ) -> None:
        self.turns = OwnerTurns()
        self.failed: Counter[int] = Counter()
        """Memories that the model made no vector of since the start, by owner."""
        self.identity = ""
        self._owners = owners
        self._embedder = embedder
        self._retry_s = retry_s
        self._claimant = random.SystemRandom().getrandbits(62)
        self._descents: OrderedDict[int, _Descent] = OrderedDict()
        self._status = EmbedderStatus(state=EmbedderState.LOADING, name=embedder.name)
        self._round_at = 0.0
        self._round_after = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vectors", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the piece that is being made; whoever made the embedder closes it."""
        self._closing.set()
        self._wake.set()
        self._thread.join(STOP_S)

    @property
    def status(self) -> EmbedderStatus:
        """The state of the model."""
        return self._status

    def ask(self, owner: int, text: str, *, wait_s: float) -> Question | None:
        """Have a question made into a vector; None where the model cannot be asked now."""
        if self._status.state is not EmbedderState.READY:
            return None
        question = Question(text, until=time.monotonic() + wait_s)
        if not self.turns.ask(owner, question):
            question.answer(None)
        self._wake.set()
        return question

    def remembered(self, owner: int) -> None:
        """An owner has new memories; returns at once."""
        self.turns.add(owner, after_s=GATHER_S)
        self._wake.set()

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        retrying(
            self._work,
            closing=self._closing,
            failed=self._unavailable,
            retry_s=self._retry_s,
        )

    def _work(self) -> None:
        self.identity = self._embedder.identity()
        # The process is started before anybody waits.
        self._embedder.embed_question("ready")
        self._status = replace(self._status, state=EmbedderState.READY, reason="")
        log.info("embedding_of_owners_ready", model=self._embedder.name)
        while not self._closing.is_set():
            self._wake.clear()
            self._answer()
            owner = self.turns.owner()
            if owner is not None:
                self._guarded(owner)
            elif time.monotonic() >= self._round_at:
                self._find_owners()
            else:
                soonest = self._round_at - time.monotonic()
                next_s = self.turns.next_s()
                self._wake.wait(soonest if next_s is None else min(soonest, next_s))

    def _find_owners(self) -> None:
        """Have the next owners of the round wait for their turn; the round ends without any."""
        try:
            page = self._owners.lacking(self.identity, self._round_after, ROUND_PAGE)
        except MnemosynedError as error:
            log.warning("owners_without_vectors_unknown", reason=error.message)
            page = []
        for owner in page:
            self.turns.add(owner)
        self._round_after = page[-1] if page else 0
        if not page:
            self._round_at = time.monotonic() + ROUND_S

    def _guarded(self, owner: int) -> None:
        """Give one owner its turn; what fails for it fails for no other.

        Raises `ModelUnavailable`, which concerns all.
        """
        try:
            goes_on = self._turn(owner)
        except ModelUnavailable:
            self.turns.add(owner)
            raise
        except NotFound:
            self._descents.pop(owner, None)
        except Exception as error:
            if self._closing.is_set():
                return
            if isinstance(error, MnemosynedError):
                log.warning("embedding_postponed", owner=owner, reason=error.message)
            else:
                log.exception("embedding_postponed", owner=owner)
            self.turns.add(owner, after_s=FAILED_AGAIN_S)
        else:
            if goes_on:
                self.turns.add(owner)

    def _turn(self, owner: int) -> bool:
        """Embed a batch of an owner's memories; whether there may be more."""
        store = self._owners.store(owner)
        progress = store.claim(
            self._embedder.name,
            self.identity,
            claimant=self._claimant,
            seconds=CLAIM_S,
        )
        if progress is None:
            return False
        search = store.search(progress.model)
        if search and search.prepare(limit=PREPARED_AT_ONCE):
            return True
        descent = self._descents.pop(owner, None)
        if descent is None or descent.progress.rewordings != progress.rewordings:
            descent = _Descent(progress, progress.newest + 1)
        rows = store.without_vector(
            progress.model,
            after=progress.done,
            before=descent.before,
            limit=BATCH,
        )
        made = self._made(owner, rows)
        if made:
            store.keep_made(progress.model, made)
        if self._closing.is_set():
            return False
        if len(rows) == BATCH:
            self._remember_descent(owner, descent._replace(before=rows[-1].position))
            return True
        return not store.finish(descent.progress)

    def _remember_descent(self, owner: int, descent: _Descent) -> None:
        self._descents[owner] = descent
        if len(self._descents) > OWNERS_MAX:
            self._descents.popitem(last=False)

    def _made(
        self, owner: int, rows: Sequence[EmbeddingInput]
    ) -> list[tuple[EmbeddingInput, bytes]]:
        """Make vectors, and answer the questions that come meanwhile."""

        def refused(row: EmbeddingInput, error: EmbedderFailed) -> None:
            log.warning(
                "embedding_refused",
                owner=owner,
                position=row.position,
                reason=error.message,
            )
            if owner in self.failed or len(self.failed) < OWNERS_MAX:
                self.failed[owner] += 1

        made = []
        for piece in pieces(rows):
            if self._closing.is_set():
                break
            made += embedded(self._embedder, piece, refused)
            self._answer()
        return made

    def _answer(self) -> None:
        """All questions that wait and are still worth an answer, one of each owner in turn."""
        while not self._closing.is_set():
            question = self.turns.question()
            if question is None:
                return
            vector = None
            if time.monotonic() < question.until:
                try:
                    vector = self._embedder.embed_question(question.text)
                except EmbedderFailed as error:
                    log.warning("question_refused", reason=error.message)
                finally:
                    question.answer(vector)

    def _unavailable(self, reason: str) -> None:
        if self._closing.is_set():
            return
        state = EmbedderState.UNAVAILABLE
        self._status = replace(self._status, state=state, reason=reason)
        log.warning("embedding_unavailable", model=self._embedder.name, reason=reason)
