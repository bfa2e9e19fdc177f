"""A note that was edited: its new parts take the place of those that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mnemosyned.domain.errors import NotFound
from mnemosyned.importers.importer import stable_id
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Get, Remember
from mnemosyned.watch.delivery import store_one


@dataclass(slots=True)
class NoteChange:
    """The changes in the store when a note has these parts now."""

    memories: dict[str, str] = field(default_factory=dict)
    """Each part by its id in the format, and the id of its memory."""
    stored: int = 0


def take_over(
    service: MemoryService,
    parts: list[Remember],
    before: Mapping[str, str],
    *,
    version: str,
) -> NoteChange:
    """Store the parts of a note that are new, each in place of one that is gone.

    Where more are gone than are new, the first part that remains takes their place too; of a note
    that is empty the memories stay. Raises what storing raises.
    """
    change = NoteChange()
    by_part = {str(part.id): part for part in parts}
    gone = [memory for part, memory in before.items() if part not in by_part]
    for id, part in by_part.items():
        if id in before:
            change.memories[id] = before[id]
            continue
        named = _with_own_id(service, part, version) if before else part
        replaced = gone.pop(0) if gone else None
        change.stored += _store(service, named, replaced)
        change.memories[id] = str(named.id)
    if change.memories and gone:
        id = next(iter(change.memories))
        heir = msgspec.structs.replace(by_part[id], id=change.memories[id])
        for memory in gone:
            _store(service, heir, memory)
    return change


def _with_own_id(service: MemoryService, part: Remember, version: str) -> Remember:
    """Give words that were replaced once and are back an id of their own."""
    try:
        known = service.call(Get(str(part.id)), background=True).memory
    except NotFound:
        return part
    if known is None or known.superseded_at is None:
        return part
    return msgspec.structs.replace(part, id=stable_id(str(part.id), version))


def _store(service: MemoryService, part: Remember, replaced: str | None) -> bool:
    if replaced is None or replaced == part.id:
        return store_one(service, part)
    return store_one(
        service, msgspec.structs.replace(part, supersedes=replaced)
    ) or store_one(service, part)  # what it replaces may be forgotten
