"""Edits: which summaries they leave stale, and which originals leave their episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Detail, DetailKind, MemoryRecord
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.secrets.exact_values import mask_memories
from mnemosyned.domain.storing.supersession import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMemory:
    """A memory as it is kept: where, and what an edit may change."""

    seq: int
    episode: int | None
    """The position of its episode; None in working memory."""
    content: str
    session: str
    source: str | None
    role: str
    importance: float
    created_at: datetime

    def has_fields_of(self, memory: MemoryRecord) -> bool:
        """Whether it is still as it was read; tags are not compared."""
        return (
            self.content == memory.content
            and self.session == memory.session
            and self.source == memory.source
            and self.role == memory.role
            and self.importance == memory.importance
            and self.created_at == memory.created_at
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


class Editing(ABC):
    """The edits of one transaction."""

    def __init__(self) -> None:
        self._effects = _Effects()

    @abstractmethod
    def find(self, id: str) -> KeptMemory | None:
        """Return a memory as it is kept; None if it was forgotten."""

    @abstractmethod
    def count_originals(self, episode: int) -> int:
        """Count the originals of an episode."""

    @abstractmethod
    def covers(self, episode: int, moment: datetime) -> bool:
        """Whether a time lies within that of an episode."""

    @abstractmethod
    def has_pruned(self, episode: int) -> bool:
        """Whether the words of some of an episode's originals are gone."""

    @abstractmethod
    def write(self, target: EditTarget) -> None:
        """Keep what a memory was, and write what it is with everything that is kept of it."""

    @abstractmethod
    def move_back(self, seq: int, episode: int) -> None:
        """Move an original back to working memory, from where sleep finds its episode."""

    @abstractmethod
    def rename_episode(self, episode: int, edit: MemoryEdit) -> None:
        """Give an episode the session and source of its originals, and those above it what all have."""

    @abstractmethod
    def finish(self, stale: Collection[int], *, changed: int) -> int:
        """Empty stale summaries; returns the size of working memory."""

    def edit(self, edits: Iterable[MemoryEdit]) -> Edition:
        """Edit memories; see `ChangeStore.edit`."""
        groups: dict[int | None, list[EditTarget]] = defaultdict(list)
        for edit in edits:
            target = self._target(edit)
            if target:
                groups[target.episode].append(target)
        for episode, targets in groups.items():
            if episode is None:
                for target in targets:
                    self._edit(target)
            else:
                self._edit_originals(episode, targets)
        effects = self._effects
        return Edition(
            positions=tuple(effects.positions),
            changed=effects.changed,
            restored=tuple(effects.restored),
            kept=tuple(effects.kept),
            working=self.finish(effects.stale, changed=effects.changed),
        )

    def _target(self, edit: MemoryEdit) -> EditTarget | None:
        """The place of a memory; None if it was forgotten. Raises `BatchChanged`."""
        kept = self.find(edit.before.id)
        if kept is None:
            return None
        if not kept.has_fields_of(edit.before):
            raise BatchChanged("the memory was changed concurrently; retry")
        return EditTarget(edit, kept.seq, kept.episode)

    def _edit_originals(self, episode: int, targets: Sequence[EditTarget]) -> None:
        """Edit originals of one episode, which is renamed with them if all move together."""
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
        """Edit one original, unless its summary would lose pruned words."""
        edit = target.edit
        leaves = not renamed and self._leaves(episode, edit)
        is_stale = edit.is_reworded or (edit.is_moved and not renamed)
        if is_stale and self.has_pruned(episode):
            self._effects.kept.append(edit.before.id)
            return
        if is_stale:
            self._effects.stale.add(episode)
        self._edit(target)
        if leaves:
            self.move_back(target.seq, episode)
            self._effects.restored.append(edit.before.id)

    def _edit(self, target: EditTarget) -> None:
        self.write(target)
        if target.edit.is_reworded:
            self._effects.positions.append(target.seq)
        self._effects.changed += 1

    def _leaves(self, episode: int, edit: MemoryEdit) -> bool:
        """Whether an original no longer belongs to its episode."""
        if edit.is_renamed:
            return True
        return edit.is_moved and not self.covers(episode, edit.after.created_at)


def edit_groups(
    ids: Iterable[str], positions: Mapping[str, Position], *, size: int
) -> list[list[str]]:
    """Part memories into groups of about a size, with the originals of an episode together."""
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


def unstated(edit: MemoryEdit, learnings: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of those learnings, by id and text, that the new words no longer state."""
    if edit.restated is None:
        return []
    return [id for id, text in learnings if text not in edit.restated]


def details_with(
    memory: MemoryRecord, secrets: Iterable[tuple[str, str]]
) -> Sequence[Detail]:
    """Return the exact values of an original; secrets of its episode, by kind and value, stay so."""
    known = [Detail(DetailKind(kind), value, sensitive=True) for kind, value in secrets]
    _, details = mask_memories([memory], known=known)
    return details


def _are_renamed_alike(edits: Sequence[MemoryEdit]) -> bool:
    """Whether all move to one session and source, and none in time."""
    places = {(edit.after.session, edit.after.source) for edit in edits}
    return (
        len(places) == 1
        and all(edit.before.created_at == edit.after.created_at for edit in edits)
        and any(edit.is_renamed for edit in edits)
    )
