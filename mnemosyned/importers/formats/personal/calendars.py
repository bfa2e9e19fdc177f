"""Calendars in iCalendar files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from types import ModuleType

from mnemosyned.importers.formats.personal.components import Component, ComponentFile
from mnemosyned.importers.importer import Source, stable_id
from mnemosyned.importers.reading.memories import sendable
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.verbs.memories import Remember

ZONE = "VTIMEZONE"
ATTENDEES_MAX = 20
Entry = Mapping[str, object]
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
        return _memory(entry, f"calendar:{source.shown.stem}")


def _learn_zone(icalendar: ModuleType, component: Component) -> None:
    """Have the library know a zone that the calendar defines. Raises `PARSE_ERRORS`."""
    text = f"BEGIN:VCALENDAR\r\n{component.text}END:VCALENDAR\r\n"
    icalendar.Calendar.from_ical(text)


def _memory(entry: Entry, session: str) -> Remember:
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


def _happened(entry: Entry, begin: date | None) -> datetime | None:
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


def _time(entry: Entry, name: str) -> date | None:
    value = getattr(entry.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _people(entry: Entry) -> Iterator[str]:
    value = entry.get("ATTENDEE") or []
    for person in (value if isinstance(value, list) else [value])[:ATTENDEES_MAX]:
        name = person.params.get("CN") if hasattr(person, "params") else ""
        yield str(name or person).removeprefix("mailto:")


def _text(entry: Entry, name: str) -> str:
    value = entry.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return "" if value is None else str(value).strip()
