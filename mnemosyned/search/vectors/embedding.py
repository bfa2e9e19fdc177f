"""Embedding of memories and questions in small batches, and similarities for the candidates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mnemosyned.errors import EmbedderFailed, MnemosynedError, ModelUnavailable
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.engine_ports import (
    ComparisonTooSlow,
    Embedder,
    EmbeddingInput,
    VectorSearch,
    VectorStore,
)
from mnemosyned.search.query import Match, Nearness, Query, SearchCandidates
from mnemosyned.search.scoring import embedding_text

BATCH_TEXTS_MAX, BATCH_CHARS_MAX = 4, 1_200
"""Limits of the texts for one call of the model."""

log = logger()

OnRefusal = Callable[[EmbeddingInput, EmbedderFailed], None]


def embedding_batches(
    rows: Sequence[EmbeddingInput],
) -> Iterator[Sequence[EmbeddingInput]]:
    """Split memories into batches for one embedding call, by count and characters."""
    batch: list[EmbeddingInput] = []
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
    embedder: Embedder, rows: Sequence[EmbeddingInput], on_refusal: OnRefusal
) -> list[tuple[EmbeddingInput, bytes]]:
    """Return memories with their vectors, without the memories that the model refuses.

    Raises `ModelUnavailable`.
    """
    try:
        made = embedder.embed([embedding_text(row.role, row.content) for row in rows])
    except EmbedderFailed as error:
        if len(rows) == 1:
            on_refusal(rows[0], error)
            return []
        return [
            pair for row in rows for pair in embed_memories(embedder, [row], on_refusal)
        ]
    return list(zip(rows, made, strict=True))


class QuestionVector:
    """A question on its way to the model, while the words are looked up."""

    def __init__(self, text: str, *, until: float) -> None:
        self.text = text
        self.until = until
        self._answered = threading.Event()
        self._vector: bytes | None = None

    def answer(self, vector: bytes | None) -> None:
        """Deliver the question's vector, or None if there will be none."""
        self._vector = vector
        self._answered.set()

    def vector(self) -> bytes | None:
        """Wait for the vector until the deadline; return None if it does not arrive in time."""
        self._answered.wait(max(0.0, self.until - time.monotonic()))
        return self._vector


def answer_question(embedder: Embedder, question: QuestionVector) -> None:
    """Embed a question and deliver its vector, or None after its deadline.

    Raises `ModelUnavailable`.
    """
    vector = None
    if time.monotonic() < question.until:
        try:
            vector = embedder.embed_question(question.text)
        except EmbedderFailed as error:
            log.warning("question_refused", reason=error.message)
        finally:
            question.answer(vector)


RETRY_S = 300.0
"""Pause before a model that cannot be run is tried again."""


def work_with_retries(
    work: Callable[[], None],
    *,
    closing: threading.Event,
    on_failure: Callable[[str], None],
    retry_s: float,
) -> None:
    """Call `work` until `closing` is set; after an error log it, call `on_failure`, and wait.

    `on_failure` gets the reason; the wait takes `retry_s` seconds.
    """
    while not closing.is_set():
        try:
            work()
        except ModelUnavailable as error:
            on_failure(error.message)
        except Exception as error:  # noqa: BLE001 a boundary: it is logged
            if closing.is_set():  # the end of the embedder ended its call
                return
            log_failure("embedding_failed", error)
            ours = isinstance(error, MnemosynedError)
            on_failure(str(error) if ours else "it failed; the log says how")
        closing.wait(retry_s)


NEAREST = 200
"""Nearest vectors before the question's filters, which may leave few of them."""
NEAREST_SHOWN = 20
BUSY = "found by words alone: the embedding model was not ready in time"
NOT_READY = "found by words alone: the embedding model is {state}"
TOO_SLOW = "found by words alone: the database did not compare the vectors in time"


def add_nearness(
    query: Query,
    candidates: SearchCandidates,
    vector: bytes,
    *,
    search: VectorSearch,
    store: VectorStore,
    least: float,
) -> tuple[SearchCandidates, str]:
    """Return the candidates with vector similarities, and an empty note.

    The nearest memories with at least the similarity `least` become candidates, even without a
    common word. If the comparison takes too long, return the candidates unchanged with a note.
    """
    positions = [match.position for match in candidates.memories]
    try:
        cosines = search.cosines(vector, positions)
        nearest = search.nearest(vector, NEAREST, least=least)
    except ComparisonTooSlow:
        return candidates, TOO_SLOW
    unseen = [position for position in nearest if position not in cosines]
    more: list[Match] = []
    if unseen:
        order = {position: rank for rank, position in enumerate(unseen)}
        more = sorted(
            store.candidates(query, unseen), key=lambda match: order[match.position]
        )[:NEAREST_SHOWN]
    cosines |= {match.position: nearest[match.position] for match in more}
    nearness = Nearness(cosines, vector_only_min=least)
    memories = [*candidates.memories, *more]
    return replace(candidates, memories=memories, nearness=nearness), ""
