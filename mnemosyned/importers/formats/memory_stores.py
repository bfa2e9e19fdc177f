"""Stores of other memory programs: basic-memory, mcp-memory-service, mem0 and mnemosyne-memory."""

from __future__ import annotations

import json
import re
import zipfile
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any

from mnemosyned.importers import reading
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
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.memories import Remember

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    """A table whose rows are memories; the TOML file explains the fields."""

    name: str
    columns: list[str]
    required: int
    select: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreExport:
    """A JSON document that the program writes; the TOML file explains the fields."""

    keys: list[str]
    lists: list[str]
    member: str = ""


class StoreFormat(ImportFormat):
    """A database or an export of another memory program, as the TOML file describes them."""

    def __init__(self) -> None:
        described = read_tables(__file__, "memory_stores.toml")[self.name]
        self._tables = [StoreTable(**each) for each in described["tables"]]
        self._exports = [StoreExport(**each) for each in described.get("exports", ())]

    @abstractmethod
    def convert(self, row: Row) -> Remember | None:
        """Return the memory of a table's row or an export's object; None if it was deleted.

        Raises `RecordRefused` and `PARSE_ERRORS`.
        """

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for the SQLite database of the other memory program, or an export of it."""
        if source.is_folder:
            return False
        if self._find_tables(source):
            return True
        return self._recognize_export(source) is not None

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the memories in the database or export of the other program after a position.

        Raises `SourceRefused` if the source is neither.
        """
        if self._find_tables(source):
            yield from self._read_rows(source, position)
        elif export := self._recognize_export(source):
            yield from self._read_export(source, export, int(position or 0))
        else:
            raise SourceRefused("it has not the form of a store that can be read")

    def _find_tables(self, source: ImportSource) -> list[StoreTable]:
        """Return the program's tables that a database has with their required columns.

        Empty for any other source.
        """
        present = reading.tables_of(source)
        named = [table for table in self._tables if table.name in present]
        if not named:
            return []
        try:
            with reading.open_database(source.path) as database:
                return [
                    table
                    for table in named
                    if reading.columns_of(database, table.name).issuperset(
                        table.columns[: table.required]
                    )
                ]
        except SourceRefused:
            return []

    def _read_rows(self, source: ImportSource, position: str) -> Records:
        """Yield the memories in the rows of a database's tables after a position.

        `position` is "number of the table/rowid"; empty for the beginning.
        """
        begun, _, row = position.partition("/")
        with reading.open_database(source.path) as database:
            for number, table in enumerate(self._find_tables(source)):
                if number < int(begun or 0):
                    continue
                present = reading.columns_of(database, table.name)
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
                    read = partial(self.convert, dict(zip(names, values, strict=True)))
                    place = f"{source.name}, {table.name} {rowid}"
                    yield from parse_record(read, place, f"{number}/{rowid}")

    def _recognize_export(self, source: ImportSource) -> StoreExport | None:
        """Return the kind of export of the program that a JSON document or archive is, or None."""
        for export in self._exports:
            outline = reading.outline_source(source, _member_pattern(export))
            if outline is None or not outline.keys.issuperset(export.keys):
                continue
            if not outline.is_list or "" in export.lists:
                return export
        return None

    def _read_export(
        self, source: ImportSource, export: StoreExport, done: int
    ) -> Records:
        """Yield the memories in an export's lists, without the document's first `done` elements.

        An element that is not an object is yielded as a bad record. Raises `SourceRefused`.
        """
        member: zipfile.ZipInfo | None = None
        pattern = _member_pattern(export)
        if pattern and source.head.startswith(reading.ZIP_SIGNATURE):
            member = reading.members_of(source.path, pattern)[0]
        with reading.open_text(source, member) as text:
            for number, element in enumerate(reading.JsonReader(text).elements(), 1):
                if element.key not in export.lists or number <= done:
                    continue
                place = f"{source.name}, {element.key or 'entry'} {element.index + 1}"
                if isinstance(element.value, Mapping):
                    read = partial(self.convert, element.value)
                    yield from parse_record(read, place, str(number), element.size)
                else:
                    reason = "it is not an object"
                    yield BadRecord(place, reason, str(number), element.size)


def _member_pattern(export: StoreExport) -> re.Pattern[str] | None:
    """Return the pattern of the export's file name in a ZIP archive; None if it is never in one."""
    return re.compile(export.member) if export.member else None


def content_in(row: Row, *keys: str) -> str:
    """Return the first text under these keys that is not blank. Raises `RecordRefused` for none."""
    for key in keys:
        if text := text_in(row.get(key)).strip():
            return text
    raise RecordRefused(f"{keys[0]} is empty")


def object_in(value: object) -> dict[str, Any]:
    """Return a value as a dict: a mapping, or JSON text of an object; empty for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


LINES_MAX = 2_000


class BasicMemory(StoreFormat):
    """`memory.db` of basic-memory."""

    name = "basic-memory"

    def convert(self, row: Row) -> Remember:
        """Return the memory of a note in basic-memory: its title, observations and relations."""
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
                self.name,
                text_in(row["project"]),
                text_in(row["file_path"]),
                text,
            ),
            session=f"notes:{text_in(row['project']) or self.name}",
            source=self.name,
            # It writes local time.
            created_at=moment_from(row["created_at"]),
            metadata={
                **object_in(row["entity_metadata"]),
                "title": title,
                "permalink": text_in(row["permalink"]),
                "file": text_in(row["file_path"]),
            },
        )


class McpMemoryService(StoreFormat):
    """A database or an export of `mcp-memory-service`."""

    name = "mcp-memory-service"

    def convert(self, row: Row) -> Remember | None:
        """Return the memory of a row of mcp-memory-service; None for one marked as deleted."""
        if row.get("deleted_at"):
            return None
        created_at = moment_from(row.get("created_at")) or moment_from(
            row.get("created_at_iso"), zone=UTC
        )
        return Remember(
            content_in(row, "content"),
            id=stable_id(self.name, str(row["content_hash"])),
            session=self.name,
            source=self.name,
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata")),
                "type": text_in(row.get("memory_type")),
            },
            tags=tags_in(row.get("tags")),
        )


class Mem0(StoreFormat):
    """A store of mem0 or OpenMemory."""

    name = "mem0"

    def convert(self, row: Row) -> Remember | None:
        """Return the memory of a row of mem0 or OpenMemory; None for a row marked as deleted."""
        if text_in(row.get("state")).lower() == "deleted":
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
            id=stable_id(self.name, id.replace("-", "").lower(), content),
            session=f"{self.name}:{run or user}" if run or user else self.name,
            source=text_in(row.get("app")) or text_in(row.get("agent_id")) or self.name,
            role=text_in(row.get("role")) or text_in(row.get("actor_id")),
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata")),
                "user": user,
            },
            tags=tags_in(row.get("categories")),
        )


class MnemosyneMemory(StoreFormat):
    """A database or an export of `mnemosyne-memory`."""

    name = "mnemosyne-memory"

    def convert(self, row: Row) -> Remember:
        """Return the memory of a row of the database or export of mnemosyne-memory."""
        content = content_in(row, "content")
        importance = row.get("importance")
        is_fraction = isinstance(importance, int | float) and 0 <= importance <= 1
        # It writes `timestamp` in local time, and SQLite wrote `created_at` in UTC.
        created_at = moment_from(row.get("timestamp")) or moment_from(
            row.get("created_at"), zone=UTC
        )
        return Remember(
            content,
            id=stable_id(self.name, str(row["id"]), content),
            session=text_in(row.get("session_id")) or "default",
            source=text_in(row.get("source")) or self.name,
            role=text_in(row.get("author_id")),
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata_json")),
                "type": text_in(row.get("memory_type")),
            },
            importance=float(importance or 0) if is_fraction else 0.5,
        )
