"""Records that a library parses: whatever a broken one makes it raise is a bad record."""

from __future__ import annotations

from collections.abc import Callable

from mnemosyned.importers.importer import Bad, Item
from mnemosyned.verbs.memories import Remember

PARSE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What random changes of mails, calendars and vCards make their parsers raise: also `OSError`, as a
time zone may be named like a folder, and `StopIteration`, as a list may be empty."""


def parsed(
    parse: Callable[[], Remember | None], place: str, position: str, size: int
) -> Item | Bad | None:
    """Return the record of what is parsed; None where that is no memory."""
    try:
        memory = parse()
    except PARSE_ERRORS as error:
        reason = f"it cannot be read: {error or type(error).__name__}"
        return Bad(place, reason, position, size)
    return Item(memory, place, position, size) if memory else None
