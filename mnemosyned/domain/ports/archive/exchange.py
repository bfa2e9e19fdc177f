"""Port of export and exact import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from mnemosyned.domain.exchange import (
    ExportedCompaction,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    ExportFilter,
    ForgottenCapture,
    Restored,
)
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.ports.archive.moving import (
    FollowedFolder,
    HookActivity,
    KeptVector,
    MovedRecord,
    RecoverableRecord,
)
from mnemosyned.domain.ports.surroundings.agents import AgentSession
from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.timekeeping import Sighting

Record = (
    ExportedEpisode
    | ExportedMemory
    | ExportedSupersession
    | Learning
    | LogEntry
    | ExportedCompaction
    | AgentSession
    | ForgottenCapture
)
"""Anything an export holds."""
AnyRecord = Record | MovedRecord
KIND_NAMES: Mapping[type[AnyRecord], str] = {
    ExportedEpisode: "episode",
    ExportedMemory: "memory",
    ExportedSupersession: "supersession",
    Learning: "learning",
    LogEntry: "log",
    ExportedCompaction: "compaction",
    AgentSession: "agent_session",
    ForgottenCapture: "forgotten",
    RecoverableRecord: "recoverable",
    FollowedFolder: "watched_folder",
    WatchedFile: "watched_file",
    HookActivity: "hook_activity",
    KeptVector: "vector",
    Sighting: "clock",
}


class ExchangeStore(Protocol):
    """Everything that is kept, out of the store and in again."""

    def export(
        self, chosen: ExportFilter
    ) -> AbstractContextManager[tuple[dict[str, int], Iterator[Record]]]:
        """Open one snapshot: how many memories and summaries it has, and all records.

        An episode is followed by its originals, a roll-up by nothing it is made of: that came
        before. The records are read as they are asked for, while the block runs.
        """
        ...

    def everything(
        self,
    ) -> AbstractContextManager[tuple[dict[str, int], Iterator[AnyRecord]]]:
        """Open one snapshot as `export` does, and after its records what that leaves out.

        The order is the same in every store: a store that holds the beginning of another one yields
        the beginning of its records.
        """
        ...

    def restore(self, records: Sequence[AnyRecord]) -> Restored:
        """Store those records that are not here yet, in one transaction.

        An episode is stored with originals of this call, or not at all: then they go to working
        memory. A roll-up is stored if all that it was made of is here.
        """
        ...
