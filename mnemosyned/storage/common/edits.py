"""Edits of memories with their learnings, details and stale summaries; tags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

import msgspec

from mnemosyned.errors import BatchChanged
from mnemosyned.memory.edit import EditOutcome, MemoryEdit
from mnemosyned.memory.exchange import ForgottenCopy
from mnemosyned.memory.values import EDITED_FIELDS, Action, Revision, Tier, column_list
from mnemosyned.storage.common import endings, injections, state, undo
from mnemosyned.storage.common.learnings import LearningRows, remove_learnings
from mnemosyned.storage.common.rows import DERIVED, record_fields, stored_values
from mnemosyned.storage.common.session import CommonSession, StorePart, reads, writes

_edited_values = attrgetter(*(field.name for field in EDITED_FIELDS))
_SET_COLUMNS = column_list(
    tuple(field for field in EDITED_FIELDS if field.name != "content")
)


class EditTransaction:
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

    def edit(self, edits: Iterable[MemoryEdit], action: Action | None) -> EditOutcome:
        """Apply the edits of an action, record the action, and return what changed. Unknown ids are skipped.

        Empties the summaries that become stale, and requests a purge if the transaction drops earlier texts.
        Raises `BatchChanged` if a memory is no longer as it was read before the edit.
        """
        # The edits and row numbers of the memories in each episode, and in working memory (None).
        groups: dict[int | None, dict[int, MemoryEdit]] = defaultdict(dict)
        edits = list(edits)
        ids = [edit.before.id for edit in edits]
        positions = self._session.positions_of(ids)
        memories = self._session.memories(ids)
        for edit in edits:
            id = edit.before.id
            if id in memories:  # else it was forgotten
                if _edited_values(memories[id]) != _edited_values(edit.before):
                    raise BatchChanged("the memory was changed concurrently; retry")
                seq, episode = positions[id]
                groups[episode][seq] = edit
        for episode, targets in groups.items():
            if episode is None:
                for seq, edit in targets.items():
                    self._write_edit(seq, None, edit)
            else:
                self._edit_originals(episode, targets)
        state.invalidate(self._session, self._stale)
        if self._drop_history and self._changed:
            changed = self._changed
            self._session.delete("undo_step", "AND tag != ''", memory_seq=changed)
            state.request_purge(self._session)
        undo.record_action(self._session, action, [(seq, "") for seq in self._changed])
        working, _ = self._session.totals()[Tier.WORKING]
        return EditOutcome(
            positions=tuple(self._positions),
            changed=len(self._changed),
            restored=tuple(self._restored),
            kept=tuple(self._kept),
            working=working,
        )

    def _edit_originals(self, episode: int, targets: Mapping[int, MemoryEdit]) -> None:
        """Edit originals of an episode; rename the episode if all its originals are renamed alike.

        This means that all get the same session and source, and that no time changes.
        """
        edits = list(targets.values())
        renamed = (
            len({(edit.after.session, edit.after.source) for edit in edits}) == 1
            and all(edit.before.created_at == edit.after.created_at for edit in edits)
            and any(edit.changes_origin for edit in edits)
            and len(edits)
            == self._session.select_value("placed", "count(*)", episode_seq=episode)
        )
        changed = len(self._changed)
        for seq, edit in targets.items():
            self._edit_original(seq, episode, edit, renamed=renamed)
        if not renamed or len(self._changed) == changed:
            return
        session, after = self._session, edits[0].after
        names = {"session_id": after.session, "source": after.source}
        row = session.update("episode", names, "RETURNING id, parent_id", seq=episode)
        id, parent = row.fetchone() or (None, None)
        session.update("consolidation_log", names, episode_id=id)
        above = state.chain_above(session, parent)
        # Emptied ones are marked again, so that a rewrite in progress is refused.
        for seq in session.select_column(
            "emptied_episode", "episode_seq", episode_seq=[episode, *above.values()]
        ):
            state.mark_emptied(session, seq)
        for upper in above:
            state.name_rollup(session, upper)

    def _edit_original(
        self, seq: int, episode: int, edit: MemoryEdit, *, renamed: bool
    ) -> None:
        """Edit an original; move it to working memory if the episode no longer fits its origin or time.

        `renamed` means that the whole episode is renamed. Nothing is edited if the summary would become
        stale but cannot be rewritten, as other originals were pruned.
        """
        # A renamed original leaves its episode, and a moved one that the episode does not cover.
        leaves = not renamed and (
            edit.changes_origin
            or (edit.is_moved and not self._covers(episode, edit.after.created_at))
        )
        is_stale = edit.is_reworded or (edit.is_moved and not renamed)
        if is_stale and self._session.has_pruned(episode):
            self._kept.append(edit.before.id)
            return
        if is_stale:
            self._stale.add(episode)
        self._write_edit(seq, episode, edit)
        if leaves:
            self._session.share_secret_marks(seq, episode)
            self._session.return_to_working("seq", seq)
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

    def _write_edit(self, seq: int, episode: int | None, edit: MemoryEdit) -> None:
        """Save the former state as a revision; update memory, learnings, endings and index entries."""
        session, id = self._session, edit.after.id
        self._changed.append(seq)
        derived, former = ForgottenCopy(), None
        if edit.is_reworded:
            self._positions.append(seq)
            self._learnings.save(self._learnings.find_dropped(edit), {id: derived})
            derived.edits = [each for each in derived.edits if each.id != id]
            if edit.undoes:
                undone = {"memory_seq": seq, "changed_at": edit.undoes}
                fields = session.select_value("revision", "fields", **undone) or "{}"
                former = msgspec.json.decode(fields).get(DERIVED)
        copy = None if self._drop_history else derived
        state.add_revision(session, seq, edit, self._now, copy)
        fields = stored_values(_SET_COLUMNS, edit.after)
        session.update(session.memory_table(episode), fields, seq=seq)
        if "tags" in edit.changed_fields:
            session.delete("tag", memory_seq=seq)
            state.add_tags(session, seq, edit.after.tags)
        if edit.is_reworded:
            session.write_edited_text(
                seq, episode, before=edit.before, after=edit.after
            )
            remove_learnings(session, id=[each.id for each in derived.learnings])
            injections.erase_injected_texts(session, [id])
            self._stale |= endings.episodes_of_older(session, [id])
            endings.forget_endings(session, [id], keeps_undone=True)
            if former:
                copy = msgspec.convert(former, ForgottenCopy)
                self._learnings.put_back(id, copy, [seq])
            else:
                session.insert(
                    "edited_memory", mark=session.new_number(), memory_seq=seq
                )
            for learning in () if former else edit.learnings:
                self._learnings.keep(learning)
        if edit.is_moved or former:
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
            # The time of a working memory stands in a table of its own on a server.
            session.update("fresh", {"created_at": edit.after.created_at}, seq=seq)
            session.update("working_state", {"future_since": None}, memory_seq=seq)
        if episode is not None and edit.is_reworded:
            session.refresh_details(seq, episode, edit.after)


class ChangeStore(StorePart):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

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

        An original with a new session or source, or a time outside of its episode, returns to working memory,
        unless all originals of the episode are renamed alike. With `drop_history` no earlier text or tag is
        kept. Raises `BatchChanged` if a memory is no longer as it was read.
        """
        transaction = EditTransaction(session, now=now, drop_history=drop_history)
        return transaction.edit(edits, action)

    @reads
    def groups(
        self, session: CommonSession, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        """Return the known ids in groups of up to `size`, or more to keep originals of an episode together."""
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
        return [Revision(**record_fields(Revision, columns, row)) for row in rows]

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
        """Add tags to memories, or remove them from memories; return how many memories changed.

        Raises `InvalidRequest` if a memory would have too many tags.
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
        undo.record_action(session, action, changed)
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
        """Pin or unpin working memories by id; return how many exist. A cycle may take them once unpinned."""
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
        undo.record_action(session, action, [(seq, "") for (seq,) in others.fetchall()])
        if not pinned:
            session.update("working_state", {"held_until": None}, memory_seq=seqs)
        return session.update(table, {"pinned": pinned}, seq=seqs).rowcount
