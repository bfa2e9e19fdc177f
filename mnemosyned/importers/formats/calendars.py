"""Calendars in iCalendar's form and address books of vCards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from mnemosyned.importers import importer, reading
from mnemosyned.verbs.memories import Remember
from mnemosyned.version import install_command

COMPONENT_CHARS_MAX = 4 << 20


@dataclass(slots=True)
class FileBlock(reading.FileRecord):
    """One block of a file, with its inner blocks."""

    kind: str = ""
    lines: list[str] = field(default_factory=list)
    size: int = 0
    """Characters read; lines beyond `COMPONENT_CHARS_MAX` are dropped."""
    is_ended: bool = False

    @property
    def text(self) -> str:
        """The block's text for the calendar library. Raises `RecordRefused` if it is too long or has no end."""
        if not self.is_ended:
            raise importer.RecordRefused(f"it has no END:{self.kind}")
        if self.size > COMPONENT_CHARS_MAX:
            raise importer.RecordRefused("it is too long")
        return "\r\n".join([*self.lines, ""])


class BlockFormat(importer.ImportFormat):
    """A file of blocks, parsed one by one with a library of the extra `personal`."""

    outermost: str
    """Kind of the file's first block."""
    kinds: frozenset[str]
    """Kinds of blocks that are records, or are needed to read records."""
    definitions: frozenset[str] = frozenset()
    """Kinds needed for records: they are parsed again when reading goes on after them."""
    noun: str
    """Noun for a record in error messages."""
    library: str

    @abstractmethod
    def memory_of(
        self, library: ModuleType, source: importer.ImportSource, block: FileBlock
    ) -> Remember | None:
        """Return a block's memory, or None for a time zone. Raises `RecordRefused` and `PARSE_ERRORS`."""

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True if the source begins with "BEGIN:" and the format's outermost block."""
        head = reading.head_as_utf8(source.head)[:512]
        first = reading.decode_text(head).lstrip().upper()
        return first.startswith(f"BEGIN:{self.outermost}")

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the memories of blocks after a position; also parse earlier definitions, such as time zones.

        Raises `SourceRefused` if the library is not installed.
        """
        try:
            library = import_module(self.library)
        except ImportError as error:
            command = install_command("personal")
            reason = f"it needs {self.library}; install it with: {command}"
            raise importer.SourceRefused(reason) from error
        start = reading.RecordPosition.parse(position)
        make = partial(self.memory_of, library, source)
        with reading.open_text(source) as text:
            blocks = (
                block
                for block in reading.group_lines(
                    reading.lines_of(text), self._take_line
                )
                if block.end > start.offset or block.kind in self.definitions
            )
            yield from reading.convert_records(
                source, blocks, make, noun=self.noun, start=start
            )

    def _take_line(
        self, line: reading.TextLine, last: FileBlock | None
    ) -> FileBlock | None:
        """Return a new block if the line begins one, else add the line to the `last` block and return None."""
        text = line.text
        upper = text.strip().upper()
        begins = upper.startswith("BEGIN:") and upper[len("BEGIN:") :] in self.kinds
        if last is None or last.is_ended:
            kind = upper[len("BEGIN:") :]
            return FileBlock(kind=kind, lines=[text]) if begins else None
        last.size += reading.LINE_BYTES_MAX if line.too_long else len(text)
        if last.size <= COMPONENT_CHARS_MAX:
            last.lines.append(text)
        last.is_ended = upper == f"END:{last.kind}"
        return None


ZONE = "VTIMEZONE"
WRITTEN = ("CREATED", "LAST-MODIFIED", "DTSTAMP")
CalendarEntry = Mapping[str, object]
"""Properties by name, in the library's form; a list for a repeated property."""
_WHEN = "%Y-%m-%d %H:%M"


class Calendar(BlockFormat):
    """The events, tasks and notes of an iCalendar file."""

    name = "calendar"
    outermost = "VCALENDAR"
    kinds = frozenset({"VEVENT", "VTODO", "VJOURNAL", ZONE})
    definitions = frozenset({ZONE})
    noun = "entry"
    library = "icalendar"

    def memory_of(
        self, library: ModuleType, source: importer.ImportSource, block: FileBlock
    ) -> Remember | None:
        """Return the memory of an event, task or note; None for a time zone, which `library` then knows."""
        if block.kind == ZONE:  # from now on the library knows the zone
            text = f"BEGIN:VCALENDAR\r\n{block.text}END:VCALENDAR\r\n"
            library.Calendar.from_ical(text)
            return None
        entry = library.Component.from_ical(block.text)
        return _make_entry_memory(entry, f"calendar:{source.text_path.stem}")


def _make_entry_memory(entry: CalendarEntry, session: str) -> Remember:
    """Return the memory of a calendar entry, with people and place. Raises `PARSE_ERRORS`."""
    begin = _read_property_time(entry, "DTSTART") or _read_property_time(entry, "DUE")
    end = _read_property_time(entry, "DTEND")
    title = _read_property_text(entry, "SUMMARY") or "Without title"
    lines = [title]
    if begin:
        lines.append(_format_time_span(begin, end))
    rule = entry.get("RRULE")
    attendees = entry.get("ATTENDEE") or []
    people = [
        str((hasattr(person, "params") and person.params.get("CN")) or person)
        for person in (attendees[:20] if isinstance(attendees, list) else [attendees])
    ]
    names = ", ".join(person.removeprefix("mailto:") for person in people)
    lines += [
        f"{name}: {value}"
        for name, value in (
            ("Place", _read_property_text(entry, "LOCATION")),
            ("With", names),
            ("Repeats", rule.to_ical().decode() if hasattr(rule, "to_ical") else ""),
            ("Status", _read_property_text(entry, "STATUS")),
        )
        if value
    ]
    lines += ["", _read_property_text(entry, "DESCRIPTION")]
    text = "\n".join(lines).strip()
    return Remember(
        text,
        id=importer.stable_id("calendar", _read_property_text(entry, "UID"), text),
        session=session,
        source="calendar",
        created_at=importer.first_past(
            (begin, *(_read_property_time(entry, name) for name in WRITTEN))
        ),
        metadata={
            "uid": _read_property_text(entry, "UID"),
            "begins": str(begin or ""),
        },
    )


def _format_time_span(begin: date, end: date | None) -> str:
    """Return begin and end as text with their time zone; for an all-day entry the first and last date."""
    if not isinstance(begin, datetime):
        days = end - begin if end and not isinstance(end, datetime) else timedelta()
        last = f" to {begin + days - timedelta(days=1)}" if days.days > 1 else ""
        return f"{begin}{last}"
    zone = getattr(begin.tzinfo, "key", "") or begin.tzname() or ""
    text = f"{begin:{_WHEN}}"
    if isinstance(end, datetime):
        form = "%H:%M" if end.date() == begin.date() else _WHEN
        text += f" to {end:{form}}"
    return f"{text} {zone}".strip()


def _read_property_time(entry: CalendarEntry, name: str) -> date | None:
    """Return the date or time in an entry's property, or None if there is none."""
    value = getattr(entry.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _read_property_text(entry: CalendarEntry, name: str) -> str:
    """Return an entry's property as text, the first value of a list; empty if there is none."""
    value = entry.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return "" if value is None else str(value).strip()


_LINES = (
    ("org", "Company"),
    ("title", "Position"),
    ("email", "Mail"),
    ("tel", "Phone"),
    ("adr", "Address"),
    ("bday", "Birthday"),
    ("url", "Page"),
    ("note", "Note"),
)


CardFields = Mapping[str, list[Any]]
"""Fields of a card by name, each with objects of the library that have a `value`."""


class Contacts(BlockFormat):
    """The people of an address book."""

    name = "contacts"
    outermost = "VCARD"
    kinds = frozenset({"VCARD"})
    noun = "contact"
    library = "vobject"

    def memory_of(
        self, library: ModuleType, _source: importer.ImportSource, block: FileBlock
    ) -> Remember:
        """Return the memory of a person in a vCard. Raises `PARSE_ERRORS`."""
        try:
            card = library.readOne(block.text)
        except library.base.VObjectError as error:
            raise ValueError(error) from error
        return _make_contact_memory(card.contents)


def _make_contact_memory(card: CardFields) -> Remember:
    """Return the memory of a person, a line for each field. Raises `PARSE_ERRORS`."""
    names = (*_read_field_values(card, "fn"), *_read_field_values(card, "n"))
    if not names:
        raise ValueError("it has no name")
    name = names[0]
    lines = [name]
    for key, title in _LINES:
        values = list(dict.fromkeys(_read_field_values(card, key)))
        if values:
            lines.append(f"{title}: {', '.join(values)}")
    text = "\n".join(lines)
    return Remember(
        text,
        id=importer.stable_id(
            "contacts", next(_read_field_values(card, "uid"), ""), text
        ),
        session="contacts",
        source="contacts",
        created_at=importer.first_past(_read_field_values(card, "rev")),
        metadata={"name": name},
    )


def _read_field_values(card: CardFields, key: str) -> Iterator[str]:
    """Yield the values of the fields named `key` in a card, each value as one line."""
    for content in card.get(key, [])[:20]:
        value = content.value
        parts = value if isinstance(value, list) else str(value).split("\n")
        text = ", ".join(str(part).strip() for part in parts if str(part).strip())
        if text:
            yield text
