"""Edits of memories, and what a memory was before one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.memory import MemoryRecord, Revision
from mnemosyned.domain.secrets.masking import mask_metadata, mask_secrets

REVISIONS_MAX = 100
"""Earlier states kept of one memory, the latest."""
EDITABLE = ("session", "source", "role", "created_at", "importance", "tags")
"""Fields that an edit may change, besides the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """A memory as it was read, as it shall be, and what was learned of the change."""

    before: MemoryRecord
    after: MemoryRecord
    learnings: tuple[Learning, ...] = ()
    """Learnings that only the new words state."""
    restated: frozenset[str] | None = None
    """Texts of the learnings that the new words state; None where none is lost."""

    @property
    def is_reworded(self) -> bool:
        """Whether what it says, or who says it, changes: then what was made of it is stale."""
        return (self.before.content, self.before.role) != (
            self.after.content,
            self.after.role,
        )

    @property
    def is_moved(self) -> bool:
        """Whether it belongs elsewhere: to another session, source or time."""
        return self.before.created_at != self.after.created_at or self.is_renamed

    @property
    def is_renamed(self) -> bool:
        """Whether it belongs to another session or source."""
        return (self.before.session, self.before.source) != (
            self.after.session,
            self.after.source,
        )

    @property
    def changed_fields(self) -> tuple[str, ...]:
        """The fields that change, without the text."""
        return tuple(
            name
            for name in EDITABLE
            if getattr(self.before, name) != getattr(self.after, name)
        )

    def earlier_state(self, *, drop: bool) -> tuple[str | None, dict[str, Any]]:
        """Return what is kept of how it was: words that change, and fields; with `drop` neither."""
        if drop:
            return None, {}
        text = self.before.content
        return (
            text if text != self.after.content else None,
            {name: getattr(self.before, name) for name in self.changed_fields},
        )

    @property
    def changes_nothing(self) -> bool:
        """Whether the memory stays as it is."""
        return not self.changed_fields and self.before.content == self.after.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
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
    """Return the revision with the secrets in its words and fields masked."""
    text = None if revision.text is None else mask_secrets(revision.text)
    return Revision(
        changed_at=revision.changed_at,
        text=text,
        fields=mask_metadata(revision.fields),
    )
