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
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mnemosyned.errors import EmbedderFailed
from mnemosyned.logs import logger
from mnemosyned.memory import engine_ports
from mnemosyned.memory.values import EmbedderState, EmbedderStatus
from mnemosyned.search.vectors import embedding
from mnemosyned.search.vectors.index import StorageIndex, VectorIndex

if TYPE_CHECKING:
    from mnemosyned.storage.common.search import VectorStore

BATCH = 32
"""Number of memories whose vectors are stored in one commit."""
GATHER_S = 0.5
SPANS_MAX = 50
LOADED_AT_ONCE, LOADED_FIRST = 1_000, 50_000
"""Vectors read at once, and how many of the newest are read before questions are answered."""
COUNTED_AT_ONCE = 10_000
KEPT_MAX = 10_000
"""Number of vectors up to which all are kept in memory, in 4 MB: reading them takes 5 % of a recall."""
QUESTIONS_MAX = 16
START_AFTER_S = 0.5
"""Delay of the start, so that a daemon serves first, and a program that only stores loads no model."""
SOON_S, SOON_MAX = 0.06, 8
"""How long a prompt waits for the vectors of what was said a moment ago, in another tool, and of how many."""
LOADING_S = 2.0
"""How long a question waits for a model in this process and for stored vectors, which load in half a second."""
CLOSE_AGAIN_S = 0.2
"""Seconds between attempts to close the embedder while the thread has not ended."""
LOOK_S = 30.0
"""Seconds between checks for vectors that other daemons stored or deleted."""
NEWS_AT_ONCE = 500
PREPARED_AT_ONCE = 500

log = logger()


class VectorIndexer(embedding.EmbeddingThread, embedding.CommonVectors):
    """Thread that keeps the vectors of a store up to date, within `with`."""

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: engine_ports.Embedder,
        wait_s: float,
        similarity_min: float,
        pause: Callable[[threading.Event], None] | None = None,
    ) -> None:
        """Keep vectors of `store` by the model of `embedder`.

        A question waits `wait_s` seconds for its vector. Memories with a cosine below
        `similarity_min` are not found by it alone.
        """

        def pause_once_ready(hurry: threading.Event) -> None:
            if pause and self._can_answer.is_set():
                pause(hurry)

        embedding.EmbeddingThread.__init__(self, embedder, pause_once_ready)
        embedding.CommonVectors.__init__(
            self, store, wait_s=wait_s, similarity_min=similarity_min
        )
        self._index: VectorIndex | StorageIndex | None = None
        self._model = 0
        self._seen: engine_ports.VectorNews | None = None
        """State at the last look; None if no other daemon stores vectors."""
        self._look_at = 0.0
        self._questions: queue.Queue[embedding.QuestionVector] = queue.Queue(
            QUESTIONS_MAX
        )
        self._asked = threading.Event()
        """Set by the first question: the start is not delayed any more."""
        self._can_answer = threading.Event()
        """Set once a question need not wait: there is an index with the newest memories, or no memory."""
        self._embedded = threading.Condition()
        self._embedded_to = 0
        """Row number up to which all memories were embedded."""
        self._forgot = threading.Event()
        self._reworded: deque[int] = deque()
        """Positions whose vectors are to be made again."""

    def __exit__(self, *_: object) -> None:
        """Stop the thread and close the embedder, which ends its present call."""
        for event in (self._closing, self._asked, self._wake):
            event.set()
        ends = time.monotonic() + embedding.STOP_S
        # More than once: the thread may be just about to call.
        while self._thread.is_alive() and time.monotonic() < ends:
            self._embedder.close()
            self._thread.join(CLOSE_AGAIN_S)
        self._embedder.close()  # unless it was started once more meanwhile

    # -------------------------------------------------------------- from outside

    @property
    def state(self) -> EmbedderState:
        """The model's state."""
        return self._status.state

    def status(self) -> EmbedderStatus:
        """Return the counts of embedded and searched memories, and the model's state."""
        return replace(self._status, missed=self._missed)

    def note_new_memories(self) -> None:
        """Wake the thread for new memories; return at once."""
        self._wake.set()

    def note_deletions(self) -> None:
        """Let the thread remove the vectors of deleted memories from its index."""
        self._forgot.set()
        self._wake.set()

    def note_edits(self, positions: Sequence[int]) -> None:
        """Have the thread embed the edited memories with these row numbers again."""
        self._reworded.extend(positions)
        self.note_deletions()

    def ask(self, text: str) -> engine_ports.PendingVector | None:
        """Queue a question for the model; return its pending vector, None if no model is ready.

        If the queue is full, the pending vector is answered with None at once. A model in this
        process is waited for while it loads, up to `LOADING_S` seconds.
        """
        embedder = self._embedder
        is_loading = self._status.state is EmbedderState.LOADING
        if is_loading and embedder.in_process:
            self._asked.set()
            if embedder.is_prepared:
                self._can_answer.wait(LOADING_S)
        if self._status.state is not EmbedderState.READY:
            return None
        if embedder.in_process:
            return embedding.DirectQuestion(text, embedder)
        question = embedding.QuestionVector(text, until=time.monotonic() + self._wait_s)
        try:
            self._questions.put_nowait(question)
        except queue.Full:
            question.answer(None)
        self._wake.set()
        return question

    def _await_vectors(self, positions: Collection[int]) -> None:
        """Wait up to `SOON_S` seconds for the vectors of up to `SOON_MAX` new memories."""
        new = [each for each in positions if each > self._embedded_to]
        if new and len(new) <= SOON_MAX and self._embedder.in_process:
            with self._embedded:
                self._hurry.set()
                self._wake.set()
                self._embedded.wait_for(lambda: self._embedded_to >= max(new), SOON_S)

    def _search(self) -> VectorIndex | StorageIndex | None:
        """Return the index; None while the model loads."""
        return self._index

    def _model_number(self) -> int:
        """Return the model's number in the tables; 0 while it loads."""
        return self._model

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        """Wait for a question, or for `START_AFTER_S` seconds; then work until the indexer is closed."""
        self._asked.wait(START_AFTER_S)
        super()._run()

    def _work(self) -> None:
        """Load the model, then embed memories and answer questions until the thread is to stop."""
        model = self._embedder.name
        self._model = self._store.register_model(model, self._embedder.identity())
        if not self._store.newest_position():
            self._can_answer.set()
        # The process is started before anybody waits.
        self._embedder.embed_question("ready")
        # First: what is stored while the index loads is news.
        self._seen = self._store.news(self._model, since=None, limit=1)
        self._look_at = time.monotonic() + LOOK_S
        index = self._index = self._new_index()
        older = self._store.newest_position() + 1
        while older and len(index) < LOADED_FIRST and not self._closing.is_set():
            older = self._load_older(index, before=older)
        self._recount_vectors(index)
        self._change_status(state=EmbedderState.READY, reason="", searched=len(index))
        log.info("embedding_ready", model=model, embedded=self._status.embedded)
        top = self._store.newest_position()
        spans = [(0, top + 1)]
        self._embed_next(index, spans)
        self._can_answer.set()
        while not self._closing.is_set():
            self._wake.clear()
            self._answer_questions()
            if self._forgot.is_set() or self._reworded:
                self._forgot.clear()
                spans = _merge_spans([*self._drop_reworded(), *spans])
                self._recount_vectors(index)
            if self._seen and time.monotonic() >= self._look_at:
                self._index_news(index, self._seen)
            if older:
                older = self._load_older(index, before=older)
                self._change_status(searched=len(index))
                continue
            newest = self._newest_position(top, gather=not spans)
            if newest > top:
                spans.append((top, newest + 1))
                spans = _merge_spans(spans)
                top = newest
            has_work = bool(spans)
            if has_work:
                self._embed_next(index, spans)
            # At once, even if more memories were stored meanwhile: somebody may wait for these.
            if not spans and (self._hurry.is_set() or self._embedded_to < top):
                with self._embedded:
                    self._embedded_to = top
                    self._hurry.clear()
                    self._embedded.notify_all()
            elif not has_work:
                self._wake.wait(
                    max(0.0, self._look_at - time.monotonic()) if self._seen else None
                )

    def _index_news(
        self, index: VectorIndex | StorageIndex, seen: engine_ports.VectorNews
    ) -> None:
        """Add the vectors stored by other daemons since `seen`, and remove the vectors of deleted memories."""
        before = seen
        while not self._closing.is_set():
            news = self._store.news(self._model, since=seen.version, limit=NEWS_AT_ONCE)
            if news is None or not news.vectors:
                break
            index.put(news.vectors)
            seen = news
            self._answer_questions()
        self._seen = news or seen
        if self._seen[1:] != before[1:]:
            self._recount_vectors(index)
        self._look_at = time.monotonic() + LOOK_S

    def _drop_reworded(self) -> list[tuple[int, int]]:
        """Delete the vectors of edited memories; return (row number - 1, row number + 1) of each memory."""
        positions = list(self._reworded)
        if positions:
            self._store.drop_vectors(positions)
        for _ in positions:  # not before: after an error they are dropped again
            self._reworded.popleft()
        return [(position - 1, position + 1) for position in sorted(positions)]

    def _newest_position(self, top: int, *, gather: bool) -> int:
        """Return the row number of the newest memory, 0 if there is none.

        With `gather`, if it is beyond `top`, pause first for `GATHER_S` seconds to let more memories
        arrive, and answer questions meanwhile.
        """
        newest = self._store.newest_position()
        if not gather or not newest > top > 0:
            return newest
        until = time.monotonic() + GATHER_S
        while (left_s := until - time.monotonic()) > 0 and not self._closing.is_set():
            if self._hurry.is_set():
                break
            self._wake.wait(left_s)
            self._wake.clear()
            self._answer_questions()
        return self._store.newest_position()

    def _new_index(self) -> VectorIndex | StorageIndex:
        """Return an empty index: in the storage if it can compare vectors, else in memory."""
        model = self._model
        # By codes, an embedder of this process is answered sooner than a server compares.
        search = self._store.search(model, limit_s=self._wait_s)
        if search and not self._embedder.in_process:
            while search.prepare(limit=PREPARED_AT_ONCE) and not self._closing.is_set():
                pass  # ends, as the vectors do
            return StorageIndex(search)
        return VectorIndex(
            read=lambda seqs: self._store.vectors_of(model, seqs), kept_max=KEPT_MAX
        )

    def _load_older(self, index: VectorIndex | StorageIndex, *, before: int) -> int:
        """Load vectors below row `before` into the index; return the lowest row loaded, 0 if none are left."""
        if isinstance(index, StorageIndex):
            return 0  # the storage searches, and has counted them
        vectors = self._store.vectors(self._model, before=before, limit=LOADED_AT_ONCE)
        return min(vectors) if index.put(vectors) else 0

    def _recount_vectors(self, index: VectorIndex | StorageIndex) -> None:
        """Count the stored vectors page by page for the status; remove deleted ones from the index."""
        after = embedded = 0
        while after < sys.maxsize:
            if self._closing.is_set():
                return
            known = self._store.embedded_positions(
                self._model, after=after, limit=COUNTED_AT_ONCE
            )
            until = known[-1] if len(known) == COUNTED_AT_ONCE else sys.maxsize
            index.keep_only(known, after=after, until=until)
            embedded += len(known)
            after = until
            self._answer_questions()
        self._change_status(embedded=embedded, searched=len(index))
        if self._seen:
            self._note_other_model(self._store.other_model(self._model))

    def _embed_next(
        self, index: VectorIndex | StorageIndex, spans: list[tuple[int, int]]
    ) -> None:
        """Embed the newest memories of the last of `spans`, and shorten or remove that span."""
        after, before = spans.pop()
        rows = self._store.without_vector(
            self._model, after=after, before=before, limit=BATCH
        )
        vectors = {row.position: vector for row, vector in self._embed_rows(rows)}
        kept = self._store.store_vectors(self._model, vectors) if vectors else []
        index.put({position: vectors[position] for position in kept})
        embedded = self._status.embedded + len(kept)
        self._change_status(embedded=embedded, searched=len(index))
        if len(rows) == BATCH:
            spans.append((after, rows[-1].position))
        elif not spans:
            log.info("embedding_complete", embedded=self._status.embedded)

    def _count_refusal(
        self, row: engine_ports.EmbeddingInput, error: EmbedderFailed
    ) -> None:
        """Log and count a memory that the model refused."""
        log.warning("embedding_refused", position=row.position, reason=error.message)
        self._change_status(failed=self._status.failed + 1)

    def _next_question(self) -> embedding.QuestionVector | None:
        """Remove and return the next question, or None if no question waits."""
        try:
            return self._questions.get_nowait()
        except queue.Empty:
            return None


def _merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of row numbers, merged into a single span if more than `SPANS_MAX`."""
    if len(spans) <= SPANS_MAX:
        return spans
    return [(min(first for first, _ in spans), max(last for _, last in spans))]
