"""The sources of an import, each with its format, in the order in which they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.importers.importer import START, Bad, Format, Item, Source
from mnemosyned.importers.reading.archives import SIGNATURE as ARCHIVE
from mnemosyned.importers.reading.sqlite import SIGNATURE as SQLITE
from mnemosyned.importers.registry import format_named, format_names, recognized
from mnemosyned.verbs.request import instant

_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Part:
    """A source with its format."""

    source: Source
    format: Format
    size: int
    """Bytes to read; 0 where unknown."""


@dataclass(slots=True)
class Plan:
    """The files that an import reads."""

    parts: list[Part] = field(default_factory=list)
    unknown_files: int = 0
    unreadable: list[Bad] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes to read; 0 where unknown."""
        sizes = [part.size for part in self.parts]
        return sum(sizes) if all(sizes) else 0


def plan_import(sources: list[Source], format: str | None) -> Plan:
    """Find the formats of the sources, in order of the time of their first records.

    A folder that no format recognizes stands for its files; links in it are not followed.
    Raises `InvalidRequest` for a source without a format or that cannot be read.
    """
    plan = Plan()
    given = format_named(format) if format else None
    for source in sources:
        try:
            _add(plan, source, given)
        except OSError as error:
            reason = f"{source.name} cannot be read: {error.strerror or error}"
            raise InvalidRequest(reason, field="path") from error
    if len(plan.parts) > 1:
        plan.parts.sort(key=_first_time)
    return plan


def _add(plan: Plan, source: Source, given: Format | None) -> None:
    if source.stream and (problem := _unfit_for_stream(source, given)):
        raise InvalidRequest(problem, field="path")
    format = _format_of(source, given)
    if format:
        plan.parts.append(Part(source, format, format.size(source)))
    elif source.is_folder:
        _add_files(plan, source, given)
    else:
        raise InvalidRequest(_unknown(source), field="path")


def _format_of(source: Source, given: Format | None) -> Format | None:
    """The format of a source: the one given, which a folder has to have, or the one it shows."""
    if given is None:
        return recognized(source)
    return given if not source.is_folder or given.recognizes(source) else None


def _unfit_for_stream(source: Source, given: Format | None) -> str:
    """Return why a stream has to be saved to a file first; empty if it can be read."""
    if source.head.startswith((SQLITE, ARCHIVE)):
        kind = "a database or an archive"
    elif given and given.needs_file:
        kind = f"of the format {given.name}"
    else:
        return ""
    return f"{source.name} is {kind}, which is read from a file: save it to one first"


def _unknown(source: Source) -> str:
    """Say of a source without a format what to do with it."""
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


def _add_files(plan: Plan, folder: Source, given: Format | None) -> None:
    for path in _files(folder.path):
        source = Source(path, folder.root)
        try:
            format = recognized(source)
            is_wanted = format and (given is None or format.name == given.name)
            if format and is_wanted:
                plan.parts.append(Part(source, format, format.size(source)))
            else:
                plan.unknown_files += 1
        except OSError as error:
            plan.unreadable.append(
                Bad(source.name, f"cannot be read: {error.strerror}")
            )


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files under a folder by name; links and hidden folders are left out."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _first_time(part: Part) -> datetime:
    """Return the time of the first record; sources without one come last, by name.

    Streams are among them, as what is read of them here could not be read again.
    """
    if part.source.stream:
        return _LAST
    try:
        for record in part.format.read(part.source, START):
            if isinstance(record, Item):
                return instant(record.memory.created_at) or _LAST
    except OSError:
        pass  # reported when it is read
    return _LAST
