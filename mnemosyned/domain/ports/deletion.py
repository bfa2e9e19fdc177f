"""Port of forgetting: select memories, delete them with all traces, purge what was deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from mnemosyned.domain.keeping.retention import (
    ForgetFilter,
    Grace,
    Newest,
    Removal,
)


class DeletionStore(Protocol):
    """Deletes memories and learnings for good."""

    def select(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter, in every tier."""
        ...

    def select_learnings(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the learnings that match a filter."""
        ...

    def newest(self) -> Newest:
        """Return the last memory and the last learning that there are now."""
        ...

    def ids_under(self, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        ...

    def preview(self, ids: Sequence[str], *, learned: Sequence[str] = ()) -> Removal:
        """Return what forgetting these memories and learnings would remove."""
        ...

    def forget(self, ids: Sequence[str], *, grace: Grace | None = None) -> Removal:
        """Delete these memories from every tier and index; unknown ids are skipped.

        With `grace` they are kept where nothing reads them, and no purge is asked for yet.

        Every summary made of them loses its text, in the log too, until `RollupStore.rewrite` gives
        it a new one; a summary without remaining members is deleted.
        """
        ...

    def forget_learnings(
        self, ids: Sequence[str], *, grace: Grace | None = None
    ) -> Removal:
        """Delete these learnings; unknown ids are skipped."""
        ...

    def orphaned_log_names(self) -> tuple[list[str], list[str]]:
        """Return sessions and sources that logs and compactions name but no memory has."""
        ...

    def forget_names(self, *, sessions: Iterable[str], sources: Iterable[str]) -> None:
        """Remove those of these names that no memory has from logs and compactions."""
        ...

    def purge_due(self) -> bool:
        """Tell whether deleted text is still to be purged."""
        ...

    def purge_deleted(self) -> bool:
        """Purge text deleted before this call from everything the store writes.

        Others read and write meanwhile: a store on a server does no more than its VACUUM does.
        False if some of it remains, as another program is reading; try again later. What a server
        keeps by itself, beyond the reach of the store, `beyond_purge` names.
        """
        ...

    def beyond_purge(self) -> tuple[str, ...]:
        """Name what keeps deleted text after a purge, and until when."""
        ...
