"""Tables whose rows are records of one type each, with a column for each field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.exchange import FollowedFolder, ForgottenCapture, HookActivity
from mnemosyned.memory.injections import BriefingEdit, Injection
from mnemosyned.memory.values import Learning
from mnemosyned.storage.common.rows import (
    Row,
    column_names,
    record_fields,
    stored_values,
)
from mnemosyned.storage.common.session import CommonSession, replace_by

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RecordTable(Generic[T]):
    """A table with the records of one type."""

    name: str
    kind: type[T]
    columns: str
    order: str
    """Sorts an export of all."""

    def read(self, row: Row, **others: object) -> T:
        """Return the record in a row of the columns, with the values of `others` fields."""
        return self.kind(**record_fields(self.columns, row), **others)

    def find(self, session: CommonSession, condition: str, /, **values: Any) -> list[T]:  # noqa: ANN401 any column
        """Return the records that an SQL clause behind the owner's condition selects and orders."""
        rows = session.execute(
            f"SELECT {self.columns} FROM {self.name} WHERE owner = %(owner)s {condition}",
            **values,
        )
        return list(map(self.read, rows))

    def stream(self, session: CommonSession) -> Iterator[T]:
        """Yield all records in the order of an export, fetched in portions."""
        rows = session.stream(
            f"SELECT {self.columns} FROM {self.name} WHERE owner = %(owner)s ORDER BY {self.order}"
        )
        return map(self.read, rows)

    def add(
        self,
        session: CommonSession,
        record: T,
        /,
        conflict: str = "",
        **others: Any,  # noqa: ANN401
    ) -> bool:
        """Insert a record; return whether a row was inserted or changed.

        `conflict` is an SQL clause for a key that is stored already. `others` are the values of
        further columns, or take the place of the record's own.
        """
        values = stored_values(self.columns, record) | others
        return bool(session.insert(self.name, conflict, **values).rowcount)


LEARNINGS = RecordTable(
    "learning",
    Learning,
    "id, kind, text, session_id, source, memory_id, created_at, superseded_by",
    order="seq",
)
LOG = RecordTable(
    "consolidation_log",
    LogEntry,
    "id, session_id, items_consolidated, summary_preview, created_at, cycle_id, source, episode_id, "
    '"trigger", summarizer, status, error, duration_s, chars_before, chars_after, '
    "fallback_reason, level, model_share, undone_at",
    order="id",
)
SESSIONS = RecordTable(
    "agent_session",
    AgentSession,
    "session_id, client, conversation, project, directory, transcript, file, position, "
    "started_at, seen_at, informed_at, shown",
    order="session_id",
)
ACTIVITY = RecordTable(
    "agent_activity",
    HookActivity,
    "client, event, calls, stored, characters, failures, total_ms, slowest_ms, called_at, "
    "stored_at, informed_at, failed_at, failure",
    order="client, event",
)
FORGOTTEN_CAPTURES = RecordTable("agent_forgotten", ForgottenCapture, "id", order="id")
INJECTIONS = RecordTable(
    "injection",
    Injection,
    "id, created_at, client, session_id, project, injection_kind, prompt, characters, tokens, "
    "outcome",
    order="id",
)
BRIEFING_EDITS = RecordTable(
    "briefing_line", BriefingEdit, "id, pinned, dropped, text, changed_at", order="id"
)
ENDINGS = RecordTable(
    "ending",
    EndingRecord,
    "older_id, newer_id, reason, older_place, newer_place, found_at, undone",
    order="newer_id, older_id, older_place",
)
FOLDERS = RecordTable("watched_folder", FollowedFolder, "path, added_at", order="path")
FILES = RecordTable(
    "watched_file",
    WatchedFile,
    "path, file, size, modified_ns, format, position, memories, stored, read_at",
    order="path",
)
REPLACE_FILE = replace_by("path", column_names(FILES.columns)[1:])
EXPORTED_TABLES: tuple[RecordTable[Any], ...] = (
    SESSIONS,
    FORGOTTEN_CAPTURES,
    BRIEFING_EDITS,
    ENDINGS,
)
"""Tables that an export without a filter has whole."""
MOVED_TABLES: tuple[RecordTable[Any], ...] = (FOLDERS, FILES, ACTIVITY)
"""Tables that only a move has."""
