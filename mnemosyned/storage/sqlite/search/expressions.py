"""FTS5 expressions of words: the one place where words become syntax."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(term: str) -> str:
    """A term as an FTS5 string, none of it read as syntax."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Iterable[str]) -> str:
    """An FTS5 expression for any of the terms."""
    return " OR ".join(map(quoted, terms))
