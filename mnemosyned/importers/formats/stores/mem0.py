"""Stores of mem0 and OpenMemory: databases, exports, and what mem0's calls return."""

from __future__ import annotations

import re
from datetime import UTC

from mnemosyned.importers.formats.stores.store import (
    Export,
    Row,
    Store,
    Table,
    content_in,
    object_in,
)
from mnemosyned.importers.importer import stable_id
from mnemosyned.importers.reading.memories import sendable, tags_in, text_in
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.verbs.memories import Remember

NAME = "mem0"
_GONE = frozenset({"deleted"})


def _memory(row: Row) -> Remember | None:
    if text_in(row.get("state")).lower() in _GONE:
        return None
    user = text_in(row.get("user_id"))
    run = text_in(row.get("run_id"))
    # A database has naive times in UTC.
    created_at = moment_from(row.get("created_at"), zone=UTC) or moment_from(
        row.get("updated_at"), zone=UTC
    )
    id = text_in(row.get("memory_id")) or str(row["id"])
    content = content_in(row, "memory", "content", "new_memory")
    return sendable(
        Remember(
            content,
            # With its words: they may be others when it is imported again.
            id=stable_id(NAME, id.replace("-", "").lower(), content),
            session=f"{NAME}:{run or user}" if run or user else NAME,
            source=text_in(row.get("app")) or text_in(row.get("agent_id")) or NAME,
            role=text_in(row.get("role")) or text_in(row.get("actor_id")),
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata")),
                "user": user,
            },
            tags=tags_in(row.get("categories")),
        )
    )


_LAST_STATES = (
    "SELECT h.rowid, h.memory_id, h.new_memory, h.created_at, h.updated_at, h.actor_id, h.role "
    "FROM history AS h JOIN (SELECT max(rowid) AS last FROM history GROUP BY memory_id) "
    "ON last = h.rowid WHERE h.rowid > ? AND h.event != 'DELETE' AND NOT ifnull(h.is_deleted, 0) "
    "ORDER BY h.rowid"
)
"""mem0 keeps its memories in a vector store, and every change of them in this table."""
_WITH_NAMES = (
    "SELECT m.rowid, m.id, m.content, m.metadata, m.state, m.created_at, m.updated_at, "
    "a.name AS app, u.user_id AS user_id FROM memories AS m "
    "LEFT JOIN apps AS a ON a.id = m.app_id LEFT JOIN users AS u ON u.id = m.user_id "
    "WHERE m.rowid > ? ORDER BY m.rowid"
)


class Mem0(Store):
    """A store of mem0 or OpenMemory."""

    name = NAME
    tables = (
        Table(
            name="history",
            columns=(
                "memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted",
                "actor_id", "role",
            ),
            required=8,
            convert=_memory,
            select=_LAST_STATES,
        ),
        Table(
            name="memories",
            columns=("id", "content", "app_id", "state", "user_id"),
            required=5,
            convert=_memory,
            select=_WITH_NAMES,
        ),
    )  # fmt: skip
    exports = (
        Export(
            keys=frozenset({"user", "apps", "memories"}),
            lists={"memories": _memory},
            member=re.compile(r"memories\.json"),
        ),
        Export(keys=frozenset({"results"}), lists={"results": _memory}),
        Export(keys=frozenset({"id", "memory"}), lists={"": _memory}),
    )
