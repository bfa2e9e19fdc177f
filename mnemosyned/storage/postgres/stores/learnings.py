"""Learnings: added, found, edited and removed."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.ports.learnings import LearningStore
from mnemosyned.domain.storing.rows import LEARNING_COLUMNS, learning_from
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.search.filters import Condition, joined, of_sources
from mnemosyned.storage.postgres.tables.forgetting.purge import request_purge
from mnemosyned.storage.postgres.tables.learnings import Keeper, remove_known


class PostgresLearnings(Transactional, LearningStore):
    """A `LearningStore` of one owner in PostgreSQL."""

    @writes
    def add(self, session: Session, learning: Learning) -> tuple[Learning, list[str]]:
        return Keeper(session).keep(learning)

    @reads
    def find(
        self,
        session: Session,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        conditions = of_sources(sources, table="learning")
        if kind is not None:
            conditions.append(Condition("kind = %(kind)s", {"kind": str(kind)}))
        if not superseded:
            conditions.append(Condition("superseded_by IS NULL", {}))
        narrow = joined(conditions)
        rows = session.execute(
            f"SELECT {LEARNING_COLUMNS} FROM learning WHERE owner = %(owner)s{narrow.where} "
            "ORDER BY created_at DESC, seq DESC LIMIT %(limit)s",
            **narrow.values,
            limit=limit,
        )
        return list(map(learning_from, rows))

    @writes
    def edit(self, session: Session, id: str, text: str) -> None:
        changed = session.execute(
            "UPDATE learning SET text = %(text)s WHERE owner = %(owner)s AND id = %(id)s",
            text=text,
            id=id,
        )
        _found(changed.rowcount, id)
        request_purge(session)

    @writes
    def remove(self, session: Session, id: str) -> None:
        _found(remove_known(session, [id]), id)
        request_purge(session)


def _found(count: int, id: str) -> None:
    if not count:
        raise NotFound(f"no learning has the id {id!r}; `learnings` shows them")
