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
from mnemosyned.domain.ports.surroundings.agents import AgentSession
from mnemosyned.domain.sleep.cycles import LogEntry

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
KIND_NAMES: Mapping[type[Record], str] = {
    ExportedEpisode: "episode",
    ExportedMemory: "memory",
    ExportedSupersession: "supersession",
    Learning: "learning",
    LogEntry: "log",
    ExportedCompaction: "compaction",
    AgentSession: "agent_session",
    ForgottenCapture: "forgotten",
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

    def restore(self, records: Sequence[Record]) -> Restored:
        """Store those records that are not here yet, in one transaction.

        An episode is stored with originals of this call, or not at all: then they go to working
        memory. A roll-up is stored if all that it was made of is here.
        """
        ...
