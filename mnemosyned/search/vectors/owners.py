"""`SharedVectors`: vectors of many owners' memories, by one embedding model and one thread.

Vectors and indexing progress are in the storage. If the process embeds itself, it contains the codes
of owners who asked lately, and the vectors of those with few. Several daemons may do the same
work: each passes by the memories that another one has claimed.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned import errors, fairness
from mnemosyned.logs import logger
from mnemosyned.memory import engine_ports, values
from mnemosyned.search.vectors import embedding
from mnemosyned.search.vectors.index import (
    CODE_ROWS_MIN,
    READ_MAX,
    NewestVectors,
    VectorIndex,
)

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.vectors import PostgresVectors

QUESTIONS_MAX = 256
OWN_QUESTIONS_MAX = 16
OWNERS_MAX = 100_000
"""Maximum number of owners in the queue; the next round finds the others."""


class OwnerTurns:
    """Queues of owners in turn: their questions, then their memories. Safe from any thread."""

    def __init__(self) -> None:
        """Begin with empty queues."""
        self._lock = threading.Lock()
        self._questions: OrderedDict[int, deque[embedding.QuestionVector]] = (
            OrderedDict()
        )
        """By owner; the owner whose turn is next comes first."""
        self._asked = 0
        self._gathering: set[int] = set()
        """Owners whose turn may come later, as more new memories may follow till then."""
        self._later: list[tuple[float, int]] = []
        """When the turn of each of them may come, as a heap."""
        self._ready: OrderedDict[int, None] = OrderedDict()

    def ask(self, owner: int, question: embedding.QuestionVector) -> bool:
        """Queue an owner's question; return False if the queue of the owner, or of all owners, is full."""
        with self._lock:
            own = self._questions.get(owner, ())
            if self._asked >= QUESTIONS_MAX or len(own) >= OWN_QUESTIONS_MAX:
                return False
            self._questions.setdefault(owner, deque()).append(question)
            self._asked += 1
        return True

    def next_question(self) -> embedding.QuestionVector | None:
        """Remove and return the first question of the next owner, who then comes last; None if none waits."""
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
        """Queue an owner for embedding in `after_s` seconds, unless queued already or the queue is full."""
        with self._lock:
            waiting = len(self._ready) + len(self._gathering)
            if owner in self._ready or owner in self._gathering or waiting > OWNERS_MAX:
                return
            if after_s:
                self._gathering.add(owner)
                heappush(self._later, (time.monotonic() + after_s, owner))
            else:
                self._ready[owner] = None

    def next_owner(self) -> int | None:
        """Remove and return the owner whose memories are due next; None if no turn is due."""
        now = time.monotonic()
        with self._lock:
            while self._later and self._later[0][0] <= now:
                _, owner = heappop(self._later)
                self._gathering.discard(owner)
                self._ready[owner] = None
            return self._ready.popitem(last=False)[0] if self._ready else None

    def next_s(self) -> float | None:
        """Return the seconds until the next owner's memories are to be embedded; None if no owner waits."""
        with self._lock:
            if self._ready:
                return 0.0
            first = self._later[0][0] if self._later else None
        return None if first is None else max(0.0, first - time.monotonic())


BATCH = 32
"""Memories embedded in one turn of an owner, which share a commit."""
GATHER_S = 0.5
"""Seconds that new memories wait, so that more of them share a turn."""
ROUND_S = 60.0
"""Seconds between rounds, which find owners who sent no request to this daemon."""
ROUND_PAGE = 200
FAILED_AGAIN_S = 10.0
"""Pause before an owner's turn is repeated after an error, such as one of the database."""
PREPARED_AT_ONCE = 500
CODES_MAX = 500_000
"""Number of vectors whose codes are in memory, in 36 MB; of the owners, the least recent is dropped first."""
KEPT_MAX, KEPT_OF_OWNER_MAX = 100_000, 4_000
"""Number of whole vectors in memory, of all owners (in 40 MB) and of one; others are read when needed."""
LOADED_AT_ONCE, NEWS_AT_ONCE = 5_000, 500
READ_WHILE_LOADING = 2_000
"""Newest vectors that a question is compared with before an owner's codes are loaded."""
LOAD_AGAIN_S = 60.0
"""Minimum seconds between two loads of an owner's codes; a load leaves out deleted vectors."""

log = logger()


class _OwnerIndex(NamedTuple):
    """Codes of an owner's vectors, and the state of the table when they were read."""

    codes: VectorIndex
    model: int
    news: engine_ports.VectorNews
    """State of the table at the last check, without vectors."""
    loaded_at: float


class _IndexingProgress(NamedTuple):
    """How far down, from the newest, an owner's memories have been embedded."""

    progress: engine_ports.VectorProgress
    before: int


class SharedVectors(embedding.EmbeddingThread):
    """Thread with the embedding model of many owners, within `with`. Safe from any thread."""

    def __init__(
        self,
        *,
        store: Callable[[int], PostgresVectors],
        owners_lacking_vectors: Callable[[str, int, int], Sequence[int]],
        embedder: engine_ports.Embedder,
        pause: Callable[[threading.Event], None] | None = None,
    ) -> None:
        """Embed by one model for all owners; `store(owner)` returns the vectors of an owner.

        `owners_lacking_vectors(model identity, after, limit)` returns up to `limit` numbers of owners,
        above `after`, who lack vectors of the model.
        """
        super().__init__(embedder, pause)
        self.turns = OwnerTurns()
        self.failed: Counter[int] = Counter()
        """Memories refused by the model since the start, by owner."""
        self.allowance: fairness.OwnerAllowance | None = None
        """Limits and counts the seconds of the model for each owner's memories."""
        self.identity = ""
        self._store = store
        self._owners_lacking_vectors = owners_lacking_vectors
        self._claimant = random.SystemRandom().getrandbits(62)
        self._descents: OrderedDict[int, _IndexingProgress] = OrderedDict()
        self._round_at = 0.0
        self._round_after = 0
        self._owner = 0
        """Owner whose turn it is."""
        self._indexes: OrderedDict[int, _OwnerIndex] = OrderedDict()
        """By owner; who asked longest ago comes first."""
        self._unloaded: OrderedDict[int, None] = OrderedDict()
        """Owners whose codes are to be loaded."""
        # In this process the thread computes, amid others; elsewhere it waits for the model.
        self._seconds = time.thread_time if embedder.in_process else time.monotonic

    @property
    def embedder(self) -> engine_ports.Embedder:
        """The embedding model of all owners."""
        return self._embedder

    @property
    def status(self) -> values.EmbedderStatus:
        """The name, state and failure reason of the embedding model."""
        return self._status

    def ask(
        self, owner: int, text: str, *, wait_s: float
    ) -> engine_ports.PendingVector | None:
        """Queue an owner's question; return its pending vector, or None if the model is not ready.

        The vector is None after `wait_s` seconds, or if too many questions are queued.
        """
        if self._status.state is not values.EmbedderState.READY:
            return None
        if self._embedder.in_process:
            return embedding.DirectQuestion(text, self._embedder)
        question = embedding.QuestionVector(text, until=time.monotonic() + wait_s)
        if not self.turns.ask(owner, question):
            question.answer(None)
        self._wake.set()
        return question

    def index_of(self, owner: int, store: PostgresVectors) -> VectorIndex | None:
        """Return an owner's index, updated, or None if it is not in memory; its loading is then queued."""
        with self._changing:
            known = self._indexes.get(owner)
            if known is None:
                self._unloaded[owner] = None
            else:
                self._indexes.move_to_end(owner)
        if known is None:
            self._wake.set()
            return None
        since = known.news.version
        news = store.news(known.model, since=since, limit=NEWS_AT_ONCE)
        if news and news.version != since:
            known.codes.put(news.vectors)
        now = time.monotonic()
        with self._changing:
            if news and self._indexes.get(owner) is known:
                is_outdated = news.removals != known.news.removals
                if is_outdated:
                    known.codes.drop_vectors()
                if is_outdated and now - known.loaded_at > LOAD_AGAIN_S:
                    self._unloaded[owner] = None
                else:
                    news = news._replace(removals=known.news.removals)
                self._indexes[owner] = known._replace(news=news._replace(vectors={}))
        return known.codes

    def drop_vectors(self, owner: int) -> None:
        """Drop an owner's vectors from memory; until reloaded, they are read from the database."""
        with self._changing:
            if known := self._indexes.get(owner):
                known.codes.drop_vectors()

    def note_new_memories(self, owner: int) -> None:
        """Queue an owner's new memories for embedding; return at once."""
        self.turns.add(owner, after_s=GATHER_S)
        self._wake.set()

    # ------------------------------------------------------------ in the thread

    def _work(self) -> None:
        """Load the model, then embed owners' memories and answer questions until stopped."""
        self.identity = self._embedder.identity()
        # The process is started before anybody waits.
        self._embedder.embed_question("ready")
        self._change_status(state=values.EmbedderState.READY, reason="")
        log.info("embedding_of_owners_ready", model=self._embedder.name)
        while not self._closing.is_set():
            self._wake.clear()
            self._answer_questions()
            if self._unloaded:
                with self._changing:
                    waiting, _ = self._unloaded.popitem(last=False)
                self._load_index(waiting)
                continue
            owner = self.turns.next_owner()
            if owner is not None:
                self._index_owner(owner)
            elif time.monotonic() >= self._round_at:
                try:
                    page = self._owners_lacking_vectors(
                        self.identity, self._round_after, ROUND_PAGE
                    )
                except errors.MnemosynedError as error:
                    log.warning("owners_without_vectors_unknown", reason=error.message)
                    page = []
                for number in page:
                    self.turns.add(number)
                self._round_after = page[-1] if page else 0
                if not page:
                    self._note_other_model("")  # the next round may find one again
                    self._round_at = time.monotonic() + ROUND_S
            else:
                soonest = self._round_at - time.monotonic()
                next_s = self.turns.next_s()
                self._wake.wait(soonest if next_s is None else min(soonest, next_s))

    def _load_index(self, owner: int) -> None:
        """Load the codes of an owner's vectors; drop others' if there are too many; log storage errors."""
        try:
            store = self._store(owner)
            model = store.known_model(self.identity)
            # First: what is stored meanwhile is news.
            news = store.news(model, since=None, limit=1)
            if not model or news is None:
                return
            index = VectorIndex(
                read=partial(store.vectors_of, model),
                rows_max=CODES_MAX,
                kept_max=KEPT_OF_OWNER_MAX,
            )
            before = store.newest_position() + 1
            while not self._closing.is_set():
                page = store.vectors(model, before=before, limit=LOADED_AT_ONCE)
                if not index.put(page):
                    break
                before = min(page)
        except errors.MnemosynedError as error:
            log.warning("codes_not_loaded", owner=owner, reason=error.message)
            return
        with self._changing:
            self._indexes[owner] = _OwnerIndex(index, model, news, time.monotonic())
            self._indexes.move_to_end(owner)
            left, kept = CODES_MAX, KEPT_MAX
            for other in reversed(list(self._indexes)):
                codes = self._indexes[other].codes
                left -= max(CODE_ROWS_MIN, len(codes))
                kept -= len(codes.kept)
                if kept < 0:
                    codes.drop_vectors()
                if left < 0 and other != owner:
                    del self._indexes[other]

    def _index_owner(self, owner: int) -> None:
        """Embed a batch of an owner's memories, and queue the owner again if more are left.

        An error of one owner is logged, and its turn comes again later. Raises `ModelUnavailable`,
        which concerns all owners.
        """
        try:
            if self.allowance and (wait_s := self.allowance.wait_s(owner)):
                self.turns.add(owner, after_s=wait_s)
                return
            goes_on = self._embed_batch(owner)
        except errors.ModelUnavailable:
            self.turns.add(owner)
            raise
        except errors.NotFound:
            self._descents.pop(owner, None)
        except Exception as error:
            if self._closing.is_set():
                return
            if isinstance(error, errors.MnemosynedError):
                log.warning("embedding_postponed", owner=owner, reason=error.message)
            else:
                log.exception("embedding_postponed", owner=owner)
            self.turns.add(owner, after_s=FAILED_AGAIN_S)
        else:
            if goes_on:
                self.turns.add(owner)

    def _embed_batch(self, owner: int) -> bool:
        """Embed and store a batch of an owner's memories; return whether more may be left.

        Return False also if another daemon has claimed the owner. While stored vectors are left to convert
        for the search of the database, convert some instead, and return True.
        """
        store = self._store(owner)
        progress = store.claim(
            self._embedder.name, self.identity, claimant=self._claimant, seconds=300.0
        )
        if progress is None:
            return False
        if not self._status.reason:
            self._note_other_model(store.other_model(progress.model))
        search = store.search(progress.model)
        if search and search.prepare(limit=PREPARED_AT_ONCE):
            return True
        descent = self._descents.pop(owner, None)
        if descent is None or descent.progress.rewordings != progress.rewordings:
            descent = _IndexingProgress(progress, progress.newest + 1)
        rows = store.without_vector(
            progress.model, after=progress.done, before=descent.before, limit=BATCH
        )
        self._owner = owner
        began = self._seconds()
        made = self._embed_rows(rows)
        if self.allowance:
            self.allowance.use(owner, self._seconds() - began)
        if made:
            store.store_unless_edited(progress.model, made)
        if self._closing.is_set():
            return False
        if len(rows) == BATCH:
            self._descents[owner] = descent._replace(before=rows[-1].position)
            if len(self._descents) > OWNERS_MAX:
                self._descents.popitem(last=False)
            return True
        return not store.finish(descent.progress)

    def _count_refusal(
        self, row: engine_ports.EmbeddingInput, error: errors.EmbedderFailed
    ) -> None:
        """Log and count a memory of the current owner that the model refused."""
        owner = self._owner
        log.warning(
            "embedding_refused",
            owner=owner,
            position=row.position,
            reason=error.message,
        )
        if owner in self.failed or len(self.failed) < OWNERS_MAX:
            self.failed[owner] += 1

    def _next_question(self) -> embedding.QuestionVector | None:
        """Remove and return the next question, or None if no question waits."""
        return self.turns.next_question()


class OwnerVectors(embedding.CommonVectors):
    """`MemoryVectors` of one owner."""

    _store: PostgresVectors

    def __init__(
        self,
        owner: int,
        store: PostgresVectors,
        shared: SharedVectors,
        *,
        wait_s: float,
        similarity_min: float,
    ) -> None:
        """Search the vectors of one owner in `store`, and have them made by `shared`."""
        super().__init__(store, wait_s=wait_s, similarity_min=similarity_min)
        self._owner = owner
        self._shared = shared
        self._known = ("", 0)
        """Identity and number of the model, once the owner has its vectors."""

    @property
    def state(self) -> values.EmbedderState:
        """The model's state, without the database's counts."""
        return self._shared.status.state

    def status(self) -> values.EmbedderStatus:
        """Return the state of the model, with this owner's counts of vectors and failures."""
        shared = self._shared
        model = self._model_number()
        embedded = self._store.count(model) if model else 0
        is_coded = self._shared.embedder.in_process
        searches_all = is_coded or self._storage_search(model) is not None
        return replace(
            shared.status,
            embedded=embedded,
            searched=embedded if searches_all else min(embedded, READ_MAX),
            failed=shared.failed[self._owner],
            missed=self._missed,
        )

    def note_new_memories(self) -> None:
        """Queue the owner's new memories for embedding; return at once."""
        self._shared.note_new_memories(self._owner)

    def note_deletions(self) -> None:
        """Drop the owner's vectors from memory, as some of them were deleted."""
        self._shared.drop_vectors(self._owner)

    def note_edits(self, positions: Sequence[int]) -> None:
        """Delete the vectors of memories with these row numbers, and queue the owner to embed them again."""
        self._store.drop_vectors(positions)
        self._shared.note_new_memories(self._owner)

    def ask(self, text: str) -> engine_ports.PendingVector | None:
        """Queue a question for the model; return its pending vector, None if no model is ready."""
        return self._shared.ask(self._owner, text, wait_s=self._wait_s)

    def _search(self) -> engine_ports.VectorSearch | None:
        """Return an object that searches the owner's vectors; None if there are none so far."""
        model = self._model_number()
        if not model:
            return None
        if self._shared.embedder.in_process:
            index = self._shared.index_of(self._owner, self._store)
            return index or NewestVectors(
                self._store, model, rows_max=READ_WHILE_LOADING
            )
        return self._storage_search(model) or NewestVectors(self._store, model)

    def _storage_search(self, model: int) -> engine_ports.StorageSearch | None:
        """Return an object to search the vectors of a model in the database; None if the database cannot."""
        return self._store.search(model, limit_s=self._wait_s)

    def _model_number(self) -> int:
        """Return the model's number in the owner's tables; 0 if no vector of it is there."""
        identity = self._shared.identity
        if identity and self._known[0] != identity:
            number = self._store.known_model(identity)
            if not number:
                return 0
            self._known = (identity, number)
        return self._known[1] if identity else 0
