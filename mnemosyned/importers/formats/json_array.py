"""Memories as a JSON list: each an object with the fields of `remember`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.importers.importer import Bad, Format, Item, Source, stable_id
from mnemosyned.importers.reading.json_stream import (
    JsonBroken,
    JsonReader,
    outline_of,
)
from mnemosyned.importers.reading.occurrences import Occurrences
from mnemosyned.importers.reading.text import as_utf8
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import parse


class JsonArray(Format):
    """A file with one JSON list, of any length."""

    name = "json"

    def recognizes(self, source: Source) -> bool:
        outline = outline_of(source.head)
        return outline is not None and outline.is_list and "content" in outline.keys

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        done = int(position or 0)
        occurrences = Occurrences()
        with source.open() as opened, as_utf8(opened) as text:
            reader = JsonReader(text)
            read = 0
            try:
                for element in reader.elements():
                    size, read = reader.bytes_read - read, reader.bytes_read
                    written = json.dumps(element.value)
                    number = occurrences.next(written)
                    if element.index < done:
                        continue
                    place = f"{source.name}, entry {element.index + 1}"
                    id = stable_id("json", written, str(number))
                    yield _parsed(written, id, place, str(element.index + 1), size)
            except JsonBroken as broken:
                yield Bad(source.name, str(broken))


def _parsed(text: str, id: str, place: str, position: str, size: int) -> Item | Bad:
    try:
        memory = parse(Remember, text.encode())
    except MnemosynedError as error:
        reason = error.message.replace("the body", "the entry")
        return Bad(place, f"{reason} ({error.code})", position, size)
    identified = msgspec.structs.replace(memory, id=memory.id or id)
    return Item(identified, place, position, size)
