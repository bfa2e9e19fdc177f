"""`OwnerVectors`: one owner's share of an embedding model that many owners have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemosyned.domain.ports.vectors import (
    MemoryVectors,
    OwnedVectorStore,
    PendingVector,
    StorageSearch,
)
from mnemosyned.domain.search.query import Query, SearchCandidates
from mnemosyned.domain.statuses import EmbedderState, EmbedderStatus
from mnemosyned.vectors.nearness import BUSY, NOT_READY, with_nearness
from mnemosyned.vectors.shared import SharedVectors
from mnemosyned.vectors.stored import READ_MAX, NewestVectors


class OwnerVectors(MemoryVectors):
    """The `MemoryVectors` of one owner; they hold no vector."""

    def __init__(
        self,
        owner: int,
        store: OwnedVectorStore,
        shared: SharedVectors,
        *,
        wait_s: float,
        similarity_min: float,
    ) -> None:
        self._owner = owner
        self._store = store
        self._shared = shared
        self._wait_s = wait_s
        self._least = similarity_min
        self._missed = 0
        self._known = ("", 0)
        """The model's identity and number, once the owner has vectors of it."""

    def status(self) -> EmbedderStatus:
        shared = self._shared
        model = self._model()
        embedded = self._store.count(model) if model else 0
        searches_all = self._search(model) is not None
        return replace(
            shared.status,
            embedded=embedded,
            searched=embedded if searches_all else min(embedded, READ_MAX),
            failed=shared.failed[self._owner],
            missed=self._missed,
        )

    def remembered(self) -> None:
        self._shared.remembered(self._owner)

    def forgot(self) -> None:
        """Do nothing: what the database has deleted no search finds."""

    def reworded(self, positions: Sequence[int]) -> None:
        self._store.drop_vectors(positions)
        self._shared.remembered(self._owner)

    def ask(self, text: str) -> PendingVector | None:
        return self._shared.ask(self._owner, text, wait_s=self._wait_s)

    def near(
        self,
        question: PendingVector | None,
        query: Query,
        candidates: SearchCandidates,
    ) -> tuple[SearchCandidates, str]:
        vector = question.vector() if question else None
        if vector is None:
            self._missed += 1
            state = self._shared.status.state
            ready = state is EmbedderState.READY
            return candidates, BUSY if ready else NOT_READY.format(state=state.value)
        store = self._store
        model = self._model()
        if not model:
            return candidates, ""
        search = self._search(model) or NewestVectors(store, model)
        found, note = with_nearness(
            query, candidates, vector, search=search, store=store, least=self._least
        )
        self._missed += bool(note)
        return found, note

    def _search(self, model: int) -> StorageSearch | None:
        return self._store.search(model, limit_s=self._wait_s)

    def _model(self) -> int:
        """The number of the model that is asked; 0 where the owner has no vector of it."""
        identity = self._shared.identity
        if identity and self._known[0] != identity:
            number = self._store.known_model(identity)
            if not number:
                return 0
            self._known = (identity, number)
        return self._known[1] if identity else 0
