"""Edits of memories, their revisions, and facts that apply again once a successor is deleted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mnemosyned.memory.masking import mask_memories
from mnemosyned.memory.values import EDITABLE, Learning, MemoryRecord, Revision
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.text.sentences import contains_statement

REVISIONS_MAX = 100
"""Number of earlier states kept for one memory, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """Change of a memory: its state before and after, and the learnings in its new text."""

    before: MemoryRecord
    after: MemoryRecord
    learnings: tuple[Learning, ...] = ()
    """Learnings that only the new words state."""
    unstated: frozenset[str] = frozenset()
    """Texts of the learnings that patterns find in the old words, and not in the new ones."""
    states_learnings: bool = True
    """Whether it is a user who says the new words."""
    undoes: datetime | None = None
    """The time of the edit that it undoes."""

    def drops_learning(self, text: str) -> bool:
        """Return True if the edit removes a learning: the memory stated its `text`, and does so no longer.

        Return False if somebody changed the text of the learning later.
        """
        if text in self.unstated:
            return True
        before, after = (
            contains_statement(mask_secrets(each.content), text)
            for each in (self.before, self.after)
        )
        return before and not (after and self.states_learnings)

    @property
    def is_reworded(self) -> bool:
        """Whether the edit changes the text or role of the memory, and so makes summaries stale."""
        before, after = self.before, self.after
        return before.content != after.content or before.role != after.role

    @property
    def is_moved(self) -> bool:
        """Whether the edit changes the session, the source or the time of the memory."""
        return self.before.created_at != self.after.created_at or self.changes_origin

    @property
    def changes_origin(self) -> bool:
        """Whether the edit changes the origin of the memory: its session or its source."""
        before, after = self.before, self.after
        return before.session != after.session or before.source != after.source

    @property
    def changed_fields(self) -> tuple[str, ...]:
        """The names of the changed fields other than the text."""
        return tuple(
            name
            for name in EDITABLE
            if getattr(self.before, name) != getattr(self.after, name)
        )


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


def values_before(
    memory: MemoryRecord, revisions: Sequence[Revision], moment: datetime
) -> dict[str, Any] | None:
    """Return {field: value} with the values that an edit of a memory replaced, to undo it.

    `revisions` has all revisions of the memory, the latest first; `moment` is the time of the edit. Return
    None if the values are not known, or if a later edit changed one of the fields again.
    """
    left: dict[str, Any] = {}
    """What the edit left in a field, where a later one replaced it."""
    for revision in revisions:
        replaced = {
            name: _READ.get(name, lambda value: value)(value)
            for name, value in revision.fields.items()
        }
        if revision.text is not None:
            replaced["content"] = revision.text
        if revision.changed_at != moment:
            left |= replaced
            continue
        again = {
            name: value
            for name, value in replaced.items()
            if value != getattr(memory, name)
        }
        is_changed = any(
            left.get(name, getattr(memory, name)) != getattr(memory, name)
            for name in again
        )
        return None if is_changed or not replaced else again
    return None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "created_at": datetime.fromisoformat,
    "tags": tuple,
}
"""Functions that read the values of a revision, which are JSON, by field."""


HISTORY_MAX = 100
"""Maximum length followed of a chain of memories, each superseded by the next."""

Position = tuple[int, int | None]
"""Row number of a memory, and of its episode if it has one."""


def in_force_again(
    successors: Mapping[int, int | None], gone: Collection[int]
) -> frozenset[int]:
    """Return the superseded memories that are in force again once the `gone` ones are deleted.

    All are row numbers. `successors` maps a superseded memory to its successor, None if unknown. It must
    contain every superseded memory that is in `gone` or whose successor is in `gone`.
    """
    again = set()
    for older, successor in successors.items():
        newer = successor
        while newer is not None and newer in gone and newer in successors:
            newer = successors[newer]
        if newer in gone and older not in gone:
            again.add(older)
    return frozenset(again)


def details_with_secrets(
    memory: MemoryRecord, secrets: Iterable[tuple[str, str]]
) -> Sequence[Detail]:
    """Return a memory's exact values; those in `secrets`, as (kind, value), are marked as sensitive."""
    known = [Detail(DetailKind(kind), value, sensitive=True) for kind, value in secrets]
    _, details = mask_memories([memory], known=known)
    return details
