"""Edits of memories: rows, index, details, learnings and the summaries that become stale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Detail, DetailKind, MemoryRecord, Tier
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.secrets.exact_values import mask_memories
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import gram_hashes, word_hashes
from mnemosyned.storage.postgres.tables.changing.revisions import keep_revision
from mnemosyned.storage.postgres.tables.changing.rewrites import invalidate, remark
from mnemosyned.storage.postgres.tables.changing.state import has_pruned, leave_secrets
from mnemosyned.storage.postgres.tables.changing.tags import replace_tags
from mnemosyned.storage.postgres.tables.details import insert_details, sensitive_details
from mnemosyned.storage.postgres.tables.forgetting.purge import request_purge
from mnemosyned.storage.postgres.tables.hierarchy import ABOVE, name_rollup
from mnemosyned.storage.postgres.tables.learnings import Keeper, remove_known
from mnemosyned.storage.postgres.tables.owners.owner import add_to_totals, totals
from mnemosyned.storage.postgres.tables.placement import return_one
from mnemosyned.storage.postgres.tables.rows import utc

_EDITED = "m.content, m.session_id, m.source, m.role, m.importance, m.created_at"
_WRITE = (
    "UPDATE memory SET session_id = %(session)s, source = %(source)s, role = %(role)s, "
    "importance = %(importance)s, created_at = %(created_at)s "
    "WHERE owner = %(owner)s AND seq = %(seq)s"
)
_WRITE_WORDS = (
    "UPDATE memory SET content = %(content)s, content_hash = %(hash)s, words = %(words)s, "
    "grams = %(grams)s WHERE owner = %(owner)s AND seq = %(seq)s"
)


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
    session: Session,
    edits: Sequence[MemoryEdit],
    *,
    moment: datetime,
    drop_history: bool,
) -> Edition:
    """Edit memories; see `ChangeStore.edit`."""
    work = _Work()
    groups: dict[int | None, list[_Target]] = defaultdict(list)
    for edit in edits:
        target = _target(session, edit)
        if target:
            groups[target.episode].append(target)
    editing = _Editing(session, work, moment=moment, drop_history=drop_history)
    for episode, targets in groups.items():
        if episode is None:
            editing.edit_each(targets)
        else:
            editing.edit_originals(episode, targets)
    invalidate(session, work.stale)
    if drop_history and work.changed:
        request_purge(session)
    return Edition(
        positions=tuple(work.positions),
        changed=work.changed,
        restored=tuple(work.restored),
        kept=tuple(work.kept),
        working=totals(session)[Tier.WORKING][0],
    )


class _Editing:
    """The edits of one transaction."""

    def __init__(
        self,
        session: Session,
        work: _Work,
        *,
        moment: datetime,
        drop_history: bool,
    ) -> None:
        self._session = session
        self._keeper = Keeper(session)
        self._work = work
        self._moment = moment
        self._drop_history = drop_history

    def edit_each(self, targets: Sequence[_Target]) -> None:
        """Edit memories that no summary is made of."""
        for target in targets:
            self._edit(target)

    def edit_originals(self, episode: int, targets: Sequence[_Target]) -> None:
        """Edit originals of one episode, which is renamed with them if all move together."""
        renamed = _all_renamed(self._session, episode, targets)
        changed = self._work.changed
        for target in targets:
            self._edit_original(episode, target, renamed=renamed)
        if renamed and self._work.changed > changed:
            _rename_episode(self._session, episode, targets[0].edit)

    def _edit_original(self, episode: int, target: _Target, *, renamed: bool) -> None:
        """Edit one original, unless its summary would lose pruned words."""
        leaves = not renamed and _leaves(self._session, target)
        is_stale = target.edit.is_reworded or (target.edit.is_moved and not renamed)
        if is_stale and has_pruned(self._session, episode):
            self._work.kept.append(target.edit.before.id)
            return
        if is_stale:
            self._work.stale.add(episode)
        self._edit(target)
        if leaves:
            leave_secrets(self._session, target.seq, episode)
            return_one(self._session, target.seq)
            self._work.restored.append(target.edit.before.id)

    def _edit(self, target: _Target) -> None:
        keep_revision(
            self._session,
            target.seq,
            target.edit,
            moment=self._moment,
            drop=self._drop_history,
        )
        _write(self._session, target, self._keeper, self._work)
        self._work.changed += 1


def _target(session: Session, edit: MemoryEdit) -> _Target | None:
    """The place of a memory; None if it was forgotten. Raises `BatchChanged`."""
    before = edit.before
    row = session.execute(
        f"SELECT m.seq, p.episode_seq, {_EDITED} FROM memory AS m "
        "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        "WHERE m.owner = %(owner)s AND m.id = %(id)s",
        id=before.id,
    ).fetchone()
    if row is None:
        return None
    seq, episode, *values = row
    if values != [before.content, *_edited_values(before).values()]:
        raise BatchChanged("the memory was changed concurrently; retry")
    return _Target(edit, seq, episode)


def _edited_values(memory: MemoryRecord) -> dict[str, Any]:
    """The values of an edited row, without its words, in the order of `_EDITED`."""
    return {
        "session": memory.session,
        "source": memory.source,
        "role": memory.role,
        "importance": memory.importance,
        "created_at": utc(memory.created_at),
    }


# --------------------------------------------------------------- where it belongs


def _all_renamed(session: Session, episode: int, targets: Sequence[_Target]) -> bool:
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
    count = session.scalar(
        "SELECT count(*) FROM placed "
        "WHERE owner = %(owner)s AND episode_seq = %(episode)s",
        episode=episode,
    )
    return bool(count == len(targets))


def _leaves(session: Session, target: _Target) -> bool:
    """Whether an original no longer belongs to its episode."""
    edit = target.edit
    if edit.is_renamed:
        return True
    if not edit.is_moved:
        return False
    covered = session.scalar(
        "SELECT 1 FROM episode WHERE owner = %(owner)s AND seq = %(episode)s "
        "AND %(moment)s BETWEEN covers_from AND covers_until",
        episode=target.episode,
        moment=utc(edit.after.created_at),
    )
    return covered is None


def _rename_episode(session: Session, episode: int, edit: MemoryEdit) -> None:
    """Give an episode the session and source of its originals, and those above it what all have."""
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


# ------------------------------------------------------------------ what it says


def _write(session: Session, target: _Target, keeper: Keeper, work: _Work) -> None:
    """Write the row and everything that is kept beside it."""
    edit, seq = target.edit, target.seq
    session.execute(_WRITE, seq=seq, **_edited_values(edit.after))
    if "tags" in edit.changed_fields:
        replace_tags(session, seq, edit.after.tags)
    if edit.is_reworded:
        _write_words(session, target)
        work.positions.append(seq)
        _relearn(session, edit, keeper)
    if edit.is_moved:
        _move_learnings(session, edit)
    if edit.before.created_at != edit.after.created_at:
        _move_in_time(session, seq, edit)
    if target.episode is not None and edit.is_reworded:
        _restate_details(session, target, target.episode)


def _write_words(session: Session, target: _Target) -> None:
    """Write what is said, with its index terms; what was made of the old words goes."""
    before, after = target.edit.before, target.edit.after
    session.execute(
        _WRITE_WORDS,
        seq=target.seq,
        content=after.content,
        hash=content_hash(after.content),
        words=word_hashes(session.owner, after.content, after.role),
        grams=gram_hashes(session.owner, after.content),
    )
    session.execute(
        "DELETE FROM embedding WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=target.seq,
    )
    tier = Tier.WORKING if target.episode is None else Tier.ARCHIVE
    add_to_totals(session, tier, characters=len(after.content) - len(before.content))


def _move_in_time(session: Session, seq: int, edit: MemoryEdit) -> None:
    session.execute(
        "UPDATE fresh SET created_at = %(moment)s "
        "WHERE owner = %(owner)s AND seq = %(seq)s",
        moment=utc(edit.after.created_at),
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
    if edit.restated is not None:
        lost = [id for id, text in rows if text not in edit.restated]
        remove_known(session, lost)
    for learning in edit.learnings:
        keeper.keep(learning)


def _move_learnings(session: Session, edit: MemoryEdit) -> None:
    after = edit.after
    session.execute(
        "UPDATE learning SET session_id = %(session)s, source = %(source)s, "
        "created_at = %(created_at)s WHERE owner = %(owner)s AND memory_id = %(id)s",
        session=after.session,
        source=after.source,
        created_at=utc(after.created_at),
        id=after.id,
    )


def _restate_details(session: Session, target: _Target, episode: int) -> None:
    """Replace the exact values of an original; secrets stay so where others hold them too."""
    leave_secrets(session, target.seq, episode)
    session.execute(
        "DELETE FROM detail WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=target.seq,
    )
    known = [
        Detail(DetailKind(kind), value, sensitive=True)
        for kind, value in sensitive_details(session, episode)
    ]
    _, details = mask_memories([target.edit.after], known=known)
    insert_details(session, details, episode)
    leave_secrets(session, target.seq, episode)
