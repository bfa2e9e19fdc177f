"""Learnings: added, found, edited and removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mnemosyned.conversation.learnings.conflicts import LearningKeeper
from mnemosyned.errors import NotFound
from mnemosyned.memory.learning import Learning, LearningKind
from mnemosyned.memory.ports import LearningStore
from mnemosyned.memory.rows import LEARNING_COLUMNS, learning_from
from mnemosyned.storage.postgres.filters import Condition, joined, of_sources
from mnemosyned.storage.postgres.pool import Transactional, reads, writes
from mnemosyned.storage.postgres.purge import request_purge
from mnemosyned.storage.postgres.rows import take_numbers, utc
from mnemosyned.storage.postgres.session import Session


class Keeper(LearningKeeper):
    """Keeps learnings in the rows of one transaction."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def read(self, source: str | None, *, limit: int) -> Sequence[Learning]:
        rows = self._session.execute(
            f"SELECT {LEARNING_COLUMNS} FROM learning WHERE owner = %(owner)s "
            "AND source IS NOT DISTINCT FROM %(source)s::text AND superseded_by IS NULL "
            "ORDER BY created_at DESC, seq DESC LIMIT %(most)s",
            source=source,
            most=limit,
        )
        return list(map(learning_from, rows))

    def insert(self, learning: Learning, *, gone: Sequence[str]) -> None:
        insert_learning(self._session, learning, gone=gone)


def insert_learning(
    session: Session, learning: Learning, *, gone: Sequence[str] = ()
) -> None:
    """Insert a learning, and mark others as superseded by it."""
    (seq,) = take_numbers(session, "record", 1)
    session.execute(
        f"INSERT INTO learning (owner, seq, {LEARNING_COLUMNS}) VALUES (%(owner)s, %(seq)s, %(id)s, "
        "%(kind)s, %(text)s, %(session)s, %(source)s, %(memory)s, %(created_at)s, "
        "%(superseded_by)s)",
        seq=seq,
        id=learning.id,
        kind=str(learning.kind),
        text=learning.text,
        session=learning.session,
        source=learning.source,
        memory=learning.memory,
        created_at=utc(learning.created_at),
        superseded_by=learning.superseded_by,
    )
    if gone:
        session.execute(
            "UPDATE learning SET superseded_by = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(gone)s)",
            id=learning.id,
            gone=list(gone),
        )


def remove_known(session: Session, ids: Iterable[str]) -> int:
    """Delete those of these that are there; answers with how many."""
    return _remove(session, "id = ANY(%(given)s)", list(ids))


def remove_of_memories(session: Session, memories: Iterable[str]) -> int:
    """Delete what was learned from the words of memories; answers with how many."""
    return _remove(session, "memory_id = ANY(%(given)s)", list(memories))


def _remove(session: Session, where: str, given: list[str]) -> int:
    """Delete learnings; once a newer one is gone, the older one holds again."""
    removed = session.execute(
        f"DELETE FROM learning WHERE owner = %(owner)s AND {where} RETURNING id",
        given=given,
    ).fetchall()
    if removed:
        session.execute(
            "UPDATE learning SET superseded_by = NULL "
            "WHERE owner = %(owner)s AND superseded_by = ANY(%(gone)s)",
            gone=[id for (id,) in removed],
        )
    return len(removed)


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
