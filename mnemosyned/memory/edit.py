"""Edits of memories: revisions, stale summaries, originals that leave their episode, supersession."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from mnemosyned.errors import BatchChanged, InvalidRequest, NotFound
from mnemosyned.memory.fields import EDITABLE
from mnemosyned.memory.masking import mask_memories
from mnemosyned.memory.values import Learning, MemoryRecord, Revision
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.secrets.masking import mask_metadata, mask_secrets

REVISIONS_MAX = 100
"""Earlier states kept of one memory, the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """Change of a memory: its state before and after, and the learnings of the new words."""

    before: MemoryRecord
    after: MemoryRecord
    learnings: tuple[Learning, ...] = ()
    """Learnings that only the new words state."""
    restated: frozenset[str] | None = None
    """Texts of the learnings that the new words state; None where none is lost."""

    @property
    def is_reworded(self) -> bool:
        """Whether the edit changes the text or role of the memory, and so makes summaries stale."""
        return (self.before.content, self.before.role) != (
            self.after.content,
            self.after.role,
        )

    @property
    def is_moved(self) -> bool:
        """Whether the edit changes the session, the source or the time of the memory."""
        return self.before.created_at != self.after.created_at or self.is_renamed

    @property
    def is_renamed(self) -> bool:
        """Whether the edit changes the session or the source of the memory."""
        return (self.before.session, self.before.source) != (
            self.after.session,
            self.after.source,
        )

    @property
    def changed_fields(self) -> tuple[str, ...]:
        """The names of the fields that the edit changes, without the text."""
        return tuple(
            name
            for name in EDITABLE
            if getattr(self.before, name) != getattr(self.after, name)
        )

    def earlier_state(self, *, drop_history: bool) -> tuple[str | None, dict[str, Any]]:
        """Return the text before the edit, None if unchanged, and the old values of changed fields.

        With `drop_history` return None and no fields.
        """
        if drop_history:
            return None, {}
        text = self.before.content
        return (
            text if text != self.after.content else None,
            {name: getattr(self.before, name) for name in self.changed_fields},
        )

    @property
    def changes_nothing(self) -> bool:
        """Whether the edit leaves text and fields of the memory as they are."""
        return not self.changed_fields and self.before.content == self.after.content


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    """Result of edits."""

    positions: tuple[int, ...] = ()
    """Memories with other words, as the store knows them."""
    changed: int = 0
    restored: tuple[str, ...] = ()
    """Originals that are back in working memory, as they belong into another episode now."""
    kept: tuple[str, ...] = ()
    """Originals left as they are: with pruned ones, a summary is all that is left of the words."""
    working: int = 0
    """The size of the working tier."""


def mask_revision(revision: Revision) -> Revision:
    """Return the revision with the secrets in its text and fields masked."""
    text = None if revision.text is None else mask_secrets(revision.text)
    return Revision(
        changed_at=revision.changed_at,
        text=text,
        fields=mask_metadata(revision.fields),
    )


HISTORY_MAX = 100
"""How far a chain of memories that superseded each other is followed."""

Position = tuple[int, int | None]
"""Where a memory is kept, and where its episode is, if it has one."""


def latest_in_chain(
    old: str,
    new: str,
    *,
    position_of: Callable[[str], Position | None],
    successor_of: Callable[[int], Position | None],
) -> tuple[Position, int] | None:
    """Return the last memory in the chain of successors of `old`, and the row number of `new`.

    None if `new` is in the chain already. Raises `NotFound` for an unknown id, and `InvalidRequest`
    for a chain of over `HISTORY_MAX` memories.
    """
    position, newer = position_of(old), position_of(new)
    if position is None:
        raise NotFound(f"no memory has the id {old!r}", field="supersedes")
    if newer is None:
        raise NotFound(f"no memory has the id {new!r}", field="id")
    for _ in range(HISTORY_MAX):
        if position[0] == newer[0]:  # the same call again
            return None
        successor = successor_of(position[0])
        if successor is None:
            return position, newer[0]
        position = successor
    raise InvalidRequest(
        f"{old} was superseded over {HISTORY_MAX} times; forget it first",
        field="supersedes",
    )


def in_force_again(
    successors: Mapping[int, int | None], gone: Collection[int]
) -> frozenset[int]:
    """Return the superseded memories that nothing supersedes once the `gone` memories are deleted.

    All are row numbers. `successors` maps superseded memories to their successors; it has each
    memory that is in `gone` or whose successor is. None stands for an unknown successor, which
    stays.
    """
    again = set()
    for older, successor in successors.items():
        newer = successor
        while newer is not None and newer in gone and newer in successors:
            newer = successors[newer]
        if newer in gone and older not in gone:
            again.add(older)
    return frozenset(again)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A stored memory: its place, and the values that an edit may change."""

    seq: int
    episode: int | None
    """The position of its episode; None in working memory."""
    values: Mapping[str, Any]
    """By name, those of `EDITED_FIELDS`."""

    def has_fields_of(self, memory: MemoryRecord) -> bool:
        """Return whether the editable fields, except tags, equal those of `memory`."""
        return all(
            getattr(memory, name) == value for name, value in self.values.items()
        )


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A memory to be edited, where it is now."""

    edit: MemoryEdit
    seq: int
    episode: int | None


@dataclass(slots=True)
class _Effects:
    """The effects of the edits of one transaction so far."""

    stale: set[int] = field(default_factory=set)
    positions: list[int] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    changed: int = 0


class EditTransaction(ABC):
    """Transaction that edits memories."""

    def __init__(self) -> None:
        self._effects = _Effects()

    @abstractmethod
    def find(self, id: str) -> StoredMemory | None:
        """Return the stored memory with this id; None for an unknown id."""

    @abstractmethod
    def count_originals(self, episode: int) -> int:
        """Count the originals of the episode at this row number."""

    @abstractmethod
    def covers(self, episode: int, moment: datetime) -> bool:
        """Return whether a time is between the first and the last original of an episode.

        `episode` is its row number; both ends are included.
        """

    @abstractmethod
    def has_pruned(self, episode: int) -> bool:
        """Return whether the text of any original in the episode at this row number was pruned."""

    @abstractmethod
    def write(self, target: EditTarget) -> None:
        """Save the state before the edit as a revision, then write the edited memory.

        Its index entries, tags, exact values and learnings are written, too.
        """

    @abstractmethod
    def move_back(self, seq: int, episode: int) -> None:
        """Move the original at row number `seq` out of `episode` into working memory.

        The next sleep cycle puts it into another episode.
        """

    @abstractmethod
    def rename_episode(self, episode: int, edit: MemoryEdit) -> None:
        """Give an episode the session and source to which `edit` moves; update its roll-ups."""

    @abstractmethod
    def finish(self, stale: Collection[int], *, changed: int) -> int:
        """Empty stale summaries, given by row number; return the number of working memories.

        `changed` is how many memories the transaction has changed.
        """

    def edit(self, edits: Iterable[MemoryEdit]) -> EditOutcome:
        """Apply the edits, and return which memories changed; unknown ids are skipped.

        Raises `BatchChanged` if a memory is no longer as it was read before the edit.
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
        effects = self._effects
        return EditOutcome(
            positions=tuple(effects.positions),
            changed=effects.changed,
            restored=tuple(effects.restored),
            kept=tuple(effects.kept),
            working=self.finish(effects.stale, changed=effects.changed),
        )

    def _find_target(self, edit: MemoryEdit) -> EditTarget | None:
        """Find the stored memory of an edit; return None if it was forgotten.

        Raises `BatchChanged` if its values are no longer those that were read before the edit.
        """
        kept = self.find(edit.before.id)
        if kept is None:
            return None
        if not kept.has_fields_of(edit.before):
            raise BatchChanged("the memory was changed concurrently; retry")
        return EditTarget(edit, kept.seq, kept.episode)

    def _edit_originals(self, episode: int, targets: Sequence[EditTarget]) -> None:
        """Edit originals of the episode at a row number.

        Give the episode their new session and source if all of its originals move there together.
        """
        edits = [target.edit for target in targets]
        renamed = _are_renamed_alike(edits) and self.count_originals(episode) == len(
            edits
        )
        changed = self._effects.changed
        for target in targets:
            self._edit_original(episode, target, renamed=renamed)
        if renamed and self._effects.changed > changed:
            self.rename_episode(episode, edits[0])

    def _edit_original(
        self, episode: int, target: EditTarget, *, renamed: bool
    ) -> None:
        """Edit an original, and move it to working memory if the edit takes it out of its episode.

        `renamed` tells that the whole episode moves with it. Leave the original unchanged if its
        summary would become stale and could not be rewritten, as other originals were pruned.
        """
        edit = target.edit
        # A renamed original leaves its episode, and a moved one that the episode does not cover.
        leaves = not renamed and (
            edit.is_renamed
            or (edit.is_moved and not self.covers(episode, edit.after.created_at))
        )
        is_stale = edit.is_reworded or (edit.is_moved and not renamed)
        if is_stale and self.has_pruned(episode):
            self._effects.kept.append(edit.before.id)
            return
        if is_stale:
            self._effects.stale.add(episode)
        self._write_edit(target)
        if leaves:
            self.move_back(target.seq, episode)
            self._effects.restored.append(edit.before.id)

    def _write_edit(self, target: EditTarget) -> None:
        """Write an edited memory, and add it to the counts and ids that the transaction reports."""
        self.write(target)
        if target.edit.is_reworded:
            self._effects.positions.append(target.seq)
        self._effects.changed += 1


def edit_groups(
    ids: Iterable[str], positions: Mapping[str, Position], *, size: int
) -> list[list[str]]:
    """Split memory ids into groups of about `size`; originals of one episode stay together.

    `positions` has the row numbers of each memory and its episode by id; ids without one are left
    out.
    """
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


def dropped_learnings(
    edit: MemoryEdit, learnings: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the ids of learnings whose text the edited memory no longer states.

    `learnings` has the id and the text of each learning made from the memory.
    """
    if edit.restated is None:
        return []
    return [id for id, text in learnings if text not in edit.restated]


def details_with(
    memory: MemoryRecord, secrets: Iterable[tuple[str, str]]
) -> Sequence[Detail]:
    """Extract the exact values of a memory, and mark those among `secrets` as sensitive.

    `secrets` has the kind and value of each secret in the other originals of the memory's episode.
    """
    known = [Detail(DetailKind(kind), value, sensitive=True) for kind, value in secrets]
    _, details = mask_memories([memory], known=known)
    return details


def _are_renamed_alike(edits: Sequence[MemoryEdit]) -> bool:
    """Return whether all edits move to the same session and source and keep their times."""
    places = {(edit.after.session, edit.after.source) for edit in edits}
    return (
        len(places) == 1
        and all(edit.before.created_at == edit.after.created_at for edit in edits)
        and any(edit.is_renamed for edit in edits)
    )


class SummarySources(NamedTuple):
    """A summary, and how many of its sources are left."""

    id: str
    parent: int | None
    """The position of the summary above it."""
    originals: int
    has_children: bool


def invalidate_upward(
    summaries: Iterable[int],
    *,
    sources_of: Callable[[int], SummarySources | None],
    empty: Callable[[int, SummarySources], None],
    delete: Callable[[int, SummarySources], None],
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty or delete summaries, then empty the roll-ups above them, up to the month.

    `summaries` are row numbers. A summary that still has originals or children is passed to
    `empty`, any other summary to `delete`; `sources_of` returns None for an unknown summary. Return
    the row numbers of deleted and of emptied summaries.
    """
    deleted: set[int] = set()
    emptied: set[int] = set()
    waiting = set(summaries)
    while waiting:  # ends, as each step goes up a level
        seq = waiting.pop()
        sources = sources_of(seq)
        if sources is None:
            continue
        if sources.originals or sources.has_children:
            empty(seq, sources)
            emptied.add(seq)
        else:
            delete(seq, sources)
            deleted.add(seq)
            emptied.discard(seq)
        if sources.parent is not None:
            waiting.add(sources.parent)
    return frozenset(deleted), frozenset(emptied)
