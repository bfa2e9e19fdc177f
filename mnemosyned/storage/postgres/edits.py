"""Edits of memories with their index entries, details, learnings and stale summaries; tags and pins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial

from mnemosyned.memory.edit import (
    Editing,
    Edition,
    EditTarget,
    KeptMemory,
    MemoryEdit,
    Position,
    details_with,
    edit_groups,
    unstated,
)
from mnemosyned.memory.ports import ChangeStore
from mnemosyned.memory.values import MemoryRecord, Revision, Tier
from mnemosyned.storage.postgres.fulltext import gram_hashes, word_hashes
from mnemosyned.storage.postgres.insert import return_one
from mnemosyned.storage.postgres.learnings import Keeper, remove_known
from mnemosyned.storage.postgres.memories import (
    ABOVE,
    leave_secrets,
    name_rollup,
    replace_details,
)
from mnemosyned.storage.postgres.pool import Transactional, reads, writes
from mnemosyned.storage.postgres.purge import request_purge
from mnemosyned.storage.postgres.rows import (
    OF_ID,
    add_to_totals,
    note_rewording,
    totals,
    utc,
)
from mnemosyned.storage.postgres.session import Session
from mnemosyned.storage.postgres.state import (
    add_tags,
    has_pruned,
    invalidate,
    keep_revision,
    position_of,
    remark,
    remove_tags,
    replace_tags,
    revisions_of,
)
from mnemosyned.storage.postgres.vectors import embed_again
from mnemosyned.text.terms import glued_words

_EDITED = "m.content, m.session_id, m.source, m.role, m.importance, m.created_at"
_WRITE = (
    "UPDATE memory SET session_id = %(session)s, source = %(source)s, role = %(role)s, "
    "importance = %(importance)s, created_at = %(created_at)s "
    "WHERE owner = %(owner)s AND seq = %(seq)s"
)
_WRITE_WORDS = (
    "UPDATE memory SET content = %(content)s, words = %(words)s, "
    "grams = %(grams)s WHERE owner = %(owner)s AND seq = %(seq)s"
)


class PostgresEditing(Editing):
    """The edits of one transaction."""

    def __init__(self, session: Session, *, now: datetime, drop_history: bool) -> None:
        super().__init__()
        self._session = session
        self._keeper = Keeper(session)
        self._now = now
        self._drop_history = drop_history

    def find(self, id: str) -> KeptMemory | None:
        row = self._session.execute(
            f"SELECT m.seq, p.episode_seq, {_EDITED} FROM memory AS m "
            "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_ID}",
            id=id,
        ).fetchone()
        if row is None:
            return None
        seq, episode, content, name, source, role, importance, created_at = row
        return KeptMemory(
            seq=seq,
            episode=episode,
            content=content,
            session=name,
            source=source,
            role=role,
            importance=importance,
            created_at=created_at,
        )

    def count_originals(self, episode: int) -> int:
        count: int = self._session.scalar(
            "SELECT count(*) FROM placed "
            "WHERE owner = %(owner)s AND episode_seq = %(episode)s",
            episode=episode,
        )
        return count

    def covers(self, episode: int, moment: datetime) -> bool:
        covered = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND seq = %(episode)s "
            "AND %(moment)s BETWEEN covers_from AND covers_until",
            episode=episode,
            moment=utc(moment),
        )
        return covered is not None

    def has_pruned(self, episode: int) -> bool:
        return has_pruned(self._session, episode)

    def write(self, target: EditTarget) -> None:
        session, edit, seq = self._session, target.edit, target.seq
        keep_revision(session, seq, edit, moment=self._now, drop=self._drop_history)
        _write_row(session, target)
        if edit.is_reworded:
            _write_words(session, target)
            _relearn(session, edit, self._keeper)
        if edit.is_moved:
            _move_learnings(session, edit.after)
        if edit.before.created_at != edit.after.created_at:
            _move_in_time(session, seq, edit.after)
        if target.episode is not None and edit.is_reworded:
            _restate_details(session, target, target.episode)

    def move_back(self, seq: int, episode: int) -> None:
        leave_secrets(self._session, seq, episode)
        return_one(self._session, seq)

    def rename_episode(self, episode: int, edit: MemoryEdit) -> None:
        session = self._session
        names = {"session": edit.after.session, "source": edit.after.source}
        row = session.execute(
            "UPDATE episode SET session_id = %(session)s, source = %(source)s "
            "WHERE owner = %(owner)s AND seq = %(episode)s RETURNING id, parent_id",
            **names,
            episode=episode,
        ).fetchone()
        id, parent = row or (None, None)
        session.execute(
            "UPDATE consolidation_log SET session_id = %(session)s, source = %(source)s "
            "WHERE owner = %(owner)s AND episode_id = %(id)s",
            **names,
            id=id,
        )
        above = session.execute(
            f"{ABOVE} SELECT id, seq FROM above", summary=parent
        ).fetchall()
        remark(session, [episode, *(seq for _, seq in above)])
        for upper, _ in above:
            name_rollup(session, upper)

    def finish(self, stale: Collection[int], *, changed: int) -> int:
        invalidate(self._session, stale)
        if self._drop_history and changed:
            request_purge(self._session)
        working, _ = totals(self._session)[Tier.WORKING]
        return working


def _write_row(session: Session, target: EditTarget) -> None:
    after = target.edit.after
    session.execute(
        _WRITE,
        seq=target.seq,
        session=after.session,
        source=after.source,
        role=after.role,
        importance=after.importance,
        created_at=utc(after.created_at),
    )
    if "tags" in target.edit.changed_fields:
        replace_tags(session, target.seq, after.tags)


def _write_words(session: Session, target: EditTarget) -> None:
    """Write what is said, with its index terms; what was made of the old words goes."""
    before, after = target.edit.before, target.edit.after
    session.execute(
        _WRITE_WORDS,
        seq=target.seq,
        content=after.content,
        words=word_hashes(
            session.owner, after.content, after.role, *glued_words(after.content)
        ),
        grams=gram_hashes(session.owner, after.content),
    )
    session.execute(
        "DELETE FROM embedding WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=target.seq,
    )
    embed_again(session, [target.seq])
    note_rewording(session)
    tier = Tier.WORKING if target.episode is None else Tier.ARCHIVE
    add_to_totals(session, tier, characters=len(after.content) - len(before.content))


def _move_in_time(session: Session, seq: int, memory: MemoryRecord) -> None:
    session.execute(
        "UPDATE fresh SET created_at = %(moment)s "
        "WHERE owner = %(owner)s AND seq = %(seq)s",
        moment=utc(memory.created_at),
        seq=seq,
    )
    session.execute(
        "UPDATE working_state SET future_since = NULL "
        "WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=seq,
    )


def _relearn(session: Session, edit: MemoryEdit, keeper: Keeper) -> None:
    """Delete the learnings that the new words no longer state, and keep those they add."""
    rows = session.execute(
        "SELECT id, text FROM learning "
        "WHERE owner = %(owner)s AND memory_id = %(id)s ORDER BY seq",
        id=edit.before.id,
    ).fetchall()
    if lost := unstated(edit, rows):
        remove_known(session, lost)
    for learning in edit.learnings:
        keeper.keep(learning)


def _move_learnings(session: Session, memory: MemoryRecord) -> None:
    session.execute(
        "UPDATE learning SET session_id = %(session)s, source = %(source)s, "
        "created_at = %(created_at)s WHERE owner = %(owner)s AND memory_id = %(id)s",
        session=memory.session,
        source=memory.source,
        created_at=utc(memory.created_at),
        id=memory.id,
    )


def _restate_details(session: Session, target: EditTarget, episode: int) -> None:
    """Replace the exact values of an original; secrets stay so where others hold them too."""
    leave_secrets(session, target.seq, episode)
    restated = partial(details_with, target.edit.after)
    replace_details(session, target.seq, episode, restated)
    leave_secrets(session, target.seq, episode)


# Rows beside those of an id are looked up by their key: `OFFSET 0` is not taken apart by a planner
# that believes an owner to be small.
_WORKING = (
    "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[]) "
    "AND EXISTS (SELECT 1 FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0)"
)
_POSITIONS = (
    "SELECT m.id, m.seq, (SELECT p.episode_seq FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.seq = m.seq) FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[])"
)


class PostgresChanges(Transactional, ChangeStore):
    """A `ChangeStore` of one owner in PostgreSQL."""

    @writes
    def edit(
        self,
        session: Session,
        edits: Sequence[MemoryEdit],
        *,
        now: datetime,
        drop_history: bool = False,
    ) -> Edition:
        editing = PostgresEditing(session, now=now, drop_history=drop_history)
        return editing.edit(edits)

    @reads
    def groups(
        self, session: Session, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        return edit_groups(ids, _positions(session, ids), size=size)

    @reads
    def revisions(self, session: Session, id: str) -> list[Revision]:
        position = position_of(session, id)
        return revisions_of(session, position[0]) if position else []

    @writes
    def tag(self, session: Session, ids: Sequence[str], tags: Sequence[str]) -> int:
        return _retag(session, ids, lambda seq: add_tags(session, seq, tags))

    @writes
    def untag(self, session: Session, ids: Sequence[str], tags: Sequence[str]) -> int:
        return _retag(session, ids, lambda seq: remove_tags(session, seq, tags))

    @writes
    def pin(self, session: Session, ids: Sequence[str], *, pinned: bool) -> int:
        seqs = [seq for (seq,) in session.execute(_WORKING, ids=list(ids))]
        if not pinned:
            session.execute(
                "UPDATE working_state SET held_until = NULL "
                "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        return session.execute(
            "UPDATE memory SET pinned = %(pinned)s "
            "WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
            seqs=seqs,
            pinned=pinned,
        ).rowcount


def _positions(session: Session, ids: Sequence[str]) -> dict[str, Position]:
    """Positions of those of these memories that exist, and of their episodes."""
    rows = session.execute(_POSITIONS, ids=list(ids))
    return {id: (seq, episode) for id, seq, episode in rows}


def _retag(session: Session, ids: Sequence[str], change: Callable[[int], int]) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = _positions(session, ids)
    return sum(change(positions[id][0]) > 0 for id in ids if id in positions)
