"""Address books in vCard files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
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

KINDS = frozenset({"VCARD"})
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


class Contacts(Format):
    """The people of an address book."""

    name = "contacts"

    def recognizes(self, source: Source) -> bool:
        return not source.is_folder and begins_with(source, "VCARD")

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        vobject = library("vobject")
        if isinstance(vobject, str):
            yield Bad(source.name, vobject)
            return
        offset = int(position or 0)
        with source.open() as opened, as_utf8(opened) as text:
            for component in components(text, KINDS, offset=offset):
                size, offset = component.end - offset, component.end
                place = f"{source.name}, contact {component.number}"
                yield _record(vobject, component, place, str(offset), size)


def _record(
    vobject: Any,  # noqa: ANN401 an optional library
    component: Component,
    place: str,
    position: str,
    size: int,
) -> Item | Bad:
    if component.problem:
        return Bad(place, component.problem, position, size)
    try:
        stored = _memory(vobject.readOne(component.text))
    except Exception as error:  # noqa: BLE001 the library raises whatever it trips over
        return Bad(place, f"it cannot be read: {error}", position, size)
    return Item(stored, place, position, size)


def _memory(card: Any) -> Remember:  # noqa: ANN401
    """Make the memory of a person. Raises whatever the library does."""
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
    return memory(
        text,
        id=stable_id("contacts", next(_values(card, "uid"), ""), text),
        session="contacts",
        source="contacts",
        created_at=revised if revised and revised <= now else None,
        metadata={"name": name},
    )


def _values(card: Any, field: str) -> Iterator[str]:  # noqa: ANN401
    """Yield the values of a field, each on one line."""
    for content in card.contents.get(field, [])[:VALUES_MAX]:
        value = content.value
        parts = value if isinstance(value, list) else str(value).split("\n")
        text = ", ".join(str(part).strip() for part in parts if str(part).strip())
        if text:
            yield text
