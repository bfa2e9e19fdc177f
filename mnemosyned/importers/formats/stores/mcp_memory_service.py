"""Stores of `mcp-memory-service`: its SQLite database, and the JSON that it exports."""

from __future__ import annotations

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

NAME = "mcp-memory-service"


def _memory(row: Row) -> Remember | None:
    if row.get("deleted_at"):
        return None
    created_at = moment_from(row.get("created_at")) or moment_from(
        row.get("created_at_iso"), zone=UTC
    )
    return sendable(
        Remember(
            content_in(row, "content"),
            id=stable_id(NAME, str(row["content_hash"])),
            session=NAME,
            source=NAME,
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata")),
                "type": text_in(row.get("memory_type")),
            },
            tags=tags_in(row.get("tags")),
        )
    )


class McpMemoryService(Store):
    """A database or an export of `mcp-memory-service`."""

    name = NAME
    tables = (
        Table(
            name="memories",
            columns=(
                "content_hash", "content", "tags", "memory_type", "metadata", "created_at",
                "created_at_iso", "deleted_at",
            ),
            required=6,
            convert=_memory,
        ),
    )  # fmt: skip
    exports = (
        Export(
            keys=frozenset({"export_metadata", "memories"}),
            lists={"memories": _memory},
        ),
    )
