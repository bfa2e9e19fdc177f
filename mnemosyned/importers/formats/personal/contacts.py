"""Address books in vCard files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Protocol

from mnemosyned.importers.formats.personal.components import Component, ComponentFile
from mnemosyned.importers.importer import Source, stable_id
from mnemosyned.importers.reading.memories import sendable
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.verbs.memories import Remember

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
        return _memory(card)


def _memory(card: _Card) -> Remember:
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
