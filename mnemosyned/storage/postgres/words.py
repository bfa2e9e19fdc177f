"""Rows of a question's words among an owner's memories, and the newest rows with several words."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property, partial
from itertools import chain
from typing import NamedTuple

from mnemosyned.search.words import Forms, Having, WordRows
from mnemosyned.storage.common.listing import Filter
from mnemosyned.storage.postgres import postings
from mnemosyned.storage.postgres.session import PostgresSession

BOUNDED_FROM = 10
"""For a word with this many times the rows asked for, only the newest memories are searched."""
BOUND_SHARE = 1.5
"""Factor of how far back the search goes, relative to the word's density."""
WIDENING = 8
"""Factor by which the search goes further back if it found too few rows."""
LOOKS_MAX = 8


class _WordRows(NamedTuple):
    """The newest rows of a word, newest first, as many as a look-up limit allowed."""

    newest: Sequence[int]
    limit: int

    @property
    def is_all(self) -> bool:
        """Whether the rows are all rows that have the word."""
        return len(self.newest) < self.limit


class PostgresWords(WordRows):
    """The rows of words among an owner's memories, within the filters of a question."""

    def __init__(
        self,
        session: PostgresSession,
        narrow: Filter,
        everything: PostgresWords | None = None,
    ) -> None:
        """Look up words within the filter `narrow`; `everything`, if given, knows rows in all memories."""
        self._session = session
        self._narrow = narrow
        if narrow.only is not None:
            self._narrow = narrow._replace(
                text=" AND m.seq = ANY(%(few)s)", values={"few": list(narrow.only)}
            )
        self._within = {postings.WORDS: self._narrow}
        self.is_filtered = bool(self._narrow.text)
        self.rows_if_few = narrow.only
        self._everything = everything
        self._known_rows: dict[Forms, _WordRows] = {}
        self._expected: dict[Forms, int] = {}
        self._any_of = cache(partial(postings.AnyOf.from_forms, session.owner))
        """Returns the look-up of a word's forms: each word is asked for several times."""
        self._kept: postings.RowCache | None = None
        self._moment = postings.Moment(0, 0)

    def use_cache(self, kept: postings.RowCache, moment: postings.Moment) -> None:
        """Use and fill the cache `kept` of rows; `moment` is the state of words in this snapshot."""
        self._kept, self._moment = kept, moment

    @cached_property
    def last(self) -> int:
        """The highest row number of all memories."""
        row: int | None = self._session.scalar(
            "SELECT seq FROM memory WHERE owner = %(owner)s AND content != '' "
            "ORDER BY seq DESC LIMIT 1"
        )
        return row or 0

    def prefetch(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Read the rows of all these pairs of words and limit at once, for coming calls of `newest`."""
        for word, limit in asked:
            forms = tuple(word)
            if self._newest_known(forms, limit) is None:
                self._expected[forms] = max(limit, self._expected.get(forms, 0))

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return up to `limit` of the newest rows with a word of each part of `having`, newest first."""
        if len(having) == 1 and len(having[0]) == 1:
            forms = tuple(having[0][0])
            newest = self._newest_known(forms, limit)
            if newest is None:
                self._expected[forms] = max(limit, self._expected.get(forms, 0))
                self._look_up_expected()
                newest = self._known_rows[forms].newest
            return newest[:limit]
        known = [
            [self._known_rows.get(tuple(forms)) for forms in words] for words in having
        ]
        if all(rows and rows.is_all for words in known for rows in words):
            every = [
                {seq for rows in words if rows for seq in rows.newest}
                for words in known
            ]
            return sorted(set.intersection(*every), reverse=True)[:limit]
        parts = [
            postings.AnyOf.from_forms(self._session.owner, chain.from_iterable(words))
            for words in having
        ]
        return newest_with_all(self._session, parts, self._narrow, limit=limit)

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        """Return those of the rows that pass the question's filters."""
        found = self._session.execute(
            "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s "
            f"AND m.seq = ANY(%(rows)s){self._narrow.text}",
            rows=list(rows),
            **self._narrow.values,
        )
        return [seq for (seq,) in found.fetchall()]

    def _newest_known(self, forms: Forms, limit: int) -> Sequence[int] | None:
        """Return a word's known rows, newest first; None if some of its newest `limit` rows are not known."""
        known = self._known_rows.get(forms)
        if known and (known.is_all or known.limit >= limit):
            return known.newest
        found = self._cached_rows(forms, limit) or self._rows_among_few(forms)
        if found is None:
            return None
        self._known_rows[forms] = found
        return found.newest

    def _cached_rows(self, forms: Forms, limit: int) -> _WordRows | None:
        """Return a word's cached rows and newer ones; None if some of the newest `limit` are unknown."""
        if self._kept is None:
            return None
        word = self._any_of(forms)
        kept = self._kept.find(word, self._moment)
        if kept is None or not kept.has_newest(limit):
            return None
        rows, is_all = kept.rows, kept.is_all
        if kept.at != self._moment:
            since = postings.Asked(word, postings.SINCE_MAX, above=kept.at.last)
            (parts,) = postings.look_up_rows(
                self._session, [since], self._within, newest=True
            )
            most = sys.maxsize if is_all else len(rows)
            rows = [*merge_newest(parts, postings.SINCE_MAX), *rows][:most]
            self._kept.keep(word, rows, self._moment, is_all=is_all)
        return _WordRows(rows, len(rows) + is_all)

    def _rows_among_few(self, forms: Forms) -> _WordRows | None:
        """Return the rows of a word that pass the filter, if few rows pass and all rows of the word are known.

        Otherwise return None.
        """
        if self.rows_if_few is None or self._everything is None:
            return None
        everywhere = self._everything._known_rows.get(forms)  # noqa: SLF001 of this class
        if everywhere is None or not everywhere.is_all:
            return None
        few = frozenset(self.rows_if_few)
        rows = [seq for seq in everywhere.newest if seq in few]
        return _WordRows(rows, len(rows) + 1)

    def _look_up_expected(self) -> None:
        """Look up the rows of all queued words in one statement, and common words in more steps."""
        expected, self._expected = self._expected, {}
        asked = {
            forms: postings.Asked(self._any_of(forms), limit)
            for forms, limit in expected.items()
        }
        found = postings.look_up_rows(
            self._session, list(asked.values()), self._within, newest=False
        )
        common: dict[Forms, postings.Asked] = {}
        for (forms, what), parts in zip(asked.items(), found, strict=True):
            if any(len(rows) >= what.most for rows in parts):
                common[forms] = what._replace(
                    above=self._first_row_needed(parts, what.most)
                )
            else:
                self._store_newest(forms, what, merge_newest(parts, what.most))
        for _ in range(LOOKS_MAX):
            # Apart: one with no bound would have the others' statement read the whole table.
            unbounded = {key: what for key, what in common.items() if not what.above}
            bounded = {key: what for key, what in common.items() if what.above}
            newest = [
                *self._read_newest_of_each(unbounded),
                *self._read_newest_of_each(bounded),
            ]
            common = {}  # those with too few rows are looked up further back
            for forms, what, rows in newest:
                if len(rows) < what.most and what.above:
                    further = self.last - WIDENING * (self.last - what.above)
                    common[forms] = what._replace(above=max(0, further))
                else:
                    self._store_newest(forms, what, rows)
            if not common:
                break

    def _read_newest_of_each(
        self, asked: dict[Forms, postings.Asked]
    ) -> list[tuple[Forms, postings.Asked, Sequence[int]]]:
        """Look up words; for each return (word, request, the newest row numbers requested, newest first)."""
        if not asked:
            return []
        found = postings.look_up_rows(
            self._session, list(asked.values()), self._within, newest=True
        )
        return [
            (forms, what, merge_newest(parts, what.most))
            for (forms, what), parts in zip(asked.items(), found, strict=True)
        ]

    def _store_newest(
        self, forms: Forms, asked: postings.Asked, newest: Sequence[int]
    ) -> None:
        """Save the newest rows of a word for this snapshot, and in the cache if one is used."""
        rows = self._known_rows[forms] = _WordRows(newest, asked.most)
        if self._kept:
            self._kept.keep(asked.any_of, newest, self._moment, is_all=rows.is_all)

    def _first_row_needed(self, parts: Sequence[Sequence[int]], most: int) -> int:
        """Return an estimated row number above which a common word has its `most` newest rows.

        The estimate uses the density of the rows in `parts`. Return 0, for no bound, if most memories would
        be above.
        """
        span = min(max(rows) - min(rows) for rows in parts if len(rows) >= most) + 1
        if self.last <= BOUNDED_FROM * span:
            return 0
        return max(0, self.last - round(BOUND_SHARE * span))


def newest_with_all(
    session: PostgresSession,
    having: Sequence[postings.AnyOf],
    narrow: Filter,
    *,
    limit: int,
) -> list[int]:
    """Return the newest `limit` rows within `narrow` with any form of each word, newest first."""
    rows = postings.rows_with_all(session, having, narrow, limit=limit, order="")
    if len(rows) >= limit:
        return postings.rows_with_all(
            session, having, narrow, limit=limit, order="DESC"
        )
    return sorted(rows, reverse=True)


def merge_newest(parts: Sequence[Sequence[int]], most: int) -> list[int]:
    """Return the newest `most` row numbers in all lists, newest first, without repetitions."""
    return sorted({seq for rows in parts for seq in rows}, reverse=True)[:most]
