"""Work done in short transactions: what to say when one in the middle fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mnemosyned.domain.errors import MnemosynedError, PartlyDone, StorageFailed

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 100
"""Memories changed, or read for a preview, in one transaction; `remember` waits for no more."""


def in_steps(
    values: Sequence[T],
    size: int,
    step: Callable[[Sequence[T]], R],
    *,
    done: Callable[[list[R]], str],
) -> list[R]:
    """Do the work chunk by chunk; each chunk is whole or untouched.

    Where one fails after others were done, `done` puts those into words. Raises `PartlyDone` then,
    and the error itself where the first one failed.
    """
    results: list[R] = []
    try:
        for chunk in chunks(values, size):
            result = step(chunk)
            results.append(result)
    except MnemosynedError as error:
        if not results:
            raise
        reason = error.reason if isinstance(error, StorageFailed) else error.message
        raise PartlyDone(
            f"{done(results)}, the others were not. Send the request again for the others: "
            f"{reason}",
            reason=reason,
        ) from error
    return results


def chunks(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """The values in pieces of a size."""
    return [values[start : start + size] for start in range(0, len(values), size)]
