"""An index, as a search for words needs it: the rows that have them, the newest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

Forms = Sequence[str]
"""Ways to write one word or code; a row has it that has any of them."""
Having = Sequence[Sequence[Forms]]
"""All of these must be in a row, and of each of them any word, in any of its forms."""


class WordRows(Protocol):
    """The rows of words, among the memories that pass a question's filters."""

    @property
    def is_filtered(self) -> bool:
        """Whether some memories may not pass."""
        ...

    @property
    def few(self) -> Sequence[int] | None:
        """All rows that pass, where they are few and known; None where they are not."""
        ...

    @property
    def last(self) -> int:
        """The last row of all, whatever its words."""
        ...

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return the newest rows with these words, the newest first."""
        ...

    def passing(self, rows: Sequence[int]) -> Collection[int]:
        """Return those of these rows that pass the filters."""
        ...

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Take note of words that are asked for next, and up to how many rows of each.

        It changes no answer: an index that is far away can read them all at once.
        """
        ...
