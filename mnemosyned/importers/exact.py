"""Groups of lines of an export handed to the daemon, which stores them exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from mnemosyned.domain.errors import InvalidRequest, MalformedJson, MnemosynedError
from mnemosyned.domain.exchange import Restored
from mnemosyned.importers.importer import Bad, Group

BATCH_LINES = 1_000
BATCH_BYTES = 2 << 20
_PLACE = re.compile(r"lines\[(\d+)\]")


class Restorer(Protocol):
    """Carries lines of an export to the daemon."""

    def restore(self, lines: bytes) -> Restored:
        """Have lines stored in one transaction."""
        ...


class ExactDelivery:
    """Collects groups into batches and sends each when it is full."""

    def __init__(
        self,
        restorer: Restorer,
        *,
        on_answer: Callable[[Sequence[Group], Restored], None],
        on_refusal: Callable[[Bad], None],
    ) -> None:
        """Make a delivery; `on_answer` gets the groups of an acknowledged batch."""
        self._restorer = restorer
        self._on_answer = on_answer
        self._on_refusal = on_refusal
        self._batch: list[Group] = []
        self._lines = 0
        self._bytes = 0

    def add(self, group: Group) -> None:
        """Add a group. Raises errors that are not the fault of a line."""
        full = self._lines + group.lines > BATCH_LINES
        if self._batch and (full or self._bytes + len(group.data) > BATCH_BYTES):
            self.flush()
        self._batch.append(group)
        self._lines += group.lines
        self._bytes += len(group.data)

    def flush(self) -> None:
        """Send what is left; a group with a line that the daemon refuses is left out."""
        batch, self._batch = self._batch, []
        self._lines = self._bytes = 0
        while batch:
            try:
                restored = self._restorer.restore(
                    b"".join(group.data for group in batch)
                )
            except (InvalidRequest, MalformedJson) as error:
                refused = batch.pop(_at_fault(batch, error))
                reason = f"{error.message} ({error.code})"
                self._on_refusal(Bad(refused.place, reason, refused.position))
            else:
                self._on_answer(batch, restored)
                return


def _at_fault(batch: Sequence[Group], error: MnemosynedError) -> int:
    """Return which group has the line that an error names. Raises the error if it names none."""
    place = _PLACE.match(error.field or "")
    if place is None:
        raise error
    left = int(place[1])
    for index, group in enumerate(batch):
        if left < group.lines:
            return index
        left -= group.lines
    raise error
