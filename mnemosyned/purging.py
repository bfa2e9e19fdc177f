"""`Purge`: what was forgotten leaves the file too, and an honest word where it could not yet."""

from __future__ import annotations

from mnemosyned.domain.errors import NotFound, NotPurged, StorageFailed
from mnemosyned.domain.ports import MemoryStore
from mnemosyned.logs import logger

WORDS_REMAIN = (
    "the words of what is forgotten can still be read in the file until the next cycle, or the "
    "next forget, has purged them"
)
ANOTHER_READS = "another program reads the database: let it end, then try again"

log = logger()


class Purge:
    """Presses deleted words out of one store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def run(self) -> bool:
        """What was forgotten leaves the log's columns, the index segments and the log file.

        What is cut short is still due: whoever forgets next, or the next cycle, finishes it.
        False where another program reads the file. Raises `StorageFailed`.
        """
        sessions, sources = self._store.unborne_names()
        if sessions or sources:
            self._store.forget_names(sessions=sessions, sources=sources)
        return self._store.scrub()

    def run_due(self, *, due: bool = False) -> bool:
        """Run if it is `due`, or still is from earlier. Raises `StorageFailed`."""
        return self.run() if due or self._store.scrub_due() else True

    def attempt(self, *, due: bool) -> tuple[bool, str]:
        """After something was forgotten: whether all of it left the file, and why not."""
        try:
            return self.run_due(due=due), ""
        except StorageFailed as error:
            log.exception("purge_put_off")
            return False, f"{WORDS_REMAIN}: {error.reason}"

    def finish_earlier(self, unknown: NotFound) -> None:
        """Purge what an earlier call forgot, for whoever repeats it. Raises `NotPurged`."""
        complete, problem = self.attempt(due=False)
        if not complete:
            problem = problem or f"{WORDS_REMAIN}: {ANOTHER_READS}"
            raise NotPurged(
                f"{unknown.message}. If it was forgotten before: {problem}", field=unknown.field
            ) from unknown
