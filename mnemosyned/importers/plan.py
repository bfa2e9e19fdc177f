"""The formats that can be imported, and which files of a source each reads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import iglob
from importlib import import_module
from pathlib import Path
from typing import cast

from mnemosyned.errors import InvalidRequest
from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
)
from mnemosyned.importers.reading import (
    SQLITE_SIGNATURE as SQLITE,
    ZIP_SIGNATURE as ARCHIVE,
)
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.request import instant


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """A format by its name; its module is loaded on demand."""

    name: str
    summary: str
    """Description for help: `memories as JSON lines`."""
    target: str
    """`module:class`, in `mnemosyned.importers.formats`."""
    places: tuple[str, ...] = ()
    """Where programs keep it, as patterns of paths; a relative one is below the working directory."""

    def load(self) -> ImportFormat:
        """Import the format's module and return a new instance; a class of several gets the name."""
        module, _, attribute = self.target.partition(":")
        loaded = import_module(f"mnemosyned.importers.formats.{module}")
        made = getattr(loaded, attribute)
        return cast(
            "ImportFormat", made() if hasattr(made, "name") else made(self.name)
        )


FORMATS = tuple(
    FormatEntry(name, **entry)
    for name, entry in read_tables(__file__, "formats.toml").items()
)
"""Formats in the order of recognizing a source: the strictest first."""


def format_names() -> str:
    """Return the names of all formats, separated by commas."""
    return ", ".join(entry.name for entry in FORMATS)


def find_sources() -> dict[str, str]:
    """Return the places where other programs keep something here, with descriptions."""
    found = {}
    for entry in FORMATS:
        for place in entry.places:
            named = os.path.expandvars(place)
            if any(iglob(os.path.expanduser(named))):  # noqa: PTH111, PTH207 patterns
                found[place if named == place else shlex.quote(named)] = entry.summary
    return found


def recognize_format(source: ImportSource) -> ImportFormat | None:
    """Return the first format that can read a source, or None. Raises `OSError`."""
    formats = (entry.load() for entry in FORMATS)
    return next((format for format in formats if format.recognizes(source)), None)


_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A source with its format."""

    source: ImportSource
    format: ImportFormat
    size: int
    """Bytes to read; 0 where unknown."""


@dataclass(slots=True)
class ImportPlan:
    """The sources of an import."""

    parts: list[PlannedPart] = field(default_factory=list)
    unknown_files: int = 0
    unreadable: list[BadRecord] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of bytes that the import will read; 0 if unknown for any source."""
        sizes = [part.size for part in self.parts]
        return sum(sizes) if all(sizes) else 0


def plan_import(sources: list[ImportSource], format: str | None) -> ImportPlan:
    """Return the plan of an import: each source with its format, oldest first record first.

    A folder that no format reads as a whole is replaced by its files. `format` names the only format
    to use. Raises `InvalidRequest` for a source that has no format or cannot be read.
    """
    plan = ImportPlan()
    given = None
    if format:
        given = next((each.load() for each in FORMATS if each.name == format), None)
        if given is None:
            problem = f"there is no format {format}; the formats are {format_names()}"
            raise InvalidRequest(problem, field="format")
    for source in sources:
        try:
            _add_source(plan, source, given)
        except OSError as error:
            reason = f"{source.name} cannot be read: {error.strerror or error}"
            raise InvalidRequest(reason, field="path") from error
    if len(plan.parts) > 1:
        plan.parts.sort(key=_read_first_time)
    return plan


def _add_source(
    plan: ImportPlan, source: ImportSource, given: ImportFormat | None
) -> None:
    """Add a source, or the files of a folder, to the plan in the `given` or recognized format.

    Raises `InvalidRequest` without a format, and for a stream that must first be saved to a file.
    """
    kind = ""
    if source.stream and source.head.startswith((SQLITE, ARCHIVE)):
        kind = "a database or an archive"
    elif source.stream and given and given.needs_file:
        kind = f"of the format {given.name}"
    if kind:
        problem = (
            f"{source.name} is {kind}, which is read from a file: save it to one first"
        )
        raise InvalidRequest(problem, field="path")
    format = given or recognize_format(source)
    if given and source.is_folder and not given.recognizes(source):
        format = None
    if format:
        plan.parts.append(PlannedPart(source, format, format.size(source)))
    elif source.is_folder:
        _add_files_of_folder(plan, source, given)
    else:
        raise InvalidRequest(_describe_unknown(source), field="path")


def _describe_unknown(source: ImportSource) -> str:
    """Return the error message, with advice, for a source that no import format recognizes."""
    if not source.head:
        return f"{source.name} is empty"
    if source.head.startswith(SQLITE):
        return (
            f"{source.name} is a database that cannot be imported; a backup of a memory is put "
            "back by `mnem restore-db`"
        )
    return (
        f"{source.name} has none of the formats that can be imported; if it is one of them, "
        f"name it with --format: {format_names()}"
    )


def _add_files_of_folder(
    plan: ImportPlan, folder: ImportSource, given: ImportFormat | None
) -> None:
    """Add the files below a folder in the `given` or any format to the plan; count others."""
    for path in _files_below(folder.path):
        source = ImportSource(path, folder.root)
        try:
            format = recognize_format(source)
            is_wanted = format and (given is None or format.name == given.name)
            if format and is_wanted:
                plan.parts.append(PlannedPart(source, format, format.size(source)))
            else:
                plan.unknown_files += 1
        except OSError as error:
            plan.unreadable.append(
                BadRecord(source.name, f"cannot be read: {error.strerror}")
            )


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, sorted by name, without links and hidden folders."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _read_first_time(part: PlannedPart) -> datetime:
    """Return the time of a source's first memory, or the latest possible time without one."""
    if part.source.stream:
        return _LAST
    with suppress(OSError):  # reported when it is read
        for record in part.format.read(part.source, START):
            if isinstance(record, ImportItem):
                return instant(record.memory.created_at) or _LAST
    return _LAST
