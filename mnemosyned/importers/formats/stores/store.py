"""The base of stores of other memory programs: tables in SQLite, and lists in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from mnemosyned.importers.importer import Bad, Format, Item, Source
from mnemosyned.importers.reading.archives import (
    SIGNATURE,
    ArchiveRefused,
    members_of,
    open_member,
)
from mnemosyned.importers.reading.json_stream import (
    JsonBroken,
    JsonReader,
    outline_of,
)
from mnemosyned.importers.reading.memories import text_in
from mnemosyned.importers.reading.sqlite import (
    SqliteRefused,
    columns_of,
    reading,
    tables_of,
)
from mnemosyned.importers.reading.text import as_utf8
from mnemosyned.verbs.memories import Remember

Row = Mapping[str, Any]
Convert = Callable[[Row], Remember | None]
"""Makes a memory of a row; None for one that was deleted. Raises `TypeError` or `ValueError`."""
ROWS_AT_A_TIME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows that are memories."""

    name: str
    columns: tuple[str, ...]
    """Those that are read, as far as the table has them; the first ones must be there."""
    required: int
    convert: Convert
    select: str = ""
    """A query with the columns of a row after its number, in place of all rows of the table; it
    takes the number of the last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A JSON document that the program writes."""

    keys: frozenset[str]
    """Keys of the document, or of the objects in its list, by which it is known."""
    lists: Mapping[str, Convert]
    """What each list under a key has; under "" the document's own."""
    member: re.Pattern[str] | None = None
    """The document's name where it is in an archive."""


class Store(Format):
    """A database or an export of another memory program."""

    tables: tuple[Table, ...] = ()
    exports: tuple[Export, ...] = ()

    def recognizes(self, source: Source) -> bool:
        if source.is_folder:
            return False
        if self._tables_in(source):
            return True
        return self._export_of(source) is not None

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        if self._tables_in(source):
            yield from self._rows(source, position)
            return
        export = self._export_of(source)
        if export is None:
            yield Bad(source.name, "it has not the form of a store that can be read")
            return
        try:
            yield from self._document(source, export, int(position or 0))
        except (ArchiveRefused, JsonBroken) as refused:
            yield Bad(source.name, str(refused))

    # ------------------------------------------------------------- database

    def _tables_in(self, source: Source) -> list[Table]:
        present = tables_of(source)
        named = [table for table in self.tables if table.name in present]
        if not named:
            return []
        try:
            with reading(source.path) as database:
                return [
                    table
                    for table in named
                    if columns_of(database, table.name).issuperset(
                        table.columns[: table.required]
                    )
                ]
        except SqliteRefused:
            return []

    def _rows(self, source: Source, position: str) -> Iterator[Item | Bad]:
        begun, _, row = position.partition("/")
        try:
            with reading(source.path) as database:
                for number, table in enumerate(self._tables_in(source)):
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
                        place = f"{source.name}, {table.name} {rowid}"
                        fields = dict(zip(names, values, strict=True))
                        record = _record(table.convert, fields, place)
                        if record:
                            yield _placed(record, f"{number}/{rowid}")
        except SqliteRefused as refused:
            yield Bad(source.name, str(refused))

    # --------------------------------------------------------------- export

    def _export_of(self, source: Source) -> Export | None:
        is_archive = source.head.startswith(SIGNATURE) and not source.stream
        for export in self.exports:
            try:
                head = source.head
                if is_archive:
                    head = _member_head(source, export)
            except ArchiveRefused:
                continue
            outline = outline_of(head)
            if outline is None or not export.keys <= outline.keys:
                continue
            if not (outline.is_list and "" not in export.lists):
                return export
        return None

    def _document(
        self, source: Source, export: Export, done: int
    ) -> Iterator[Item | Bad]:
        if export.member and source.head.startswith(SIGNATURE):
            for member in members_of(source.path, export.member)[:1]:
                with (
                    open_member(source.path, member) as opened,
                    as_utf8(opened) as text,
                ):
                    yield from _elements(text, source.name, export, done)
            return
        with source.open() as opened, as_utf8(opened) as text:
            yield from _elements(text, source.name, export, done)


def _member_head(source: Source, export: Export) -> bytes:
    if export.member is None:
        return b""
    for member in members_of(source.path, export.member)[:1]:
        with open_member(source.path, member) as opened:
            return opened.read(65_536)
    return b""


def _elements(
    text: BinaryIO, name: str, export: Export, done: int
) -> Iterator[Item | Bad]:
    reader = JsonReader(text)
    read = 0
    for number, element in enumerate(reader.elements(), 1):
        size, read = reader.bytes_read - read, reader.bytes_read
        convert = export.lists.get(element.key)
        if convert is None or number <= done:
            continue
        place = f"{name}, {element.key or 'entry'} {element.index + 1}"
        if not isinstance(element.value, Mapping):
            yield Bad(place, "it is not an object", str(number), size)
        elif record := _record(convert, element.value, place):
            yield _placed(record, str(number), size)


def _record(convert: Convert, row: Row, place: str) -> Item | Bad | None:
    try:
        memory = convert(row)
    except ValueError as error:
        return Bad(place, str(error))
    except (TypeError, KeyError, AttributeError) as error:
        return Bad(place, f"it has not the form of a memory: {error!r}")
    return Item(memory, place) if memory else None


def _placed(record: Item | Bad, position: str, size: int = 0) -> Item | Bad:
    if isinstance(record, Bad):
        return Bad(record.place, record.reason, position, size)
    size = size or len(record.memory.content)
    return Item(record.memory, record.place, position, size)


def content_in(row: Row, *keys: str) -> str:
    """Return the first text under these keys. Raises `ValueError` where there is none."""
    for key in keys:
        if text := text_in(row.get(key)).strip():
            return text
    raise ValueError(f"{keys[0]} is empty")


def object_in(value: object) -> dict[str, Any]:
    """Return an object, also one that is written as JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return dict(value) if isinstance(value, Mapping) else {}
