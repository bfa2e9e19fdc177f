"""Stores of other memory programs: basic-memory, mcp-memory-service, mem0 and mnemosyne-memory."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any

from mnemosyned.importers.importer import (
    BadRecord,
    ImportFormat,
    ImportSource,
    RecordRefused,
    Records,
    SourceRefused,
    moment_from,
    parse_record,
    stable_id,
    tags_in,
    text_in,
)
from mnemosyned.importers.reading import (
    ZIP_SIGNATURE,
    JsonReader,
    columns_of,
    members_of,
    open_database,
    open_text,
    outline_source,
    tables_of,
)
from mnemosyned.verbs.memories import Remember

Row = Mapping[str, Any]
Convert = Callable[[Row], Remember | None]
"""Makes a memory of a row; None for a deleted row. Raises `RecordRefused`, `PARSE_ERRORS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    """A table whose rows are memories."""

    name: str
    columns: tuple[str, ...]
    """Columns to read, if the table has them; the first `required` ones must exist."""
    required: int
    convert: Convert
    select: str = ""
    """A query in place of all rows: its columns follow the rowid, its parameter is the last rowid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreExport:
    """A JSON document that the program writes."""

    keys: frozenset[str]
    """Keys that identify the document, its own or of the objects in its list."""
    lists: Mapping[str, Convert]
    """The converter of each list by its key; "" is the document's own list."""
    member: re.Pattern[str] | None = None
    """The document's name in an archive."""


class StoreFormat(ImportFormat):
    """A database or an export of another memory program."""

    tables: tuple[StoreTable, ...] = ()
    exports: tuple[StoreExport, ...] = ()

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for the program's database or one of its exports."""
        if source.is_folder:
            return False
        if self._find_tables(source):
            return True
        return self._recognize_export(source) is not None

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the memories after a position, from the database or the export."""
        if self._find_tables(source):
            yield from self._read_rows(source, position)
        elif export := self._recognize_export(source):
            yield from _read_export(source, export, int(position or 0))
        else:
            raise SourceRefused("it has not the form of a store that can be read")

    def _find_tables(self, source: ImportSource) -> list[StoreTable]:
        """Return the known tables in a database with their columns; empty for others."""
        present = tables_of(source)
        named = [table for table in self.tables if table.name in present]
        if not named:
            return []
        try:
            with open_database(source.path) as database:
                return [
                    table
                    for table in named
                    if columns_of(database, table.name).issuperset(
                        table.columns[: table.required]
                    )
                ]
        except SourceRefused:
            return []

    def _read_rows(self, source: ImportSource, position: str) -> Records:
        """Yield the memories in a database's tables after a position, "table/rowid"."""
        begun, _, row = position.partition("/")
        with open_database(source.path) as database:
            for number, table in enumerate(self._find_tables(source)):
                if number < int(begun or 0):
                    continue
                present = columns_of(database, table.name)
                columns = [each for each in table.columns if each in present]
                rows = database.execute(
                    table.select
                    or f"SELECT rowid, {', '.join(columns)} FROM {table.name} "
                    "WHERE rowid > ? ORDER BY rowid",
                    (int(row or 0),),
                )
                row = ""
                names = [each[0] for each in rows.description[1:]]
                for rowid, *values in rows:
                    read = partial(table.convert, dict(zip(names, values, strict=True)))
                    place = f"{source.name}, {table.name} {rowid}"
                    yield from parse_record(read, place, f"{number}/{rowid}")

    def _recognize_export(self, source: ImportSource) -> StoreExport | None:
        """Return the known export whose form a JSON document or archive has; None for others."""
        for export in self.exports:
            outline = outline_source(source, export.member)
            if outline is None or not export.keys <= outline.keys:
                continue
            if not (outline.is_list and "" not in export.lists):
                return export
        return None


def _read_export(source: ImportSource, export: StoreExport, done: int) -> Records:
    """Yield the memories in the lists of an export, without the first `done` elements.

    Raises `SourceRefused`.
    """
    member: zipfile.ZipInfo | None = None
    if export.member and source.head.startswith(ZIP_SIGNATURE):
        member = members_of(source.path, export.member)[0]
    with open_text(source, member) as text:
        for number, element in enumerate(JsonReader(text).elements(), 1):
            convert = export.lists.get(element.key)
            if convert is None or number <= done:
                continue
            place = f"{source.name}, {element.key or 'entry'} {element.index + 1}"
            if isinstance(element.value, Mapping):
                read = partial(convert, element.value)
                yield from parse_record(read, place, str(number), element.size)
            else:
                reason = "it is not an object"
                yield BadRecord(place, reason, str(number), element.size)


def content_in(row: Row, *keys: str) -> str:
    """Return the first text under these keys of a row. Raises `RecordRefused` without one."""
    for key in keys:
        if text := text_in(row.get(key)).strip():
            return text
    raise RecordRefused(f"{keys[0]} is empty")


def object_in(value: object) -> dict[str, Any]:
    """Return a JSON object, also one written as text; an empty dict for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


BASIC_MEMORY_NAME = "basic-memory"
LINES_MAX = 2_000


def _basic_memory(row: Row) -> Remember:
    """Return the memory of a note in basic-memory's database."""
    title = content_in(row, "title")
    lines = [title, ""]
    for category, content, context in json.loads(row["observations"])[:LINES_MAX]:
        addition = f" ({context})" if context else ""
        lines.append(f"- [{category}] {content}{addition}")
    for kind, target in json.loads(row["relations"])[:LINES_MAX]:
        lines.append(f"- {kind} [[{target}]]")
    text = "\n".join(lines)
    return Remember(
        text,
        id=stable_id(
            BASIC_MEMORY_NAME,
            text_in(row["project"]),
            text_in(row["file_path"]),
            text,
        ),
        session=f"notes:{text_in(row['project']) or BASIC_MEMORY_NAME}",
        source=BASIC_MEMORY_NAME,
        # It writes local time.
        created_at=moment_from(row["created_at"]),
        metadata={
            **object_in(row["entity_metadata"]),
            "title": title,
            "permalink": text_in(row["permalink"]),
            "file": text_in(row["file_path"]),
        },
    )


_ENTITIES = (
    "SELECT e.rowid, e.title, e.permalink, e.file_path, e.entity_metadata, e.created_at, "
    "p.name AS project, (SELECT json_group_array(json_array(category, content, context)) "
    "FROM observation WHERE entity_id = e.id) AS observations, "
    "(SELECT json_group_array(json_array(relation_type, to_name)) FROM relation "
    "WHERE from_id = e.id) AS relations FROM entity AS e "
    "LEFT JOIN project AS p ON p.id = e.project_id WHERE e.rowid > ? ORDER BY e.rowid"
)


class BasicMemory(StoreFormat):
    """`memory.db` of basic-memory."""

    name = BASIC_MEMORY_NAME
    tables = (
        StoreTable(
            name="entity",
            columns=(
                "id", "title", "permalink", "file_path", "entity_metadata", "created_at",
                "project_id",
            ),
            required=7,
            convert=_basic_memory,
            select=_ENTITIES,
        ),
    )  # fmt: skip


MCP_SERVICE_NAME = "mcp-memory-service"


def _mcp_service_memory(row: Row) -> Remember | None:
    """Return the memory of a row of mcp-memory-service; None if it was deleted."""
    if row.get("deleted_at"):
        return None
    created_at = moment_from(row.get("created_at")) or moment_from(
        row.get("created_at_iso"), zone=UTC
    )
    return Remember(
        content_in(row, "content"),
        id=stable_id(MCP_SERVICE_NAME, str(row["content_hash"])),
        session=MCP_SERVICE_NAME,
        source=MCP_SERVICE_NAME,
        created_at=created_at,
        metadata={
            **object_in(row.get("metadata")),
            "type": text_in(row.get("memory_type")),
        },
        tags=tags_in(row.get("tags")),
    )


class McpMemoryService(StoreFormat):
    """A database or an export of `mcp-memory-service`."""

    name = MCP_SERVICE_NAME
    tables = (
        StoreTable(
            name="memories",
            columns=(
                "content_hash", "content", "tags", "memory_type", "metadata", "created_at",
                "created_at_iso", "deleted_at",
            ),
            required=6,
            convert=_mcp_service_memory,
        ),
    )  # fmt: skip
    exports = (
        StoreExport(
            keys=frozenset({"export_metadata", "memories"}),
            lists={"memories": _mcp_service_memory},
        ),
    )


MEM0_NAME = "mem0"
_GONE = frozenset({"deleted"})


def _mem0_memory(row: Row) -> Remember | None:
    """Return the memory of a row of mem0 or OpenMemory; None if it was deleted."""
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
    return Remember(
        content,
        # With its words: they may be others when it is imported again.
        id=stable_id(MEM0_NAME, id.replace("-", "").lower(), content),
        session=f"{MEM0_NAME}:{run or user}" if run or user else MEM0_NAME,
        source=text_in(row.get("app")) or text_in(row.get("agent_id")) or MEM0_NAME,
        role=text_in(row.get("role")) or text_in(row.get("actor_id")),
        created_at=created_at,
        metadata={
            **object_in(row.get("metadata")),
            "user": user,
        },
        tags=tags_in(row.get("categories")),
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


class Mem0(StoreFormat):
    """A store of mem0 or OpenMemory."""

    name = MEM0_NAME
    tables = (
        StoreTable(
            name="history",
            columns=(
                "memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted",
                "actor_id", "role",
            ),
            required=8,
            convert=_mem0_memory,
            select=_LAST_STATES,
        ),
        StoreTable(
            name="memories",
            columns=("id", "content", "app_id", "state", "user_id"),
            required=5,
            convert=_mem0_memory,
            select=_WITH_NAMES,
        ),
    )  # fmt: skip
    exports = (
        StoreExport(
            keys=frozenset({"user", "apps", "memories"}),
            lists={"memories": _mem0_memory},
            member=re.compile(r"memories\.json"),
        ),
        StoreExport(keys=frozenset({"results"}), lists={"results": _mem0_memory}),
        StoreExport(keys=frozenset({"id", "memory"}), lists={"": _mem0_memory}),
    )


_COLUMNS = (
    "id", "content", "source", "timestamp", "session_id", "importance", "metadata_json",
    "created_at", "memory_type", "author_id",
)  # fmt: skip


def _mnemosyne_memory(row: Row) -> Remember:
    """Return the memory of a row of mnemosyne-memory."""
    content = content_in(row, "content")
    importance = row.get("importance")
    is_fraction = isinstance(importance, int | float) and 0 <= importance <= 1
    # It writes `timestamp` in local time, and SQLite wrote `created_at` in UTC.
    created_at = moment_from(row.get("timestamp")) or moment_from(
        row.get("created_at"), zone=UTC
    )
    return Remember(
        content,
        id=stable_id("mnemosyne-memory", str(row["id"]), content),
        session=text_in(row.get("session_id")) or "default",
        source=text_in(row.get("source")) or "mnemosyne-memory",
        role=text_in(row.get("author_id")),
        created_at=created_at,
        metadata={
            **object_in(row.get("metadata_json")),
            "type": text_in(row.get("memory_type")),
        },
        importance=float(importance or 0) if is_fraction else 0.5,
    )


_OF_GONE_ORIGINALS = (
    "SELECT e.rowid, e.id, e.content, e.source, e.timestamp, e.session_id, e.importance, "
    "e.metadata_json, e.created_at FROM episodic_memory AS e WHERE e.rowid > ? AND NOT EXISTS ("
    "SELECT 1 FROM working_memory AS w "
    "WHERE w.id = substr(e.summary_of, 1, instr(e.summary_of || ',', ',') - 1)) ORDER BY e.rowid"
)
"""Its summaries, where the memories that they are made of were deleted."""


class MnemosyneMemory(StoreFormat):
    """A database or an export of `mnemosyne-memory`."""

    name = "mnemosyne-memory"
    tables = (
        StoreTable(
            name="working_memory",
            columns=_COLUMNS,
            required=8,
            convert=_mnemosyne_memory,
        ),
        StoreTable(
            name="episodic_memory",
            columns=("id", "content", "session_id", "timestamp", "summary_of"),
            required=5,
            convert=_mnemosyne_memory,
            select=_OF_GONE_ORIGINALS,
        ),
    )
    exports = (
        StoreExport(
            keys=frozenset({"mnemosyne_export"}),
            lists={
                "working_memory": _mnemosyne_memory,
                "legacy_memories": _mnemosyne_memory,
            },
        ),
    )
