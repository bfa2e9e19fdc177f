"""Records of actions that `undo` can take back, alike in both engines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.actions import (
    ACTIONS_MAX,
    Action,
    ActionKind,
    ActionStep,
    UndoableAction,
)
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonPart,
    CommonSession,
    reads,
    writes,
)

_EXPIRED = (
    "(created_at <= %(before)s::timestamptz OR seq <= (SELECT newer.seq FROM undo_action AS newer "
    "WHERE newer.owner = %(owner)s ORDER BY newer.seq DESC LIMIT 1 OFFSET %(most)s))"
)
"""Condition for actions that can no longer be undone."""
STEPS_READ = 500
"""Memories that are read at once."""
STEPS_MAX = 1 << 31
"""More than an action has."""


def record_action(
    session: CommonSession, action: Action | None, changed: Iterable[tuple[int, str]]
) -> None:
    """Record that an action changed memories; without an action or a change, do nothing.

    `changed` has the row number of each memory, and the tag that it was given or lost, else an
    empty text. Raises `InvalidRequest` for an import with the id of another action.
    """
    steps = list(changed)
    if action is None or not steps:
        return
    _insert_action(session, action)
    number = session.select_value(
        "undo_action", "seq", id=action.id, kind=action.kind.value
    )
    if number is None:
        raise InvalidRequest(
            f"{action.id} is the id of another action; give the import another one",
            field="import_id",
        )
    rows = [{"action": number, "memory_seq": seq, "tag": tag} for seq, tag in steps]
    session.insert_each("undo_step", rows, UNLESS_KNOWN)


def _insert_action(session: CommonSession, action: Action) -> None:
    """Insert an action unless it is recorded, as by an earlier part of an import."""
    session.insert(
        "undo_action",
        UNLESS_KNOWN,
        seq=session.new_number(),
        id=action.id,
        kind=action.kind.value,
        created_at=action.at,
    )


def _delete_actions(session: CommonSession, condition: str, **values: object) -> None:
    """Delete the actions that meet a condition in SQL with values, and the steps of the actions."""
    rows = session.execute(
        f"SELECT seq FROM undo_action WHERE owner = %(owner)s AND {condition}", **values
    )
    numbers = [number for (number,) in rows.fetchall()]
    if not numbers:
        return
    for table, column in ("undo_step", "action"), ("undo_action", "seq"):
        session.delete(table, **{column: numbers})


def delete_steps(session: CommonSession, seqs: Collection[int]) -> None:
    """Delete what is recorded of memories that are deleted for good, by row number."""
    session.delete("undo_step", memory_seq=seqs)


def delete_tags_of_steps(session: CommonSession, seqs: Collection[int]) -> None:
    """Delete which tags memories were given or lost, by row number."""
    session.delete("undo_step", "AND tag != ''", memory_seq=seqs)


def delete_restored_forgets(session: CommonSession, calls: Collection[str]) -> None:
    """Delete the actions of those forget calls whose records were all put back."""
    _delete_actions(
        session,
        "id = ANY(%(calls)s::text[]) AND NOT EXISTS (SELECT 1 FROM forgotten AS f "
        "WHERE f.owner = %(owner)s AND f.call = undo_action.id)",
        calls=list(calls),
    )


def changed_after(session: CommonSession, id: str) -> set[int]:
    """Return the row numbers of the memories of an action that later actions changed."""
    return set(
        session.column(
            "SELECT DISTINCT later.memory_seq FROM undo_action AS a "
            "JOIN undo_step AS s ON s.owner = a.owner AND s.action = a.seq "
            "JOIN undo_step AS later ON later.owner = a.owner "
            "AND later.memory_seq = s.memory_seq AND later.action > a.seq "
            "WHERE a.owner = %(owner)s AND a.id = %(id)s",
            id=id,
        )
    )


class ActionStore(CommonPart):
    """Recorded actions, and the memories that each one changed."""

    @writes
    def record(self, session: CommonSession, action: Action) -> None:
        """Record an action whose memories are found elsewhere, as those of a forget are."""
        _insert_action(session, action)

    @reads
    def actions(
        self,
        session: CommonSession,
        *,
        since: datetime,
        id: str | None = None,
        limit: int = 1,
    ) -> list[UndoableAction]:
        """Return the actions since a time, the newest first, or the one with an id."""
        rows = session.execute(
            "SELECT a.id, a.kind, a.created_at, (SELECT count(DISTINCT s.memory_seq) "
            "FROM undo_step AS s WHERE s.owner = %(owner)s AND s.action = a.seq) "
            "FROM undo_action AS a WHERE a.owner = %(owner)s "
            "AND (%(id)s::text IS NULL OR a.id = %(id)s::text) "
            "AND a.created_at > %(since)s::timestamptz ORDER BY a.seq DESC LIMIT %(limit)s",
            id=id,
            since=since,
            limit=limit,
        )
        return [
            UndoableAction(
                id=action, kind=ActionKind(kind), at=instant(moment), memories=count
            )
            for action, kind, moment, count in rows
        ]

    @reads
    def steps(
        self, session: CommonSession, id: str, *, limit: int = STEPS_MAX
    ) -> list[ActionStep]:
        """Return the memories that an action changed and that still exist; read `limit` at most."""
        steps = session.execute(
            "SELECT s.memory_seq, s.tag FROM undo_action AS a JOIN undo_step AS s "
            "ON s.owner = a.owner AND s.action = a.seq WHERE a.owner = %(owner)s "
            "AND a.id = %(id)s ORDER BY s.memory_seq LIMIT %(limit)s",
            id=id,
            limit=limit,
        ).fetchall()
        found: list[ActionStep] = []
        for start in range(0, len(steps), STEPS_READ):
            chunk = steps[start : start + STEPS_READ]
            memories = session.memories_at({seq for seq, _ in chunk})
            found += [
                ActionStep(seq, memories[seq].id, tag)
                for seq, tag in chunk
                if seq in memories
            ]
        return found

    @reads
    def changed_after(self, session: CommonSession, id: str) -> set[int]:
        """Return the row numbers of the memories of an action that later actions changed."""
        return changed_after(session, id)

    @writes
    def delete(self, session: CommonSession, id: str) -> None:
        """Delete the record of an action that was undone."""
        _delete_actions(session, "id = %(id)s", id=id)

    @reads
    def are_expired(self, session: CommonSession, before: datetime) -> bool:
        """Return whether an action is of `before` or earlier, or one of more than `ACTIONS_MAX`."""
        found = session.scalar(
            f"SELECT 1 FROM undo_action WHERE owner = %(owner)s AND {_EXPIRED} LIMIT 1",
            before=before,
            most=ACTIONS_MAX,
        )
        return found is not None

    @writes
    def expire(self, session: CommonSession, before: datetime) -> None:
        """Delete the actions of `before` or earlier, and all but the newest `ACTIONS_MAX`."""
        _delete_actions(session, _EXPIRED, before=before, most=ACTIONS_MAX)
