"""Memories handed to the service in batches; those it refuses are left out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mnemosyned.domain.errors import Kind, MnemosynedError
from mnemosyned.logs import logger
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Remember, RememberMany

REFUSALS = (Kind.INVALID, Kind.CONFLICT, Kind.NOT_FOUND)
"""Kinds of errors that one memory is at fault of."""

log = logger()


def store(service: MemoryService, memories: Iterable[Remember], *, batch: int) -> int:
    """Store memories, and return how many were new. Raises what is not the fault of one."""
    stored = 0
    waiting = iter(memories)
    while chunk := list(islice(waiting, batch)):
        try:
            answers = service.call(RememberMany(chunk), background=True).memories
        except MnemosynedError as error:
            if error.kind not in REFUSALS:
                raise
            stored += sum(store_one(service, memory) for memory in chunk)
        else:
            stored += sum(answer.stored for answer in answers)
    return stored


def store_one(service: MemoryService, memory: Remember) -> bool:
    """Store one memory; False where it was known, or is refused. Raises other errors."""
    try:
        return service.call(memory, background=True).stored
    except MnemosynedError as error:
        if error.kind not in REFUSALS:
            raise
        log.info("watched_memory_refused", code=error.code, session=memory.session)
        return False
