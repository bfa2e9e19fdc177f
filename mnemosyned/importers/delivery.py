"""Items handed to the daemon in batches; those it refuses are set aside."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mnemosyned.domain.errors import Kind, MalformedJson, MnemosynedError
from mnemosyned.importers.importer import Bad, Item
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberedMany, RememberMany

BATCH_ITEMS = 500
BATCH_CHARS = 2_000_000
"""Characters of a batch: as JSON they stay below the daemon's limit for a body."""
_PLACE = re.compile(r"memories\[(\d+)\]\.?")


class Delivery:
    """Collects items into batches and sends each when it is full."""

    def __init__(
        self,
        caller: Caller,
        *,
        on_answer: Callable[[Sequence[Item], RememberedMany], None],
        on_refusal: Callable[[Bad], None],
        check_only: bool = False,
    ) -> None:
        """Make a delivery; with `check_only` the daemon checks every item and stores none.

        `on_answer` gets the items of an acknowledged batch, refused ones left out.
        """
        self._caller = caller
        self._on_answer = on_answer
        self._on_refusal = on_refusal
        self._check_only = check_only
        self._batch: list[Item] = []
        self._chars = 0

    def add(self, item: Item) -> None:
        """Add an item. Raises errors that are not the fault of an item."""
        metadata = item.memory.metadata
        self._chars += len(item.memory.content) + (
            len(str(metadata)) if metadata else 0
        )
        self._batch.append(item)
        if len(self._batch) >= BATCH_ITEMS or self._chars >= BATCH_CHARS:
            self.flush()

    def flush(self) -> None:
        """Send what is left."""
        batch, self._batch, self._chars = self._batch, [], 0
        while batch:
            request = RememberMany(
                [item.memory for item in batch], dry_run=self._check_only
            )
            try:
                answer = self._caller.call(request)
            except MnemosynedError as error:
                refused = batch.pop(_index_at_fault(error, len(batch)))
                self._on_refusal(_refusal(refused, error))
            else:
                self._on_answer(batch, answer)
                return


def _index_at_fault(error: MnemosynedError, count: int) -> int:
    """Return which of some items an error is about. Raises the error if it is about none."""
    place = _PLACE.match(error.field or "")
    if isinstance(error, MalformedJson):
        raise error
    if place:
        return int(place[1])
    if count == 1 and error.kind in (Kind.INVALID, Kind.CONFLICT) and error.field:
        return 0  # a batch of one is named without its number
    raise error


def _refusal(item: Item, error: MnemosynedError) -> Bad:
    reason = _PLACE.sub("", error.message)
    return Bad(item.place, f"{reason} ({error.code})", item.position)
