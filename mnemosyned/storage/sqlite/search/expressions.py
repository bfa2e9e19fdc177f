"""FTS5 expressions of words: the one place where words become syntax."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mnemosyned.domain.search.words.index import Having


def quoted(term: str) -> str:
    """A term as an FTS5 string, none of it read as syntax."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Iterable[str]) -> str:
    """An FTS5 expression for any of the terms."""
    return " OR ".join(map(quoted, terms))


def all_of(having: Having) -> str:
    """An FTS5 expression for rows that have each of these, in any form of any word of it."""
    if len(having) == 1:
        return any_of(chain.from_iterable(having[0]))
    return " AND ".join(f"({any_of(chain.from_iterable(words))})" for words in having)
