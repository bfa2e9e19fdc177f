"""Notes in Markdown, one file each, as Obsidian, Logseq, Joplin and basic-memory keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemosyned.importers.formats.notes.front_matter import Note, split_note
from mnemosyned.importers.formats.notes.sections import (
    Section,
    heading_of,
    sections_of,
)
from mnemosyned.importers.importer import Bad, Format, Item, Source, stable_id
from mnemosyned.importers.reading.memories import sendable, tags_in, text_in
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.importers.reading.text import as_utf8, decoded, is_binary
from mnemosyned.paths import printable_path
from mnemosyned.verbs.memories import Remember

SUFFIXES = (".md", ".markdown", ".mdown")
BYTES_MAX = 16 << 20
SOURCE = "notes"
VAULT_FOLDER = ".obsidian"
PARENTS_MAX = 64
_DATE_FIELDS = (
    "date", "created", "created_at", "date created", "creation date", "created-at", "datetime",
    "updated", "modified",
)  # fmt: skip
_DATE_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_INLINE_TAG = re.compile(r"(?<![\w#/&])#([^\W\d_][\w/-]*)")


@dataclass(frozen=True, slots=True)
class _About:
    """The fields that all sections of a note share."""

    session: str
    title: str
    created_at: datetime
    metadata: Mapping[str, Any]
    tags: list[str]


class Notes(Format):
    """A note in Markdown."""

    name = "notes"
    needs_file = True

    def recognizes(self, source: Source) -> bool:
        is_note = source.path.name.lower().endswith(SUFFIXES)
        return is_note and not source.stream and not source.is_folder

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        size = source.size()
        if position:
            return
        if size > BYTES_MAX:
            yield Bad(source.name, f"it exceeds {BYTES_MAX:,} bytes")
            return
        if is_binary(source.head):
            yield Bad(source.name, "it is not text")
            return
        with source.open() as opened, as_utf8(opened) as text:
            note = split_note(decoded(text.read()))
        if note.problem:
            yield Bad(source.name, note.problem)
        sections = sections_of(note.body)
        about = _about(source, note)
        for number, section in enumerate(sections, 1):
            position = "end" if number == len(sections) else ""
            yield _item(source, about, section, position, size if number == 1 else 0)


def session_of(path: Path) -> str:
    """Return the session of a note: its vault, or else its folder, whatever link leads there."""
    folder = path.resolve().parent
    for parent in [folder, *folder.parents][:PARENTS_MAX]:
        if (parent / VAULT_FOLDER).is_dir():
            return f"notes:{printable_path(parent.name)}"
    return f"notes:{printable_path(folder.name)}"


def _about(source: Source, note: Note) -> _About:
    path = source.path
    title = text_in(note.fields.get("title")).strip() or source.shown.stem
    tags = [*tags_in(note.fields.get("tags")), *tags_in(note.fields.get("tag"))]
    tags += _INLINE_TAG.findall(note.body[:BYTES_MAX])
    return _About(
        session=session_of(path),
        title=title,
        created_at=_created_at(path, note),
        metadata={
            "title": title,
            "file": str(source.shown.absolute()),
            "permalink": text_in(note.fields.get("permalink")),
            "type": text_in(note.fields.get("type")),
        },
        tags=tags,
    )


def _created_at(path: Path, note: Note) -> datetime:
    """Return the date in the front matter, else in the file's name, else of the file."""
    now = datetime.now(UTC)
    named = _DATE_IN_NAME.search(path.stem)
    in_name = "-".join(named.groups()) if named else None
    for value in [*map(note.fields.get, _DATE_FIELDS), in_name]:
        moment = moment_from(value)
        if moment and moment <= now:
            return moment
    modified = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    return min(modified, now)


def _item(
    source: Source, about: _About, section: Section, position: str, size: int
) -> Item:
    text = _with_title(about.title, section)
    stored = sendable(
        Remember(
            text,
            id=stable_id(SOURCE, about.session, text),
            session=about.session,
            source=SOURCE,
            created_at=about.created_at,
            metadata=dict(about.metadata),
            tags=about.tags,
        )
    )
    return Item(stored, f"{source.name}:{section.line}", position, size)


def _with_title(title: str, section: Section) -> str:
    """Return a section under the note's title and the headings above it, where it lacks them."""
    first = heading_of(section.text.partition("\n")[0])
    own = first[1] if first else ""
    above = [title, *section.headings]
    if own:
        above = above[:-1] if section.headings else above
    path = [name for name in dict.fromkeys(above) if name != own]
    return f"{' › '.join(path)}\n\n{section.text}" if path else section.text
