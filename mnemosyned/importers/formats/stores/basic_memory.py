"""The database of basic-memory; its folder of notes is read as notes."""

from __future__ import annotations

import json

from mnemosyned.importers.formats.stores.store import (
    Row,
    Store,
    Table,
    content_in,
    object_in,
)
from mnemosyned.importers.importer import stable_id
from mnemosyned.importers.reading.memories import sendable, text_in
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.verbs.memories import Remember

NAME = "basic-memory"
LINES_MAX = 2_000


def _memory(row: Row) -> Remember:
    title = content_in(row, "title")
    lines = [title, ""]
    for category, content, context in json.loads(row["observations"])[:LINES_MAX]:
        addition = f" ({context})" if context else ""
        lines.append(f"- [{category}] {content}{addition}")
    for kind, target in json.loads(row["relations"])[:LINES_MAX]:
        lines.append(f"- {kind} [[{target}]]")
    text = "\n".join(lines)
    return sendable(
        Remember(
            text,
            id=stable_id(
                NAME, text_in(row["project"]), text_in(row["file_path"]), text
            ),
            session=f"notes:{text_in(row['project']) or NAME}",
            source=NAME,
            # It writes local time.
            created_at=moment_from(row["created_at"]),
            metadata={
                **object_in(row["entity_metadata"]),
                "title": title,
                "permalink": text_in(row["permalink"]),
                "file": text_in(row["file_path"]),
            },
        )
    )


_ENTITIES = (
    "SELECT e.rowid, e.title, e.permalink, e.file_path, e.entity_metadata, e.created_at, "
    "p.name AS project, (SELECT json_group_array(json_array(category, content, context)) "
    "FROM observation WHERE entity_id = e.id) AS observations, "
    "(SELECT json_group_array(json_array(relation_type, to_name)) FROM relation "
    "WHERE from_id = e.id) AS relations FROM entity AS e "
    "LEFT JOIN project AS p ON p.id = e.project_id WHERE e.rowid > ? ORDER BY e.rowid"
)


class BasicMemory(Store):
    """`memory.db` of basic-memory."""

    name = NAME
    tables = (
        Table(
            name="entity",
            columns=(
                "id", "title", "permalink", "file_path", "entity_metadata", "created_at",
                "project_id",
            ),
            required=7,
            convert=_memory,
            select=_ENTITIES,
        ),
    )  # fmt: skip
