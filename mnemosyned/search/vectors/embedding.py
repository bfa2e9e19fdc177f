"""The thread that asks an embedding model, and similarities for the candidates of a question."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from mnemosyned import errors
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory import engine_ports
from mnemosyned.memory.values import EmbedderState, EmbedderStatus
from mnemosyned.search.query import Match, Nearness, Query, SearchCandidates
from mnemosyned.search.scoring import embedding_text
from mnemosyned.search.vectors.bearing import rate_endings
from mnemosyned.search.vectors.index import dot_products
from mnemosyned.search.vectors.packing import unpack

if TYPE_CHECKING:
    from mnemosyned.storage.common.search import VectorStore

BATCH_TEXTS_MAX, BATCH_CHARS_MAX = 4, 1_200
"""Limits of the texts for one call of the model: some 20 ms with the built-in encoder."""

log = logger()

OnRefusal = Callable[[engine_ports.EmbeddingInput, errors.EmbedderFailed], None]


def embedding_batches(
    rows: Sequence[engine_ports.EmbeddingInput],
) -> Iterator[Sequence[engine_ports.EmbeddingInput]]:
    """Yield batches of memories, each for one model call, limited in count and characters."""
    batch: list[engine_ports.EmbeddingInput] = []
    chars = 0
    for row in rows:
        chars += len(row.content)
        is_full = len(batch) == BATCH_TEXTS_MAX or chars > BATCH_CHARS_MAX
        if batch and is_full:
            yield batch
            batch, chars = [], len(row.content)
        batch.append(row)
    if batch:
        yield batch


def embed_memories(
    embedder: engine_ports.Embedder,
    rows: Sequence[engine_ports.EmbeddingInput],
    on_refusal: OnRefusal,
) -> list[tuple[engine_ports.EmbeddingInput, bytes]]:
    """Return memories with vectors, in order; call `on_refusal` for refused ones. Raises `ModelUnavailable`."""
    try:
        made = embedder.embed([embedding_text(row.role, row.content) for row in rows])
    except errors.EmbedderFailed as error:
        if len(rows) == 1:
            on_refusal(rows[0], error)
            return []
        return [
            pair for row in rows for pair in embed_memories(embedder, [row], on_refusal)
        ]
    return list(zip(rows, made, strict=True))


class QuestionVector:
    """Vector of a question that the model's thread makes while the words are looked up."""

    def __init__(self, text: str, *, until: float) -> None:
        """Wait for the vector of `text` until the time `until`, by `time.monotonic`."""
        self.text = text
        self.until = until
        self._answered = threading.Event()
        self._vector: bytes | None = None

    def answer(self, vector: bytes | None) -> None:
        """Deliver the question's vector, or None if there will be none."""
        self._vector = vector
        self._answered.set()

    def vector(self) -> bytes | None:
        """Wait for the question's vector and return it; None if there is none by the deadline."""
        self._answered.wait(max(0.0, self.until - time.monotonic()))
        return self._vector


class DirectQuestion:
    """A question embedded by this process, in the thread that needs the vector."""

    def __init__(self, text: str, embedder: engine_ports.Embedder) -> None:
        """Make the vector of `text` once it is needed, by `embedder`."""
        self._text = text
        self._embedder = embedder
        self._vector: bytes | None = None
        self._is_asked = False

    def vector(self) -> bytes | None:
        """Return the question's vector; None if the embedder fails, which is logged."""
        if not self._is_asked:  # once, however many memories it is compared with
            self._is_asked = True
            try:
                self._vector = self._embedder.embed_question(self._text)
            except (errors.EmbedderFailed, errors.ModelUnavailable) as error:
                log.warning("question_refused", reason=error.message)
        return self._vector


RETRY_S = 300.0
"""Pause before a model that cannot be run is tried again."""
STORAGE_RETRY_S = 5.0
"""Pause before another attempt while the database cannot be reached or is busy."""
STOP_S = 10.0


class EmbeddingThread(ABC):
    """Thread that asks an embedding model, within `with`: questions go before memories."""

    def __init__(
        self,
        embedder: engine_ports.Embedder,
        pause: Callable[[threading.Event], None] | None,
    ) -> None:
        """Embed by `embedder`; call `pause`, which ends when its event is set, before each batch.

        An embedder that is a process of its own needs no pauses.
        """
        self._embedder = embedder
        self._pause = pause if embedder.in_process else None
        self._status = EmbedderStatus(state=EmbedderState.LOADING, name=embedder.name)
        self._hurry = threading.Event()
        """Set while somebody waits for vectors, so that no pause is made."""
        self._changing = threading.Lock()
        """Held for an instant, around each change of the status."""
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the current batch; the creator of the embedder closes it."""
        self._closing.set()
        self._wake.set()
        self._thread.join(STOP_S)

    @abstractmethod
    def _work(self) -> None:
        """Load the model, then embed memories and answer questions until the thread is to stop.

        Called in the thread, and called again after an error.
        """

    @abstractmethod
    def _next_question(self) -> QuestionVector | None:
        """Remove and return the next question, or None if no question waits."""

    @abstractmethod
    def _count_refusal(
        self, row: engine_ports.EmbeddingInput, error: errors.EmbedderFailed
    ) -> None:
        """Log and count a memory that the model refused."""

    def _run(self) -> None:
        """Call `_work` until the thread is to stop; after an error, pause and call it again."""
        while not self._closing.is_set():
            reason = ""
            pause_s = RETRY_S
            try:
                self._work()
            except errors.ModelUnavailable as error:
                reason = error.message
            except Exception as error:  # noqa: BLE001 a boundary: it is logged
                if self._closing.is_set():  # the end of the embedder ended its call
                    return
                log_failure("embedding_failed", error)
                ours = isinstance(error, errors.MnemosynedError)
                reason = str(error) if ours else "it failed; the log says how"
                if isinstance(error, errors.DatabaseUnreachable | errors.MemoryBusy):
                    reason, pause_s = (
                        "the database is unreachable or busy",
                        STORAGE_RETRY_S,
                    )
            if reason and not self._closing.is_set():
                self._change_status(state=EmbedderState.UNAVAILABLE, reason=reason)
                name = self._embedder.name
                log.warning("embedding_unavailable", model=name, reason=reason)
            self._closing.wait(pause_s)

    def _embed_rows(
        self, rows: Sequence[engine_ports.EmbeddingInput]
    ) -> list[tuple[engine_ports.EmbeddingInput, bytes]]:
        """Return accepted memories with vectors; meanwhile answer questions. Raises `ModelUnavailable`."""
        made: list[tuple[engine_ports.EmbeddingInput, bytes]] = []
        for batch in embedding_batches(rows):
            if self._closing.is_set():
                break
            if self._pause:
                self._pause(self._hurry)
            made += embed_memories(self._embedder, batch, self._count_refusal)
            self._answer_questions()
        return made

    def _answer_questions(self) -> None:
        """Embed all waiting questions, and answer late ones with None. Raises `ModelUnavailable`."""
        while not self._closing.is_set() and (question := self._next_question()):
            vector = None
            try:
                if time.monotonic() < question.until:
                    vector = self._embedder.embed_question(question.text)
            except errors.EmbedderFailed as error:
                log.warning("question_refused", reason=error.message)
            finally:
                question.answer(vector)

    def _note_other_model(self, other: str) -> None:
        """Log once, and say in the status, that stored vectors are of model `other`; "" removes the note."""
        reason = other and (
            f"vectors are of {other}, not of {self._embedder.name}: give all daemons of the "
            "database the same embedding settings, or each embeds all memories again"
        )
        if reason and reason != self._status.reason:
            log.warning("embedding_replaced", reason=reason)
        self._change_status(reason=reason)

    def _change_status(self, **values: object) -> None:
        """Replace fields of the embedding status, while no other thread changes any."""
        with self._changing:
            self._status = replace(self._status, **values)  # type: ignore[arg-type]


NEAREST = 200
"""Nearest vectors before the question's filters, which may leave few of them."""
NEAREST_SHOWN = 20
BUSY = "found by words alone: the embedding model was not ready in time"
NOT_READY = "found by words alone: the embedding model is {state}"
TOO_SLOW = "found by words alone: the database did not compare the vectors in time"


class CommonVectors(engine_ports.MemoryVectors, ABC):
    """Similarities within one memory, however its vectors are made and searched."""

    def __init__(
        self, store: VectorStore, *, wait_s: float, similarity_min: float
    ) -> None:
        """Compare with the vectors in `store`.

        A question waits `wait_s` seconds for its vector; memories with a cosine below
        `similarity_min` are not found by it alone.
        """
        self._store = store
        self._wait_s = wait_s
        self._similarity_min = similarity_min
        self._missed = 0
        """Number of searches without vectors."""

    @abstractmethod
    def _search(self) -> engine_ports.VectorSearch | None:
        """Return an object that searches the vectors; None if there are none so far."""

    @abstractmethod
    def _model_number(self) -> int:
        """Return the model's number in the tables; 0 if no vector of it is there."""

    def add_similarities(
        self,
        question: engine_ports.PendingVector | None,
        query: Query,
        candidates: SearchCandidates,
    ) -> tuple[SearchCandidates, str]:
        """Return the candidates with similarities to the question's vector, and an empty note.

        Memories that are similar enough become candidates too. If the question has no vector in time,
        or the comparison takes too long, return unchanged candidates and a note of the reason. The
        note is empty if there are no vectors so far, or if words found candidates while the model loads.
        """
        state = self.state
        vector = question.vector() if question else None
        if vector is None:
            if state is EmbedderState.LOADING and candidates.memories:
                return candidates, ""  # it loads for seconds, and the words were found
            self._missed += 1
            is_ready = state is EmbedderState.READY
            note = BUSY if is_ready else NOT_READY.format(state=state.value)
            return candidates, note
        vectors = self._search()
        if vectors is None:
            return candidates, ""
        positions = {match.position for match in candidates.memories}
        least = self._similarity_min
        try:
            nearest, cosines = vectors.nearest_and_cosines(
                vector, NEAREST, positions, least=least
            )
        except engine_ports.ComparisonTooSlow:
            self._missed += 1
            return candidates, TOO_SLOW
        unseen = [position for position in nearest if position not in positions]
        more: list[Match] = []
        # In parts, since the first mostly suffices: filters leave out few.
        count = NEAREST_SHOWN
        while unseen and len(more) < NEAREST_SHOWN:
            part, unseen = unseen[:count], unseen[count:]
            passed = {
                match.position: match for match in self._store.candidates(query, part)
            }
            more += [passed[position] for position in part if position in passed]
            count *= 2
        more = more[:NEAREST_SHOWN]
        shown = positions.union(match.position for match in more)
        cosines |= {seq: near for seq, near in nearest.items() if seq in shown}
        nearness = Nearness(cosines, vector_only_min=least)
        memories = [*candidates.memories, *more]
        return replace(candidates, memories=memories, nearness=nearness), ""

    def similarities(self, text: str, ids: Sequence[str]) -> dict[str, float]:
        """Return {memory id: cosine to a text} of memories with a vector; empty if not ready or too slow."""
        if (asked := self._begin_search(text)) is None:
            return {}
        search, vector = asked
        positions = self._store.positions_of(ids)
        self._await_vectors(positions.values())
        try:
            cosines = search.cosines(vector, positions.values())
        except engine_ports.ComparisonTooSlow:
            return {}
        return {id: cosines[seq] for id, seq in positions.items() if seq in cosines}

    def _await_vectors(self, positions: Collection[int]) -> None:
        """Wait briefly for the vectors of a few memories that were stored a moment ago."""

    def nearest_of(self, text: str, positions: Sequence[int], count: int) -> list[int]:
        """Return the `count` of `positions` most like a text; empty if not ready or too slow."""
        if (asked := self._begin_search(text)) is None:
            return []
        search, vector = asked
        try:
            return search.nearest_of(vector, positions, count)
        except engine_ports.ComparisonTooSlow:
            return []

    def _begin_search(
        self, text: str
    ) -> tuple[engine_ports.VectorSearch, bytes] | None:
        """Return a vector search and a text's vector; None if not ready or too slow, or without vectors."""
        question = self.ask(text)
        vector = question.vector() if question else None
        search = self._search() if vector is not None else None
        return None if vector is None or search is None else (search, vector)

    def vectors_of(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the vectors of memories by id; memories without a vector are left out."""
        positions = self._store.positions_of(ids) if self._model_number() else {}
        vectors = self.vectors_at(list(positions.values()))
        return {id: vectors[seq] for id, seq in positions.items() if seq in vectors}

    def vectors_at(self, positions: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of memories by row number; memories without a vector are left out."""
        model = self._model_number() if positions else 0
        return self._store.vectors_of(model, positions) if model else {}

    def compare(self, known: Mapping[str, bytes]) -> engine_ports.MemoryComparison:
        """Return an object to compare memories by their vectors in `known`."""
        rows = unpack(list(known.values())) if known else None
        places = {id: place for place, id in enumerate(known)}

        def cosines_to(id: str) -> dict[str, float]:
            """Return {id: cosine to a memory's vector} of all compared memories; empty if `id` has none."""
            if id not in known:
                return {}
            return dict(zip(known, dot_products(rows, known[id]).tolist(), strict=True))

        def rate_ending(newer: str, older: str) -> float | None:
            """Return the log odds that a memory ends an older one; None if either has no vector."""
            if rows is None or newer not in known or older not in known:
                return None
            return rate_endings(rows[places[newer]], rows[None, places[older]])[0]

        return engine_ports.MemoryComparison(cosines_to, rate_ending)
