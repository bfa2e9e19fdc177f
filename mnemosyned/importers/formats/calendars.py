"""Calendars in iCalendar's form and address books of vCards."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import BinaryIO, Protocol

from mnemosyned.importers.importer import (
    Bad,
    Format,
    ImportItem,
    Source,
    moment_from,
    parsed,
    sendable,
    stable_id,
)
from mnemosyned.importers.reading import LINE_BYTES_MAX, as_utf8, decoded, lines_of
from mnemosyned.verbs.memories import Remember
from mnemosyned.version import install_command

COMPONENT_CHARS_MAX = 4 << 20
EXTRA = "personal"


@dataclass(frozen=True, slots=True)
class Component:
    """One block."""

    kind: str
    number: int
    text: str
    end: int
    problem: str = ""


class ComponentFile(Format):
    """A file of blocks that a library of the extra parses one by one."""

    outermost: str
    """The kind of block that the file begins with."""
    kinds: frozenset[str]
    """The kinds of blocks that are records, or are needed to read records."""
    definitions: frozenset[str] = frozenset()
    """Those that are needed: they are parsed again when reading goes on after them."""
    noun: str
    """What the place of a record calls it."""
    library: str

    @abstractmethod
    def memory_of(
        self, library: ModuleType, component: Component, source: Source
    ) -> Remember | None:
        """Make the memory of a block; None of a definition. Raises `PARSE_ERRORS`."""

    def recognizes(self, source: Source) -> bool:
        return not source.is_folder and _begins_with(source, self.outermost)

    def read(self, source: Source, position: str) -> Iterator[ImportItem | Bad]:
        library = _loaded(self.library)
        if isinstance(library, str):
            yield Bad(source.name, library)
            return
        done = int(position or 0)
        end = 0
        with source.open() as opened, as_utf8(opened) as text:
            for component in components(text, self.kinds):
                size, end = component.end - end, component.end
                is_definition = component.kind in self.definitions
                if end > done or is_definition:
                    parse = partial(self.memory_of, library, component, source)
                    place = f"{source.name}, {self.noun} {component.number}"
                    record = _record(component, parse, place, size)
                    if record:
                        yield record


def _record(
    component: Component, parse: Callable[[], Remember | None], place: str, size: int
) -> ImportItem | Bad | None:
    position = str(component.end)
    if component.problem:
        return Bad(place, component.problem, position, size)
    return parsed(parse, place, position, size)


def _begins_with(source: Source, kind: str) -> bool:
    """Whether a file begins with a block of this kind."""
    with as_utf8(io.BytesIO(source.head)) as head:
        first = decoded(head.read(512)).lstrip().upper()
    return first.startswith(f"BEGIN:{kind}")


def components(stream: BinaryIO, kinds: frozenset[str]) -> Iterator[Component]:
    """Yield the blocks of some kinds; those within them are parts of their text."""
    kind, lines, size, number = "", list[str](), 0, 0
    end = 0
    for line in lines_of(stream):
        text, end = line.text, line.end
        upper = text.strip().upper()
        begun = upper.removeprefix("BEGIN:") if upper.startswith("BEGIN:") else ""
        if not kind and begun in kinds:
            kind, lines, size = begun, [], 0
            number += 1
        if kind:
            size += LINE_BYTES_MAX if line.too_long else len(text)
            if size <= COMPONENT_CHARS_MAX:
                lines.append(text)
        if kind and upper == f"END:{kind}":
            problem = "" if size <= COMPONENT_CHARS_MAX else "it is too long"
            yield Component(kind, number, "\r\n".join([*lines, ""]), end, problem)
            kind = ""
    if kind:
        yield Component(kind, number, "", end, f"it has no END:{kind}")


def _loaded(name: str) -> ModuleType | str:
    """Return a library of the extra, or what to do as it is missing."""
    try:
        return import_module(name)
    except ImportError:
        return f"it needs {name}; install it with: {install_command(EXTRA)}"


ZONE = "VTIMEZONE"
ATTENDEES_MAX = 20
CalendarEntry = Mapping[str, object]
"""Properties by name, as the library has them; a list where one is repeated."""
_WHEN = "%Y-%m-%d %H:%M"


class Calendar(ComponentFile):
    """The events, tasks and notes of an iCalendar file."""

    name = "calendar"
    outermost = "VCALENDAR"
    kinds = frozenset({"VEVENT", "VTODO", "VJOURNAL", ZONE})
    definitions = frozenset({ZONE})
    noun = "entry"
    library = "icalendar"

    def memory_of(
        self, library: ModuleType, component: Component, source: Source
    ) -> Remember | None:
        if component.kind == ZONE:
            _learn_zone(library, component)
            return None
        entry = library.Component.from_ical(component.text)
        return _entry_memory(entry, f"calendar:{source.shown.stem}")


def _learn_zone(icalendar: ModuleType, component: Component) -> None:
    """Have the library know a zone that the calendar defines. Raises `PARSE_ERRORS`."""
    text = f"BEGIN:VCALENDAR\r\n{component.text}END:VCALENDAR\r\n"
    icalendar.Calendar.from_ical(text)


def _entry_memory(entry: CalendarEntry, session: str) -> Remember:
    """Make the memory of an entry. Raises `PARSE_ERRORS`."""
    begin = _time(entry, "DTSTART") or _time(entry, "DUE")
    end = _time(entry, "DTEND")
    title = _text(entry, "SUMMARY") or "Without title"
    lines = [title]
    if begin:
        lines.append(_span(begin, end))
    rule = entry.get("RRULE")
    lines += [
        f"{name}: {value}"
        for name, value in (
            ("Place", _text(entry, "LOCATION")),
            ("With", ", ".join(_people(entry))),
            ("Repeats", rule.to_ical().decode() if hasattr(rule, "to_ical") else ""),
            ("Status", _text(entry, "STATUS")),
        )
        if value
    ]
    lines += ["", _text(entry, "DESCRIPTION")]
    text = "\n".join(lines).strip()
    return sendable(
        Remember(
            text,
            id=stable_id("calendar", _text(entry, "UID"), text),
            session=session,
            source="calendar",
            created_at=_happened(entry, begin),
            metadata={"uid": _text(entry, "UID"), "begins": str(begin or "")},
        )
    )


def _happened(entry: CalendarEntry, begin: date | None) -> datetime | None:
    """Return when a past entry began; of a coming one, when it was written down."""
    now = datetime.now(UTC)
    written = [_time(entry, name) for name in ("CREATED", "LAST-MODIFIED", "DTSTAMP")]
    for value in (begin, *written):
        moment = moment_from(value)
        if moment and moment <= now:
            return moment
    return None


def _span(begin: date, end: date | None) -> str:
    if not isinstance(begin, datetime):
        return f"{begin:%Y-%m-%d}"
    zone = getattr(begin.tzinfo, "key", "") or begin.tzname() or ""
    text = f"{begin:{_WHEN}}"
    if isinstance(end, datetime):
        form = "%H:%M" if end.date() == begin.date() else _WHEN
        text += f" to {end:{form}}"
    return f"{text} {zone}".strip()


def _time(entry: CalendarEntry, name: str) -> date | None:
    value = getattr(entry.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _people(entry: CalendarEntry) -> Iterator[str]:
    value = entry.get("ATTENDEE") or []
    for person in (value if isinstance(value, list) else [value])[:ATTENDEES_MAX]:
        name = person.params.get("CN") if hasattr(person, "params") else ""
        yield str(name or person).removeprefix("mailto:")


def _text(entry: CalendarEntry, name: str) -> str:
    value = entry.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return "" if value is None else str(value).strip()


VALUES_MAX = 20
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


class _Content(Protocol):
    """A line of a card, as the library has it."""

    value: object


class _Card(Protocol):
    """A card, as the library has it."""

    contents: Mapping[str, Sequence[_Content]]


class Contacts(ComponentFile):
    """The people of an address book."""

    name = "contacts"
    outermost = "VCARD"
    kinds = frozenset({"VCARD"})
    noun = "contact"
    library = "vobject"

    def memory_of(
        self,
        library: ModuleType,
        component: Component,
        _source: Source,
    ) -> Remember:
        try:
            card = library.readOne(component.text)
        except library.base.VObjectError as error:
            raise ValueError(error) from error
        return _contact_memory(card)


def _contact_memory(card: _Card) -> Remember:
    """Make the memory of a person. Raises `PARSE_ERRORS`."""
    name = next(_values(card, "fn"), "") or next(_values(card, "n"), "")
    if not name:
        raise ValueError("it has no name")
    lines = [name]
    for field, title in _LINES:
        values = list(dict.fromkeys(_values(card, field)))
        if values:
            lines.append(f"{title}: {', '.join(values)}")
    text = "\n".join(lines)
    revised = moment_from(next(_values(card, "rev"), None))
    now = datetime.now(UTC)
    return sendable(
        Remember(
            text,
            id=stable_id("contacts", next(_values(card, "uid"), ""), text),
            session="contacts",
            source="contacts",
            created_at=revised if revised and revised <= now else None,
            metadata={"name": name},
        )
    )


def _values(card: _Card, field: str) -> Iterator[str]:
    """Yield the values of a field, each on one line."""
    for content in card.contents.get(field, [])[:VALUES_MAX]:
        value = content.value
        parts = value if isinstance(value, list) else str(value).split("\n")
        text = ", ".join(str(part).strip() for part in parts if str(part).strip())
        if text:
            yield text
