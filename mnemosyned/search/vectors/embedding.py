"""Embedding of memories and questions in small batches, and similarities for the candidates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mnemosyned.errors import EmbedderFailed, MnemosynedError, ModelUnavailable
from mnemosyned.logs import log_failure
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
"""So many texts are asked for at once, fewer if they are long."""

Refused = Callable[[EmbeddingInput, EmbedderFailed], None]


def embedding_batches(
    rows: Sequence[EmbeddingInput],
) -> Iterator[Sequence[EmbeddingInput]]:
    """Divide memories into what is embedded at once."""
    piece: list[EmbeddingInput] = []
    chars = 0
    for row in rows:
        chars += len(row.content)
        too_large = len(piece) == BATCH_TEXTS_MAX or chars > BATCH_CHARS_MAX
        if piece and too_large:
            yield piece
            piece, chars = [], len(row.content)
        piece.append(row)
    if piece:
        yield piece


def embed_memories(
    embedder: Embedder, rows: Sequence[EmbeddingInput], refused: Refused
) -> list[tuple[EmbeddingInput, bytes]]:
    """Return memories with their vectors; one that fails takes no other along.

    Raises `ModelUnavailable`.
    """
    try:
        made = embedder.embed([embedding_text(row.role, row.content) for row in rows])
    except EmbedderFailed as error:
        if len(rows) == 1:
            refused(rows[0], error)
            return []
        return [
            pair for row in rows for pair in embed_memories(embedder, [row], refused)
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
        """Hand the vector over, or that there will be none."""
        self._vector = vector
        self._answered.set()

    def vector(self) -> bytes | None:
        """The vector, if it comes in time."""
        self._answered.wait(max(0.0, self.until - time.monotonic()))
        return self._vector


RETRY_S = 300.0
"""After so long a model that cannot be run is tried again."""


def work_with_retries(
    work: Callable[[], None],
    *,
    closing: threading.Event,
    failed: Callable[[str], None],
    retry_s: float,
) -> None:
    """Work until `closing` is set; tell `failed` why it cannot go on for now.

    A boundary: what is raised is logged, and all of it begins again after `retry_s` seconds.
    """
    while not closing.is_set():
        try:
            work()
        except ModelUnavailable as error:
            failed(error.message)
        except Exception as error:  # noqa: BLE001 a boundary: it is logged
            if closing.is_set():  # what it was working on was ended
                return
            log_failure("embedding_failed", error)
            ours = isinstance(error, MnemosynedError)
            failed(str(error) if ours else "it failed; the log says how")
        closing.wait(retry_s)


NEAREST = 200
"""Before the question's filters, which may leave few of them."""
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
    """Add similarities to candidates, and the nearest that the words did not find.

    `least` is the similarity from which a memory without a word in common is a candidate. Where
    vectors were not compared in time, the candidates stay as they are, and a note says so.
    """
    positions = [match.position for match in candidates.memories]
    try:
        cosines = search.cosines(vector, positions)
        nearest = search.nearest(vector, NEAREST, least=least)
    except ComparisonTooSlow:
        return candidates, TOO_SLOW
    unseen = [position for position in nearest if position not in cosines]
    more = _filter_nearest(store, query, unseen)
    cosines |= {match.position: nearest[match.position] for match in more}
    nearness = Nearness(cosines, vector_only_min=least)
    memories = [*candidates.memories, *more]
    return replace(candidates, memories=memories, nearness=nearness), ""


def _filter_nearest(
    store: VectorStore, query: Query, nearest: Sequence[int]
) -> list[Match]:
    """The nearest, in their order, as far as the question's filters let them through."""
    if not nearest:
        return []
    order = {position: rank for rank, position in enumerate(nearest)}
    within = store.candidates(query, nearest)
    return sorted(within, key=lambda match: order[match.position])[:NEAREST_SHOWN]
