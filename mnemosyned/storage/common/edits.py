"""Edits of memories with their learnings, details and stale summaries; tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.errors import BatchChanged
from mnemosyned.memory.edit import EditOutcome, MemoryEdit
from mnemosyned.memory.fields import EDITED_FIELDS
from mnemosyned.memory.values import Action, Revision, Tier
from mnemosyned.storage.common import state
from mnemosyned.storage.common.endings import forget_endings
from mnemosyned.storage.common.injections import erase_injected_texts
from mnemosyned.storage.common.learnings import LearningRows
from mnemosyned.storage.common.rows import column_values, fields_from, record_fields
from mnemosyned.storage.common.session import CommonSession, StorePart, reads, writes
from mnemosyned.storage.common.undo import record_action

_EDITED_NAMES = tuple(field.name for field in EDITED_FIELDS)
_SET_FIELDS = tuple(field for field in EDITED_FIELDS if field.name != "content")


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A memory to be edited, where it is now."""

    edit: MemoryEdit
    seq: int
    episode: int | None
    """The row number of its episode; None in working memory."""


class EditTransaction(ABC):
    """The edits of one transaction."""

    def __init__(
        self, session: CommonSession, *, now: datetime, drop_history: bool
    ) -> None:
        self._session = session
        self._learnings = LearningRows(session)
        self._now = now
        self._drop_history = drop_history
        self._stale: set[int] = set()
        self._positions: list[int] = []
        self._restored: list[str] = []
        self._kept: list[str] = []
        self._changed: list[int] = []

    _edited: str
    """Selects row number, row number of the episode, and `EDITED_FIELDS` of the memory `id`."""

    def edit(self, edits: Iterable[MemoryEdit], action: Action | None) -> EditOutcome:
        """Apply the edits of an action, and return which memories changed; unknown ids are skipped.

        Stale episodes are emptied. If earlier texts are dropped, a purge is requested. Raises
        `BatchChanged` if a memory is no longer as it was read before the edit.
        """
        groups: dict[int | None, list[EditTarget]] = defaultdict(list)
        for edit in edits:
            target = self._find_target(edit)
            if target:
                groups[target.episode].append(target)
        for episode, targets in groups.items():
            if episode is None:
                for target in targets:
                    self._write_edit(target)
            else:
                self._edit_originals(episode, targets)
        state.invalidate(self._session, self._stale)
        if self._drop_history and self._changed:
            changed = self._changed
            self._session.delete("undo_step", "AND tag != ''", memory_seq=changed)
            state.request_purge(self._session)
        record_action(self._session, action, [(seq, "") for seq in self._changed])
        working, _ = self._session.totals()[Tier.WORKING]
        return EditOutcome(
            positions=tuple(self._positions),
            changed=len(self._changed),
            restored=tuple(self._restored),
            kept=tuple(self._kept),
            working=working,
        )

    def _find_target(self, edit: MemoryEdit) -> EditTarget | None:
        """Find the memory of an edit; None if it was forgotten. Raises `BatchChanged` if it changed since."""
        row = self._session.execute(self._edited, id=edit.before.id).fetchone()
        if row is None:
            return None
        seq, episode, *values = row
        for name, value in fields_from(values, _EDITED_NAMES).items():
            if getattr(edit.before, name) != value:
                raise BatchChanged("the memory was changed concurrently; retry")
        return EditTarget(edit, seq, episode)

    def _edit_originals(self, episode: int, targets: Sequence[EditTarget]) -> None:
        """Edit originals of an episode, which gets their new names if all of its originals get them."""
        edits = [target.edit for target in targets]
        renamed = _are_renamed_alike(edits) and len(edits) == (
            self._session.select_value("placed", "count(*)", episode_seq=episode)
        )
        changed = len(self._changed)
        for target in targets:
            self._edit_original(episode, target, renamed=renamed)
        if renamed and len(self._changed) > changed:
            self._rename_episode(episode, edits[0])

    def _edit_original(
        self, episode: int, target: EditTarget, *, renamed: bool
    ) -> None:
        """Edit an original, and move it to working memory if the edit takes the original out of an episode.

        `renamed` tells that the whole episode moves with it. Leave the original unchanged if its
        summary would become stale and could not be rewritten, as other originals were pruned.
        """
        edit = target.edit
        # A renamed original leaves its episode, and a moved one that the episode does not cover.
        leaves = not renamed and (
            edit.is_renamed
            or (edit.is_moved and not self._covers(episode, edit.after.created_at))
        )
        is_stale = edit.is_reworded or (edit.is_moved and not renamed)
        if is_stale and self._session.has_pruned(episode):
            self._kept.append(edit.before.id)
            return
        if is_stale:
            self._stale.add(episode)
        self._write_edit(target)
        if leaves:
            self._move_back(target.seq, episode)
            self._restored.append(edit.before.id)

    def _covers(self, episode: int, moment: datetime) -> bool:
        """Return whether a time is between the first and last original of an episode, inclusive."""
        covered = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND seq = %(episode)s "
            "AND %(moment)s BETWEEN covers_from AND covers_until",
            episode=episode,
            moment=moment,
        )
        return covered is not None

    @abstractmethod
    def _move_back(self, seq: int, episode: int) -> None:
        """Move an original out of its episode into working memory; its secrets stay marked in the others."""

    def _write_edit(self, target: EditTarget) -> None:
        """Save the state before the edit as a revision, then write the memory and what is made of it."""
        session, edit, seq = self._session, target.edit, target.seq
        self._changed.append(seq)
        if edit.is_reworded:
            self._positions.append(seq)
        state.add_revision(
            session, seq, edit, changed_at=self._now, drop_history=self._drop_history
        )
        self._write_fields(target)
        if "tags" in edit.changed_fields:
            session.delete("tag", memory_seq=seq)
            state.add_tags(session, seq, edit.after.tags)
        if edit.is_reworded:
            self._write_words(target)
            self._learnings.apply_edit(edit)
            erase_injected_texts(session, [edit.after.id])
            forget_endings(session, [edit.after.id])
        if edit.is_moved:
            session.update(
                "learning",
                {
                    "session_id": edit.after.session,
                    "source": edit.after.source,
                    "created_at": edit.after.created_at,
                },
                memory_id=edit.after.id,
            )
        if edit.before.created_at != edit.after.created_at:
            session.update("working_state", {"future_since": None}, memory_seq=seq)
        if target.episode is not None and edit.is_reworded:
            self._restate_details(target, target.episode)

    def _write_fields(self, target: EditTarget) -> None:
        """Write the fields of an edited memory, except text and tags."""
        values = column_values(target.edit.after, _SET_FIELDS)
        self._session.update(self._memory_table(target), values, seq=target.seq)

    def _memory_table(self, target: EditTarget) -> str:
        """Return the name of the table that holds the edited memory."""
        return self._session.memory_tables[0 if target.episode is None else -1]

    @abstractmethod
    def _write_words(self, target: EditTarget) -> None:
        """Write the text and the index entries of an edited memory, and delete its vector."""

    @abstractmethod
    def _restate_details(self, target: EditTarget, episode: int) -> None:
        """Extract an edited original's exact values again; its secrets stay marked in the others."""

    def _rename_episode(self, episode: int, edit: MemoryEdit) -> None:
        """Give an episode and its log entries the names after `edit`; name the roll-ups above again."""
        session = self._session
        names = {"session_id": edit.after.session, "source": edit.after.source}
        renamed = session.update(
            "episode", names, "RETURNING id, parent_id", seq=episode
        )
        id, parent = renamed.fetchone() or (None, None)
        session.update("consolidation_log", names, episode_id=id)
        above = state.chain_above(session, parent)
        # Emptied ones are marked again, so that a rewrite in progress is refused.
        for seq in session.select_column(
            "emptied_episode", "episode_seq", episode_seq=[episode, *above.values()]
        ):
            state.mark_emptied(session, seq)
        for upper in above:
            state.name_rollup(session, upper)


def _are_renamed_alike(edits: Sequence[MemoryEdit]) -> bool:
    """Return whether all edits move to the same session and source and keep their times."""
    places = {(edit.after.session, edit.after.source) for edit in edits}
    return (
        len(places) == 1
        and all(edit.before.created_at == edit.after.created_at for edit in edits)
        and any(edit.is_renamed for edit in edits)
    )


class ChangeStore(StorePart):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

    _editing: Callable[..., EditTransaction]
    """Makes the edits of a session, `now` and `drop_history`."""

    @writes
    def edit(
        self,
        session: CommonSession,
        edits: Sequence[MemoryEdit],
        *,
        now: datetime,
        drop_history: bool = False,
        action: Action | None = None,
    ) -> EditOutcome:
        """Apply edits, save the earlier revisions, and empty the summaries that become stale.

        An original with a new session, source or time returns to working memory, unless all
        originals of its episode move alike. With `drop_history` no earlier text or tag is kept. Raises
        `BatchChanged` if a memory is no longer as it was read.
        """
        editing = self._editing(session, now=now, drop_history=drop_history)
        return editing.edit(edits, action)

    @reads
    def groups(
        self, session: CommonSession, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        """Split known ids into groups of about `size`, the originals of an episode together."""
        positions = session.positions_of(ids)
        members: dict[int, list[str]] = defaultdict(list)
        for id in ids:
            if id in positions:
                seq, episode = positions[id]
                members[episode or -seq].append(id)
        groups: list[list[str]] = []
        for together in members.values():
            if not groups or len(groups[-1]) + len(together) > size:
                groups.append([])
            groups[-1] += together
        return groups

    @reads
    def revisions(self, session: CommonSession, id: str) -> list[Revision]:
        """Return the earlier versions of a memory, the latest first; none for an unknown id."""
        position = session.position_of(id)
        if position is None:
            return []
        rows = session.select(
            "revision",
            "changed_at, content, fields",
            "ORDER BY seq DESC",
            memory_seq=position[0],
        )
        columns = "changed_at, text, fields"
        return [Revision(**record_fields(columns, row)) for row in rows]

    @writes
    def tag(
        self,
        session: CommonSession,
        ids: Sequence[str],
        tags: Sequence[str],
        *,
        remove: bool = False,
        action: Action | None = None,
    ) -> int:
        """Add tags to memories, or remove them; return how many memories changed.

        Raises `InvalidRequest` for a memory with too many.
        """
        seqs = {seq for seq, _ in session.positions_of(ids).values()}
        rows = session.select("tag", "memory_seq, name", memory_seq=seqs, name=tags)
        had = {(seq, name) for seq, name in rows}
        changed = had if remove else {(seq, tag) for seq in seqs for tag in tags} - had
        members = {seq for seq, _ in changed}
        if remove:
            session.delete("tag", memory_seq=members, name=tags)
        else:
            for seq in members:
                state.add_tags(session, seq, tags)
        record_action(session, action, changed)
        return len(members)

    @writes
    def pin(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        pinned: bool,
        action: Action | None = None,
    ) -> int:
        """Pin or unpin working memories; return how many of these ids are working memories."""
        table = session.memory_tables[0]
        # Rows beside those of an id are looked up by their key: `OFFSET 0` is not taken apart by
        # a planner that believes an owner to be small.
        seqs = session.column(
            f"SELECT m.seq FROM {table} AS m "
            "WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[]) "
            "AND EXISTS (SELECT 1 FROM fresh AS f "
            "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0)",
            ids=list(ids),
        )
        others = session.execute(
            f"SELECT seq FROM {table} WHERE owner = %(owner)s "
            "AND seq = ANY(%(seqs)s::bigint[]) AND pinned != %(pinned)s",
            seqs=seqs,
            pinned=pinned,
        )
        record_action(session, action, [(seq, "") for (seq,) in others.fetchall()])
        if not pinned:
            session.update("working_state", {"held_until": None}, memory_seq=seqs)
        return session.update(table, {"pinned": pinned}, seq=seqs).rowcount
