"""Learnings as rows: inserted, superseded and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mnemosyned.domain.learnings.conflicts import ActiveLearnings
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.tables.owner import take_numbers
from mnemosyned.storage.postgres.tables.rows import utc

COMPARED_MAX = 300
"""A new learning is held against this many of its source, the newest."""

FIELDS = "id, kind, text, session_id, source, memory_id, created_at, superseded_by"


class Keeper:
    """Inserts the learnings of one transaction, reading those in force once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._holding: dict[str | None, ActiveLearnings] = {}
        self._kept: set[str] = set()

    @property
    def learned(self) -> int:
        """How many of the learnings that it inserted are in force."""
        return len(self._kept)

    def keep(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Insert a learning and mark those it supersedes; returns their ids.

        A statement repeated by an agent in the same words is the existing learning. A learning that
        comes in late, as from an import, may itself be superseded by a newer one.
        """
        holding = self._holding_of(learning.source)
        stated = _stated_before(learning, holding)
        if stated is not None:
            return stated, []
        older: list[Learning] = []
        newer: list[Learning] = []
        for other in holding.find_conflicts(learning):
            (newer if other.created_at > learning.created_at else older).append(other)
        if newer:
            newest = max(newer, key=lambda other: other.created_at)
            learning = replace(learning, superseded_by=newest.id)
        else:
            learning = replace(learning, superseded_by=None)
        superseded = [other.id for other in older]
        insert_learning(self._session, learning, gone=superseded)
        for other in older:
            holding.remove(other)
            self._kept.discard(other.id)
        if not newer:
            holding.add(learning)
            self._kept.add(learning.id)
        return learning, superseded

    def _holding_of(self, source: str | None) -> ActiveLearnings:
        if source not in self._holding:
            rows = self._session.execute(
                f"SELECT {FIELDS} FROM learning WHERE owner = %(owner)s "
                "AND source IS NOT DISTINCT FROM %(source)s::text AND superseded_by IS NULL "
                "ORDER BY created_at DESC, seq DESC LIMIT %(most)s",
                source=source,
                most=COMPARED_MAX,
            ).fetchall()
            newest = map(learning_from, reversed(rows))
            self._holding[source] = ActiveLearnings(newest, limit=COMPARED_MAX)
        return self._holding[source]


def _stated_before(learning: Learning, holding: ActiveLearnings) -> Learning | None:
    """Return the learning that an agent already stated in the same words, if any."""
    if learning.memory is not None:
        return None
    for other in holding.same_wording(learning):
        if other.memory is None and other.kind is learning.kind:
            return other
    return None


def insert_learning(
    session: Session, learning: Learning, *, gone: Sequence[str] = ()
) -> None:
    """Insert a learning, and mark others as superseded by it."""
    (seq,) = take_numbers(session, "record", 1)
    session.execute(
        f"INSERT INTO learning (owner, seq, {FIELDS}) VALUES (%(owner)s, %(seq)s, %(id)s, "
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


def learning_from(row: Row) -> Learning:
    """Return a learning from FIELDS."""
    id, kind, text, session, source, memory, created_at, superseded_by = row
    return Learning(
        id=id,
        kind=LearningKind(kind),
        text=text,
        session=session,
        source=source,
        memory=memory,
        created_at=created_at,
        superseded_by=superseded_by,
    )
