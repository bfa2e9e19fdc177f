"""Edits of memories: rows, index, details, learnings and the summaries that become stale."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Detail, DetailKind, MemoryRecord
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.secrets.exact_values import mask_memories
from mnemosyned.storage.sqlite.fulltext.indexing import index_memories, unindex_memory
from mnemosyned.storage.sqlite.tables.changing.revisions import keep_revision
from mnemosyned.storage.sqlite.tables.changing.rewrites import invalidate, remark
from mnemosyned.storage.sqlite.tables.changing.state import has_pruned, leave_secrets
from mnemosyned.storage.sqlite.tables.changing.tags import replace_tags
from mnemosyned.storage.sqlite.tables.details import insert_details, sensitive_details
from mnemosyned.storage.sqlite.tables.forgetting.purge import request_purge
from mnemosyned.storage.sqlite.tables.hierarchy import ABOVE, name_rollup
from mnemosyned.storage.sqlite.tables.learnings import Keeper
from mnemosyned.storage.sqlite.tables.memories import working_count
from mnemosyned.storage.sqlite.tables.rows import MEMORY_COLUMNS, instant_text

_EDITED = "content, session_id, source, role, importance, created_at"


@dataclass(frozen=True, slots=True)
class _Target:
    """A memory to be edited, where it is now."""

    edit: MemoryEdit
    seq: int
    episode: int | None


@dataclass(slots=True)
class _Work:
    """The effects of the edits of one transaction so far."""

    stale: set[int] = field(default_factory=set)
    positions: list[int] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    changed: int = 0


def edit_memories(
    connection: sqlite3.Connection,
    edits: Sequence[MemoryEdit],
    *,
    moment: str,
    drop_history: bool,
) -> Edition:
    """Edit memories; see `ChangeStore.edit`."""
    work = _Work()
    groups: dict[int | None, list[_Target]] = defaultdict(list)
    for edit in edits:
        target = _target(connection, edit)
        if target:
            groups[target.episode].append(target)
    editing = _Editing(connection, work, moment=moment, drop_history=drop_history)
    for episode, targets in groups.items():
        if episode is None:
            editing.edit_each(targets)
        else:
            editing.edit_originals(episode, targets)
    invalidate(connection, work.stale)
    if drop_history and work.changed:
        request_purge(connection)
    return Edition(
        positions=tuple(work.positions),
        changed=work.changed,
        restored=tuple(work.restored),
        kept=tuple(work.kept),
        working=working_count(connection),
    )


class _Editing:
    """The edits of one transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        work: _Work,
        *,
        moment: str,
        drop_history: bool,
    ) -> None:
        self._connection = connection
        self._keeper = Keeper(connection)
        self._work = work
        self._moment = moment
        self._drop_history = drop_history

    def edit_each(self, targets: Sequence[_Target]) -> None:
        """Edit memories that no summary is made of."""
        for target in targets:
            self._edit(target)

    def edit_originals(self, episode: int, targets: Sequence[_Target]) -> None:
        """Edit originals of one episode, which is renamed with them if all move together."""
        renamed = _all_renamed(self._connection, episode, targets)
        changed = self._work.changed
        for target in targets:
            self._edit_original(episode, target, renamed=renamed)
        if renamed and self._work.changed > changed:
            _rename_episode(self._connection, episode, targets[0].edit)

    def _edit_original(self, episode: int, target: _Target, *, renamed: bool) -> None:
        """Edit one original, unless its summary would lose pruned words."""
        leaves = not renamed and _leaves(self._connection, target)
        is_stale = target.edit.is_reworded or (target.edit.is_moved and not renamed)
        if is_stale and has_pruned(self._connection, episode):
            self._work.kept.append(target.edit.before.id)
            return
        if is_stale:
            self._work.stale.add(episode)
        self._edit(target)
        if leaves:
            _return(self._connection, target.seq, episode)
            self._work.restored.append(target.edit.before.id)

    def _edit(self, target: _Target) -> None:
        keep_revision(
            self._connection,
            target.seq,
            target.edit,
            moment=self._moment,
            drop=self._drop_history,
        )
        _write(self._connection, target, self._keeper, self._work)
        self._work.changed += 1


def _target(connection: sqlite3.Connection, edit: MemoryEdit) -> _Target | None:
    """The place of a memory; None if it was forgotten. Raises `BatchChanged`."""
    before = edit.before
    row = connection.execute(
        f"SELECT seq, NULL, {_EDITED} FROM working_memory WHERE id = ?1 UNION ALL "
        f"SELECT seq, episode_seq, {_EDITED} FROM archive WHERE id = ?1",
        (before.id,),
    ).fetchone()
    if row is None:
        return None
    seq, episode, *values = row
    if values != [before.content, *_edited_values(before)]:
        raise BatchChanged("the memory was changed concurrently; retry")
    return _Target(edit, seq, episode)


def _edited_values(memory: MemoryRecord) -> list[str | float | None]:
    """The values of an edited row, without its words."""
    return [
        memory.session,
        memory.source,
        memory.role,
        memory.importance,
        instant_text(memory.created_at),
    ]


# --------------------------------------------------------------- where it belongs


def _all_renamed(
    connection: sqlite3.Connection, episode: int, targets: Sequence[_Target]
) -> bool:
    """Whether all originals of an episode move to one session and source, and none in time."""
    places = {
        (target.edit.after.session, target.edit.after.source) for target in targets
    }
    stays_in_time = all(
        target.edit.before.created_at == target.edit.after.created_at
        for target in targets
    )
    if len(places) > 1 or not stays_in_time:
        return False
    if not any(target.edit.is_renamed for target in targets):
        return False
    (count,) = connection.execute(
        "SELECT count(*) FROM archive WHERE episode_seq = ?", (episode,)
    ).fetchone()
    return bool(count == len(targets))


def _leaves(connection: sqlite3.Connection, target: _Target) -> bool:
    """Whether an original no longer belongs to its episode."""
    edit = target.edit
    if edit.is_renamed:
        return True
    if not edit.is_moved:
        return False
    moment = instant_text(edit.after.created_at)
    row = connection.execute(
        "SELECT 1 FROM episodic_memory WHERE seq = ? AND ? BETWEEN covers_from AND covers_until",
        (target.episode, moment),
    ).fetchone()
    return row is None


def _return(connection: sqlite3.Connection, seq: int, episode: int) -> None:
    """Move an original back to working memory, from where sleep finds its episode."""
    connection.execute(
        f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
        f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
        (seq,),
    )
    leave_secrets(connection, seq, episode)
    connection.execute("DELETE FROM archive WHERE seq = ?", (seq,))


def _rename_episode(
    connection: sqlite3.Connection, episode: int, edit: MemoryEdit
) -> None:
    """Give an episode the session and source of its originals, and those above it what all have."""
    names = (edit.after.session, edit.after.source)
    id, parent = connection.execute(
        "UPDATE episodic_memory SET session_id = ?, source = ? WHERE seq = ? "
        "RETURNING id, parent_id",
        (*names, episode),
    ).fetchone()
    connection.execute(
        "UPDATE consolidation_log SET session_id = ?, source = ? WHERE episode_id = ?",
        (*names, id),
    )
    above = connection.execute(
        f"{ABOVE} SELECT id, seq FROM above", (parent,)
    ).fetchall()
    remark(connection, [episode, *(seq for _, seq in above)])
    for upper, _ in above:
        name_rollup(connection, upper)


# ------------------------------------------------------------------ what it says


def _write(
    connection: sqlite3.Connection, target: _Target, keeper: Keeper, work: _Work
) -> None:
    """Write the row and everything that is kept beside it."""
    edit, seq = target.edit, target.seq
    home = "working_memory" if target.episode is None else "archive"
    after = edit.after
    connection.execute(
        f"UPDATE {home} SET session_id = ?, source = ?, role = ?, importance = ?, created_at = ? "
        "WHERE seq = ?",
        (*_edited_values(after), seq),
    )
    if "tags" in edit.changed_fields:
        replace_tags(connection, seq, after.tags)
    if edit.before.content != after.content:
        connection.execute(
            f"UPDATE {home} SET content = ?, content_hash = ? WHERE seq = ?",
            (after.content, content_hash(after.content), seq),
        )
    if edit.is_reworded:
        unindex_memory(connection, seq, edit.before.content, edit.before.role)
        index_memories(connection, [(seq, after.content, after.role)])
        connection.execute("DELETE FROM embedding WHERE memory_seq = ?", (seq,))
        work.positions.append(seq)
        _relearn(connection, edit, keeper)
    if edit.is_moved:
        _move_learnings(connection, edit)
    if edit.before.created_at != after.created_at:
        connection.execute(
            "UPDATE working_state SET future_since = NULL WHERE memory_seq = ?", (seq,)
        )
    if target.episode is not None and edit.is_reworded:
        _restate_details(connection, target, target.episode)


def _relearn(connection: sqlite3.Connection, edit: MemoryEdit, keeper: Keeper) -> None:
    """Delete the learnings that the new words no longer state, and keep those they add."""
    rows = connection.execute(
        "SELECT id, text FROM learning WHERE memory_id = ?", (edit.before.id,)
    ).fetchall()
    for id, text in rows:
        if edit.restated is not None and text not in edit.restated:
            connection.execute("DELETE FROM learning WHERE id = ?", (id,))
    for learning in edit.learnings:
        keeper.keep(learning)


def _move_learnings(connection: sqlite3.Connection, edit: MemoryEdit) -> None:
    after = edit.after
    connection.execute(
        "UPDATE learning SET session_id = ?, source = ?, created_at = ? WHERE memory_id = ?",
        (after.session, after.source, instant_text(after.created_at), after.id),
    )


def _restate_details(
    connection: sqlite3.Connection, target: _Target, episode: int
) -> None:
    """Replace the exact values of an original; secrets stay so where others hold them too."""
    leave_secrets(connection, target.seq, episode)
    connection.execute("DELETE FROM detail WHERE memory_seq = ?", (target.seq,))
    known = [
        Detail(DetailKind(kind), value, sensitive=True)
        for kind, value in sensitive_details(connection, episode)
    ]
    _, details = mask_memories([target.edit.after], known=known)
    insert_details(connection, details, episode)
    leave_secrets(connection, target.seq, episode)
