"""Calendars in iCalendar files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from mnemosyned.importers.formats.personal.components import (
    Component,
    begins_with,
    components,
    library,
)
from mnemosyned.importers.importer import Bad, Format, Item, Source, stable_id
from mnemosyned.importers.reading.memories import memory
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.importers.reading.text import as_utf8
from mnemosyned.verbs.memories import Remember

KINDS = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VTIMEZONE"})
ATTENDEES_MAX = 20
_WHEN = "%Y-%m-%d %H:%M"


class Calendar(Format):
    """The events, tasks and notes of an iCalendar file."""

    name = "calendar"

    def recognizes(self, source: Source) -> bool:
        return not source.is_folder and begins_with(source, "VCALENDAR")

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        icalendar = library("icalendar")
        if isinstance(icalendar, str):
            yield Bad(source.name, icalendar)
            return
        done = int(position or 0)
        offset = 0
        with source.open() as opened, as_utf8(opened) as text:
            for component in components(text, KINDS, offset=0):
                size, offset = component.end - offset, component.end
                if component.kind == "VTIMEZONE":
                    _learn_zone(icalendar, component)
                elif offset > done:
                    place = f"{source.name}, entry {component.number}"
                    yield _record(
                        icalendar,
                        component,
                        source,
                        place=place,
                        position=str(offset),
                        size=size,
                    )


def _record(
    icalendar: Any,  # noqa: ANN401 an optional library
    component: Component,
    source: Source,
    *,
    place: str,
    position: str,
    size: int,
) -> Item | Bad:
    if component.problem:
        return Bad(place, component.problem, position, size)
    try:
        parsed = icalendar.Component.from_ical(component.text)
        stored = _memory(parsed, f"calendar:{source.path.stem}")
    except Exception as error:  # noqa: BLE001 the library raises whatever it trips over
        return Bad(place, f"it cannot be read: {error}", position, size)
    return Item(stored, place, position, size)


def _learn_zone(icalendar: Any, component: Component) -> None:  # noqa: ANN401
    """Have the library know a zone that the calendar defines."""
    text = f"BEGIN:VCALENDAR\r\n{component.text}END:VCALENDAR\r\n"
    try:
        icalendar.Calendar.from_ical(text)
    except Exception:  # noqa: BLE001 times in it are read as local then
        return


def _memory(entry: Any, session: str) -> Remember:  # noqa: ANN401
    """Make the memory of an entry. Raises whatever the library does."""
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
    return memory(
        text,
        id=stable_id("calendar", _text(entry, "UID"), text),
        session=session,
        source="calendar",
        created_at=_happened(entry, begin),
        metadata={"uid": _text(entry, "UID"), "begins": str(begin or "")},
    )


def _happened(entry: Any, begin: date | None) -> datetime | None:  # noqa: ANN401
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


def _time(entry: Any, name: str) -> date | None:  # noqa: ANN401
    value = getattr(entry.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _people(entry: Any) -> Iterator[str]:  # noqa: ANN401
    value = entry.get("ATTENDEE") or []
    for person in (value if isinstance(value, list) else [value])[:ATTENDEES_MAX]:
        name = person.params.get("CN") if hasattr(person, "params") else ""
        yield str(name or person).removeprefix("mailto:")


def _text(entry: Any, name: str) -> str:  # noqa: ANN401
    value = entry.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return "" if value is None else str(value).strip()
