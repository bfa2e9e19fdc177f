"""Stores of other memory programs, read as `memory_stores.toml` describes them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from itertools import chain, count
from typing import Any, cast

from mnemosyned.importers import projects, reading
from mnemosyned.importers.importer import (
    PARSE_ERRORS,
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
    RecordRefused,
    Records,
    SourceRefused,
    first_past,
    moment_from,
    parse_record,
    sanitize,
    stable_id,
    text_in,
)
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.memories import Remember

Row = Mapping[str, Any]
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_UUID = re.compile("-".join(rf"([0-9a-f]{{{length}}})" for length in (8, 4, 4, 4, 12)))
ITEMS_MAX = 2_000
"""Items of a list that are read into a memory."""
PAGE_ROWS = 1_000
"""Rows read in one query: between queries the other program can write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShape:
    """How a kind of record becomes a memory; the TOML file explains the fields."""

    content: list[str]
    key: list[str]
    exact_key: bool = False
    session: list[str] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    role: list[str] = field(default_factory=list)
    created_at: list[str] = field(default_factory=lambda: ["created_at"])
    tags: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    unless: list[str] = field(default_factory=list)
    importance: str = ""
    dedupe: bool = False

    def convert(self, format: str, row: Row) -> Remember | None:
        """Return the memory of a record; None for a deleted record. Raises `RecordRefused`."""
        marked = object_in(row.get("metadata")) | dict(row)
        for mark in self.unless:
            name, is_compared, value = mark.partition("=")
            found = _text_of(marked, name)
            if found == value if is_compared else found:
                return None
        pieces = [fill_template(piece, row) for piece in self.content]
        if not any(pieces):
            raise RecordRefused("it has no text")
        key = [fill_template(part, row) for part in self.key]
        if not self.exact_key:  # a UUID is written with and without dashes
            key = [_UUID.sub(r"\1\2\3\4\5", part) for part in key]
        if not all(key[-1:]):
            raise RecordRefused("nothing identifies it")
        values = (_value_of(row, name) for name in self.tags)
        tags = (each if isinstance(each, list) else [each or ""] for each in values)
        importance = row.get(self.importance)
        is_fraction = isinstance(importance, int | float) and 0 <= importance <= 1
        return Remember(
            "\n".join(filter(None, pieces)),
            id=stable_id(format, *key),
            session=_first_filled(self.session, row) or format,
            source=_first_filled(self.source, row) or format,
            role=_first_filled(self.role, row),
            created_at=first_past(
                moment_from(row.get(name), zone=None if is_local else UTC)
                for name, _, is_local in (
                    each.partition("@") for each in self.created_at
                )
            ),
            metadata=self._collect_metadata(row),
            # Of a field with several tags, its items or what commas separate.
            tags=[tag for each in chain(*tags) for tag in str(each).split(",")],
            importance=float(importance or 0) if is_fraction else 0.5,
            dedupe=self.dedupe,
        )

    def _collect_metadata(self, row: Row) -> dict[str, Any]:
        """Return a record's metadata; a directory `cwd` also gives the key of its project."""
        metadata: dict[str, Any] = {}
        for entry in self.metadata:
            name, _, named = entry.rpartition("=")
            if name == "*":
                metadata |= object_in(row.get(named))
            else:
                name = name or named.partition("|")[0].rstrip("*")
                metadata[name] = _value_of(row, named)
        if project := projects.project_of(text_in(metadata.get("cwd"))).key:
            metadata["project"] = project
        return metadata


def fill_template(template: str, row: Row) -> str:
    """Return a template filled with a record's fields; empty if one of them has no text."""
    filled = {named: _text_of(row, named) for named in _PLACEHOLDER.findall(template)}
    if not all(filled.values()):
        return ""
    return _PLACEHOLDER.sub(lambda match: filled[match[1]], template)


def _first_filled(templates: list[str], row: Row) -> str:
    """Return the first of the templates that a record's fields can fill, filled; empty if none."""
    return next(filter(None, (fill_template(each, row) for each in templates)), "")


def _value_of(row: Row, named: str) -> object:
    """Return the first non-empty of the fields in `named`, such as `a|b`, or None; a field `a*` as a list."""
    for name in named.split("|"):
        value = row.get(name.rstrip("*"))
        if name.endswith("*"):
            value = list_in(value)
        if value not in (None, "", []):
            return cast("object", value)
    return None


def list_in(value: object) -> list[Any]:
    """Return up to `ITEMS_MAX` items of a list or JSON list; any other text is one item, anything else none."""
    if isinstance(value, str):
        parsed = _json_in(value)
        value = parsed if isinstance(parsed, list) else [value] if value else []
    return value[:ITEMS_MAX] if isinstance(value, list) else []


def _json_in(text: str) -> object:
    """Return the value of a JSON text, or None for any other text."""
    with suppress(ValueError, RecursionError):
        return cast("object", json.loads(text))
    return None


def _text_of(row: Row, named: str) -> str:
    """Return the first non-empty of the fields in `named`, such as `a|b`, as text, a list's items on lines."""
    value = _value_of(row, named)
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value if str(item).strip())
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, str | int | float) else ""


def object_in(value: object) -> dict[str, Any]:
    """Return a value as a dict: a mapping, or JSON text of an object; empty for anything else."""
    value = _json_in(value) if isinstance(value, str) else value
    return dict(value) if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    """A table whose rows are records; the TOML file explains the fields."""

    name: str
    record: str
    columns: list[str]
    required: int
    where: str = ""
    select: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreExport:
    """A JSON document that the program writes; the TOML file explains the fields."""

    keys: list[str]
    lists: dict[str, str]
    mark: str = ""
    member: str = ""
    members: str = ""


class StoreFormat(ImportFormat):
    """A database or an export of another memory program, as the TOML file describes them."""

    edits_changed = True

    def __init__(self, name: str) -> None:
        self.name = name
        described = read_tables(__file__, "memory_stores.toml")[self.name]
        self._shapes = {
            name: RecordShape(**described.get("every", {}) | each)
            for name, each in described["records"].items()
        }
        self._tables = [StoreTable(**each) for each in described.get("tables", ())]
        self._others: dict[str, list[str]] = described.get("others", {})
        self._exports = [StoreExport(**each) for each in described.get("exports", ())]

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for the SQLite database of the other memory program, or an export of it."""
        return bool(self._find_tables(source) or self._recognize_export(source))

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield memories of a database or export after a position. Raises `SourceRefused` if it is neither."""
        if self._find_tables(source):
            yield from self._read_rows(source, position)
        elif export := self._recognize_export(source):
            # A journal of an earlier version may have another form of position.
            done = int(position) if position.isdecimal() else 0
            yield from self._read_export(source, export, done)
        else:
            for each in self._exports:  # an archive may have a fault
                name = re.compile(each.member)
                with reading.open_documents(source, [name]) as documents:
                    next(documents, None)
            raise SourceRefused("it has not the form of a store that can be read")

    def _find_tables(self, source: ImportSource) -> list[StoreTable]:
        """Return the program's tables that a database has with their required columns."""
        present = reading.tables_of(source)
        named = [table for table in self._tables if table.name in present]
        if not named:
            return []
        try:
            with reading.open_database(source.path) as database:
                return [table for table in named if _has_table(database, table)]
        except SourceRefused:
            return []

    def _read_rows(self, source: ImportSource, position: str) -> Records:
        """Yield the memories in a database's tables after a position, "number of the table/rowid"."""
        begun, _, row = position.partition("/")
        with reading.open_database(source.path) as database:
            for number, table in enumerate(self._find_tables(source)):
                if number < int(begun or 0):
                    continue
                query = _make_query(database, table, self._others)
                last, read = int(row or -(1 << 63)), PAGE_ROWS
                row = ""
                while read == PAGE_ROWS:
                    read = 0
                    rows = database.execute(query, (last, PAGE_ROWS))
                    names = [each[0] for each in rows.description]
                    for values in rows:
                        record = dict(zip(names, values, strict=True))
                        last, read = record["seq"], read + 1
                        place = f"{source.name}, {table.name} {last}"
                        record = object_in(record.get("*")) | record
                        yield from self._convert(
                            table.record, record, place, f"{number}/{last}"
                        )

    def _convert(
        self, kind: str, row: Row, place: str, position: str, size: int | None = None
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield the memory of a record of a kind, or a bad record; nothing for a deleted one."""
        row = {**row, "record": kind}
        convert = partial(self._shapes[kind].convert, self.name, row)
        yield from parse_record(convert, place, position, size)

    def _recognize_export(self, source: ImportSource) -> StoreExport | None:
        """Return the kind of export in a JSON document or archive; None for no export of the program."""
        for export in self._exports:
            pattern = re.compile(export.member) if export.member else None
            outline = reading.outline_source(source, pattern)
            if outline is None or not outline.keys.issuperset(export.keys):
                continue
            is_form = outline.is_list == ("" in export.lists)
            if is_form and export.mark.encode() in source.head:
                return export
        return None

    def _read_export(
        self, source: ImportSource, export: StoreExport, done: int
    ) -> Records:
        """Yield an export's memories after its first `done` elements, and a bad record for a damaged document.

        Raises `SourceRefused` if the archive cannot be read.
        """
        shared: dict[str, Any] = {"file.name": source.text_path.stem}
        numbers = count(1)
        patterns = map(re.compile, filter(None, (export.member, export.members)))
        with reading.open_documents(source, patterns) as documents:
            for document, (name, stream) in enumerate(documents):
                is_about = document == 0 and export.members != ""
                top = dict(shared)
                try:
                    for element in reading.JsonReader(stream).elements():
                        number, key = next(numbers), element.key or name
                        # Of an archive's documents that are lists, each has the name "" too.
                        own = None if element.key else export.lists.get("")
                        kind = export.lists.get(key, own)
                        if is_about:
                            shared[f"about.{key}"] = element.value
                        elif kind is None:
                            top[f"top.{key}"] = element.value
                        elif number > done:
                            place = f"{source.name}, {key or 'entry'}"
                            yield from self._read_element(
                                kind, element, top, place, number
                            )
                        else:  # of which Letta keeps the names of agents
                            self.split_rows(kind, element.value)
                except SourceRefused as broken:  # other documents may be whole
                    yield BadRecord(f"{source.name} {name}".strip(), str(broken))

    def _read_element(
        self,
        kind: str,
        element: reading.JsonElement,
        top: Row,
        where: str,
        number: int,
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield memories of the records in an element; `top` has fields of the document for every record."""
        rows: list[tuple[str, object]] = []
        where, size = f"{where} {element.index + 1}", element.size
        try:
            rows.extend(self.split_rows(kind, element.value))
        except PARSE_ERRORS as error:
            yield BadRecord(where, f"it has not the form of this export: {error!r}")
        for index, (of, row) in enumerate(rows, 1):
            # What is left of an element is read with all of it the next time.
            position = str(number if index == len(rows) else number - 1)
            place = f"{where}, {of} {index}" if len(rows) > 1 else where
            if isinstance(row, Mapping):
                yield from self._convert(of, {**top, **row}, place, position, size)
            else:
                yield BadRecord(place, "it is not an object", position)
            size = 0

    def split_rows(self, kind: str, value: object) -> Iterable[tuple[str, object]]:
        """Return (kind, record) for the records in an element of an export's list. Raises `PARSE_ERRORS`."""
        return [(kind, value)]

    def size(self, source: ImportSource) -> int:
        """Return the number of bytes to read: the file's, or of the documents in an archive."""
        if not source.head.startswith(reading.ZIP_SIGNATURE):
            return source.size()
        with suppress(SourceRefused):  # reported when it is read
            return sum(
                member.file_size
                for export in self._exports
                for name in filter(None, (export.member, export.members))
                for member in reading.members_of(source.path, re.compile(name))
            )
        return source.size()


def _has_table(database: sqlite3.Connection, table: StoreTable) -> bool:
    """Return True if a database has a table's required columns, and the query `where`, if any, finds a row."""
    present = reading.columns_of(database, table.name)
    needed = table.columns[: table.required]
    if not all(present.intersection(column.split("|")) for column in needed):
        return False
    return not table.where or database.execute(table.where).fetchone() is not None


def _make_query(
    database: sqlite3.Connection, table: StoreTable, others: Mapping[str, list[str]]
) -> str:
    """Return the SQL query for a page of a table's records; `others` names the columns of tables it joins."""
    parts = []
    for name, columns in {**others, table.name: table.columns}.items():
        present = reading.columns_of(database, name)
        selected = []
        for names in columns:
            column = names.partition("|")[0]
            found = next((each for each in names.split("|") if each in present), "NULL")
            selected.append(f"{found} AS {column}")
        origin = f"rowid AS seq, {', '.join(selected)} FROM main.{name}"
        empty = f"0 AS seq, {', '.join(selected)} WHERE 0"
        parts.append(
            f"{name} AS NOT MATERIALIZED (SELECT {origin if present else empty})"
        )
    select = table.select or f"SELECT * FROM {table.name}"
    return (
        f"WITH {', '.join(parts)} SELECT * FROM ({select}) "
        "WHERE seq > ? ORDER BY seq LIMIT ?"
    )


class Letta(StoreFormat):
    """An agent file of Letta, or a list of passages of its archival memory."""

    name = "letta"

    def __init__(self) -> None:
        super().__init__(self.name)
        self._agents: dict[str, str] = {}
        """The names of agents by the ids of their blocks, read before the blocks."""

    def split_rows(self, kind: str, value: object) -> list[tuple[str, object]]:
        """Return (kind, record) for an agent's messages, or for another element.

        Agents' names are kept, so that a memory block, which comes later, gets the name of its agent.
        """
        if not isinstance(value, Mapping):
            return [(kind, value)]
        if kind == "block":
            agent = self._agents.get(text_in(value.get("id")), "")
            return [(kind, {**value, "agent": agent})]
        if kind != "message":
            return [(kind, value)]
        if "role" in value:
            return [(kind, _add_words(value, {}))]
        agent = text_in(value.get("name"))
        for id in list_in(value.get("block_ids")):
            self._agents[str(id)] = agent
        said = value.get("messages")
        return [
            (kind, {**_add_words(object_in(each), value), "agent": agent})
            for each in (said if isinstance(said, list) else ())
        ]


def _add_words(message: Row, agent: Row) -> Row:
    """Return a Letta message with the field `words`: what the user or the agent said; empty for others."""
    role, content = message.get("role"), message.get("content")
    # A text may itself be JSON.
    parts = [object_in(part) for part in list_in(content)]
    texts = [text_in(each.get("text")) for each in parts if each.get("type") == "text"]
    words = "\n".join(filter(None, texts)) or text_in(content)
    if role == "user":
        event = object_in(words)
        if text_in(event.get("type")):
            is_said = event["type"] == "user_message"
            words = text_in(event.get("message")) if is_said else ""
    elif role == "assistant":
        calls = map(object_in, list_in(message.get("tool_calls")))
        functions = [object_in(call.get("function")) for call in calls]
        sent = [
            text_in(object_in(each.get("arguments")).get("message"))
            for each in functions
            if each.get("name") == "send_message"
        ]
        if functions and agent.get("agent_type") != "letta_v1_agent":
            words = "\n".join(filter(None, sent))  # the text is the agent's thought
    else:
        words = ""
    return {**message, "words": words}


class McpMemory(ImportFormat):
    """The graph of the reference memory server of the Model Context Protocol: `memory.jsonl`."""

    name = "mcp-memory"

    def recognizes(self, source: ImportSource) -> bool:
        """Return True if the source's first line is an entity or a relation of a knowledge graph."""
        return bool(_parse_facts(source.head.partition(b"\n")[0]))

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the facts in the lines after the byte `position`."""
        with reading.open_text(source) as text:
            for line in reading.lines_of(text):
                if line.end <= int(position or 0) or not line.data.strip():
                    continue
                place, size = f"{source.name}:{line.number}", line.end - line.offset
                facts = _parse_facts(line.data)
                if not facts:
                    reason = "the line is no entity or relation"
                    yield BadRecord(place, reason, str(line.end), size)
                for number, fact in enumerate(facts, 1):
                    memory = Remember(
                        fact,
                        id=stable_id(self.name, fact),
                        session=self.name,
                        source=self.name,
                        role="assistant",
                    )
                    end = line.end if number == len(facts) else line.offset
                    yield ImportItem(sanitize(memory), place, str(end), size)
                    size = 0


def _parse_facts(line: bytes) -> list[str]:
    """Return the facts in a line about an entity or a relation of a knowledge graph; empty for other lines."""
    fields = object_in(reading.decode_text(line))
    name, kind, relation = map(
        text_in, map(fields.get, ("name", "entityType", "relationType"))
    )
    if fields.get("type") == "entity" and name:
        about = f"{name} ({kind})" if kind else name
        observations = [each for each in list_in(fields.get("observations")) if each]
        return [f"{about}: {each}" for each in observations] or [about]
    begin, end = text_in(fields.get("from")), text_in(fields.get("to"))
    if fields.get("type") == "relation" and begin and relation and end:
        return [f"{begin} {relation} {end}"]
    return []
