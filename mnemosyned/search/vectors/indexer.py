"""`Vectors`: keeps a vector of every memory, in the background, and adds similarity to a recall.

One thread asks the model, so that questions go before memories and no call waits for another one.
Memories without a vector are read from the tables: a crash loses no queue, and a new model simply
finds every memory without a vector.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from mnemosyned.errors import EmbedderFailed
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import (
    Embedder,
    EmbeddingInput,
    MemoryVectors,
    PendingVector,
    VectorNews,
    VectorStore,
)
from mnemosyned.memory.values import EmbedderState, EmbedderStatus
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.search.vectors.embedding import (
    BUSY,
    NOT_READY,
    RETRY_S,
    QuestionVector,
    add_nearness,
    embed_memories,
    embedding_batches,
    work_with_retries,
)
from mnemosyned.search.vectors.index import StorageIndex, VectorIndex

BATCH = 32
"""So many memories share a commit."""
GATHER_S = 0.5
SPANS_MAX = 50
LOADED_AT_ONCE = 5_000
COUNTED_AT_ONCE = 50_000
QUESTIONS_MAX = 16
START_AFTER_S = 0.5
"""A daemon serves before this begins, and a program that is done by then never pays for it."""
LOOK_S = 30.0
"""So often the index looks for what other daemons embedded, forgot or worded anew."""
NEWS_AT_ONCE = 500
STOP_S = 10.0
PREPARED_AT_ONCE = 500

log = logger()


class VectorIndexer(MemoryVectors):
    """The vectors of one store by one embedding model, from `with` to its end."""

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        wait_s: float,
        similarity_min: float,
        rows_max: int,
        retry_s: float = RETRY_S,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._wait_s = wait_s
        self._similarity_min = similarity_min
        self._rows_max = rows_max
        self._retry_s = retry_s
        self._index: VectorIndex | StorageIndex | None = None
        self._model = 0
        self._seen: VectorNews | None = None
        """What was known at the last look; None where no other daemon stores vectors."""
        self._look_at = 0.0
        self._status = EmbedderStatus(state=EmbedderState.LOADING, name=embedder.name)
        self._counting = threading.Lock()
        """Held for an instant, around each change of the status."""
        self._questions: queue.Queue[QuestionVector] = queue.Queue(QUESTIONS_MAX)
        self._wake = threading.Event()
        self._forgot = threading.Event()
        self._reworded: deque[int] = deque()
        """Positions whose vectors are to be made again."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._wake.set()
        self._embedder.close()  # what it is working on ends here
        self._thread.join(STOP_S)
        self._embedder.close()  # unless it was started once more meanwhile

    # -------------------------------------------------------------- from outside

    def status(self) -> EmbedderStatus:
        """How far it is, and whether it can be asked."""
        return self._status

    def remembered(self) -> None:
        """There are new memories; returns at once."""
        self._wake.set()

    def forgot(self) -> None:
        """Memories were deleted: their vectors are dropped from memory too, soon."""
        self._forgot.set()
        self._wake.set()

    def reworded(self, positions: Sequence[int]) -> None:
        """Memories have other words: their vectors are made again, soon."""
        self._reworded.extend(positions)
        self.forgot()

    def ask(self, text: str) -> QuestionVector | None:
        """Have a question made into a vector; None where the model cannot be asked now."""
        if self._status.state is not EmbedderState.READY:
            return None
        question = QuestionVector(text, until=time.monotonic() + self._wait_s)
        try:
            self._questions.put_nowait(question)
        except queue.Full:
            question.answer(None)
        self._wake.set()
        return question

    def near(
        self,
        question: PendingVector | None,
        query: Query,
        candidates: SearchCandidates,
    ) -> tuple[SearchCandidates, str]:
        """Add similarities to candidates, or a note why words alone decide."""
        vector = question.vector() if question else None
        index = self._index
        if vector is None or index is None:
            self._count(missed=1)
            state = self._status.state
            ready = state is EmbedderState.READY
            return candidates, BUSY if ready else NOT_READY.format(state=state.value)
        store, least = self._store, self._similarity_min
        found, note = add_nearness(
            query, candidates, vector, search=index, store=store, least=least
        )
        if note:
            self._count(missed=1)
        return found, note

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        self._closing.wait(START_AFTER_S)
        work_with_retries(
            self._work,
            closing=self._closing,
            failed=self._unavailable,
            retry_s=self._retry_s,
        )

    def _work(self) -> None:
        model = self._embedder.name
        self._model = self._store.use_model(model, self._embedder.identity())
        # The process is started before anybody waits.
        self._embedder.embed_question("ready")
        # First: what is stored while the index loads is news.
        self._seen = self._store.news(self._model, since=None, limit=1)
        self._look_at = time.monotonic() + LOOK_S
        index = self._index = self._new_index()
        older = self._load_all(index)
        self._recount(index)
        self._change(state=EmbedderState.READY, reason="", searched=len(index))
        log.info("embedding_ready", model=model, embedded=self._status.embedded)
        spans: list[tuple[int, int]] = []
        top = 0
        while not self._closing.is_set():
            self._wake.clear()
            self._answer()
            if self._forgot.is_set():
                self._forgot.clear()
                spans = _merge_spans([*self._drop_reworded(), *spans])
                self._recount(index)
            if self._seen and time.monotonic() >= self._look_at:
                self._look(index, self._seen)
            if older:
                older = self._load(index, before=older)
                self._change(searched=len(index))
                continue
            newest = self._newest_position(top, gather=not spans)
            if newest > top:
                spans.append((top, newest + 1))
                spans = _merge_spans(spans)
                top = newest
            if spans:
                self._embed_span(index, spans)
            else:
                self._wake.wait(
                    max(0.0, self._look_at - time.monotonic()) if self._seen else None
                )

    def _look(self, index: VectorIndex | StorageIndex, seen: VectorNews) -> None:
        """Take in what other daemons stored since the last look, and drop what is gone."""
        before = seen
        while not self._closing.is_set():
            news = self._store.news(self._model, since=seen.version, limit=NEWS_AT_ONCE)
            if news is None or not news.vectors:
                break
            index.put(news.vectors)
            seen = news
            self._answer()
        self._seen = news or seen
        if self._seen[1:] != before[1:]:
            self._recount(index)
        self._look_at = time.monotonic() + LOOK_S

    def _drop_reworded(self) -> list[tuple[int, int]]:
        """Drop the vectors of earlier words, also one made meanwhile; the spans to be embedded."""
        positions = []
        while self._reworded:
            positions.append(self._reworded.popleft())
        if positions:
            self._store.drop_vectors(positions)
        return [(position - 1, position + 1) for position in sorted(positions)]

    def _newest_position(self, top: int, *, gather: bool) -> int:
        """The newest position; if it is beyond `top`, after waiting for more to come."""
        newest = self._store.newest_position()
        if gather and newest > top > 0:
            self._gather()
            newest = self._store.newest_position()
        return newest

    def _embed_span(
        self, index: VectorIndex | StorageIndex, spans: list[tuple[int, int]]
    ) -> None:
        """Embed a batch of the newest span, and put back what is left of it."""
        after, before = spans.pop()
        if left := self._embed(index, after=after, before=before):
            spans.append((after, left))
        elif not spans:
            log.info("embedding_complete", embedded=self._status.embedded)

    def _load_all(self, index: VectorIndex | StorageIndex) -> int:
        """Load until the index is full; where to go on, 0 at the end."""
        older = self._store.newest_position() + 1
        while older and not index.full and not self._closing.is_set():
            older = self._load(index, before=older)
        return older

    def _gather(self) -> None:
        """Let what comes in one by one share a commit; questions are answered meanwhile."""
        until = time.monotonic() + GATHER_S
        while (left_s := until - time.monotonic()) > 0 and not self._closing.is_set():
            self._wake.wait(left_s)
            self._wake.clear()
            self._answer()

    def _new_index(self) -> VectorIndex | StorageIndex:
        model = self._model
        if search := self._store.search(model, limit_s=self._wait_s):
            while search.prepare(limit=PREPARED_AT_ONCE) and not self._closing.is_set():
                pass  # ends, as the vectors do
            return StorageIndex(search)
        return VectorIndex(
            rows_max=self._rows_max,
            read=lambda seqs: self._store.vectors_of(model, seqs),
        )

    def _load(self, index: VectorIndex | StorageIndex, *, before: int) -> int:
        """Some of what was made in an earlier life, newest first; where to go on, 0 at the end."""
        if isinstance(index, StorageIndex):
            return 0  # it stays where it is, and is counted already
        vectors = self._store.vectors(self._model, before=before, limit=LOADED_AT_ONCE)
        return min(vectors) if index.put(vectors) else 0

    def _recount(self, index: VectorIndex | StorageIndex) -> None:
        """See what is still there, in parts: no question waits for all of it."""
        after = embedded = 0
        while after < sys.maxsize:
            if self._closing.is_set():
                return
            known = self._store.embedded(
                self._model, after=after, limit=COUNTED_AT_ONCE
            )
            until = known[-1] if len(known) == COUNTED_AT_ONCE else sys.maxsize
            index.keep_only(known, after=after, until=until)
            embedded += len(known)
            after = until
            self._answer()
        self._change(embedded=embedded, searched=len(index))

    def _embed(
        self, index: VectorIndex | StorageIndex, *, after: int, before: int
    ) -> int | None:
        """Give the newest that have none their vectors; how far it came, None where all have."""
        rows = self._store.without_vector(
            self._model, after=after, before=before, limit=BATCH
        )
        vectors: dict[int, bytes] = {}
        for piece in embedding_batches(
            rows
        ):  # when closing, the rest comes back empty at once
            vectors |= self._piece(piece)
            self._answer()
        kept = self._store.keep_vectors(self._model, vectors) if vectors else []
        index.put({position: vectors[position] for position in kept})
        embedded = self._status.embedded + len(kept)
        self._change(embedded=embedded, searched=len(index))
        return rows[-1].position if rows else None

    def _piece(self, rows: Sequence[EmbeddingInput]) -> dict[int, bytes]:
        """The vectors of a few memories; one that fails takes no other along."""
        if self._closing.is_set():
            return {}
        made = embed_memories(self._embedder, rows, self._refused)
        return {row.position: vector for row, vector in made}

    def _refused(self, row: EmbeddingInput, error: EmbedderFailed) -> None:
        log.warning("embedding_refused", position=row.position, reason=error.message)
        self._count(failed=1)

    def _answer(self) -> None:
        """All questions that wait and are still worth an answer."""
        while not self._closing.is_set():
            try:
                question = self._questions.get_nowait()
            except queue.Empty:
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
        self._change(state=EmbedderState.UNAVAILABLE, reason=reason)
        log.warning("embedding_unavailable", model=self._embedder.name, reason=reason)

    def _change(self, **values: object) -> None:
        with self._counting:
            self._status = replace(self._status, **values)  # type: ignore[arg-type]

    def _count(self, *, missed: int = 0, failed: int = 0) -> None:
        with self._counting:
            old = self._status
            self._status = replace(
                old, missed=old.missed + missed, failed=old.failed + failed
            )


def _merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge spans when too many wait; their rows are then read again."""
    if len(spans) <= SPANS_MAX:
        return spans
    return [(min(first for first, _ in spans), max(last for _, last in spans))]
