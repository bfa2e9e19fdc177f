"""The rows of words: looked up for a whole question at once, and put together here."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from mnemosyned.domain.search.words.index import Forms, Having, WordRows
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import phrase_hashes
from mnemosyned.storage.postgres.search.filters import EVERYTHING, SqlFilter
from mnemosyned.storage.postgres.search.kept_rows import SINCE_MAX, KeptRows, Moment
from mnemosyned.storage.postgres.search.statements import (
    AnyOf,
    Asked,
    rows_of_each,
    rows_with_all,
)

BOUNDED_FROM = 10
"""A word with so many rows for each that is asked for is looked for among the newest alone."""
BOUND_SHARE = 1.5
"""So much further back than by the word's density."""
WIDENING = 8
"""By how much further, if these were too few."""
LOOKS_MAX = 8


class _Rows(NamedTuple):
    """The newest rows of a word, the newest first."""

    newest: Sequence[int]
    limit: int

    @property
    def is_all(self) -> bool:
        """Whether there are no others."""
        return len(self.newest) < self.limit


class PostgresWords(WordRows):
    """The rows of words among an owner's memories, within the filters of a question."""

    def __init__(
        self,
        session: Session,
        narrow: SqlFilter,
        everything: PostgresWords | None = None,
    ) -> None:
        """`everything` are the rows of words among all memories, where these are some of them."""
        self._session = session
        self._narrow = narrow
        if narrow.only is not None:
            few: object = list(narrow.only)
            self._narrow = SqlFilter(
                " AND m.seq = ANY(%(few)s)", {"few": few}, narrow.only
            )
        self._few = narrow.only
        self._everything = everything
        self._known: dict[Forms, _Rows] = {}
        self._expected: dict[Forms, int] = {}
        self._kept: KeptRows | None = None
        self._moment = Moment(0, 0)

    def use_kept(self, kept: KeptRows, moment: Moment) -> None:
        """Use rows that were kept, and keep those that are looked up in this snapshot."""
        self._kept, self._moment = kept, moment

    @property
    def is_filtered(self) -> bool:
        return bool(self._narrow.where)

    @property
    def few(self) -> Sequence[int] | None:
        return self._few

    @cached_property
    def last(self) -> int:
        row: int | None = self._session.scalar(
            "SELECT seq FROM memory WHERE owner = %(owner)s AND content != '' "
            "ORDER BY seq DESC LIMIT 1"
        )
        return row or 0

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        for word, limit in asked:
            forms = tuple(word)
            if self._rows(forms, limit) is None:
                self._expected[forms] = max(limit, self._expected.get(forms, 0))

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        if len(having) == 1 and len(having[0]) == 1:
            return self._newest_of(tuple(having[0][0]), limit)
        known = [self._all_with_any(words) for words in having]
        rows = [found for found in known if found is not None]
        if len(rows) == len(known):
            return sorted(set.intersection(*rows), reverse=True)[:limit]
        parts = [
            self._any_of(form for forms in words for form in forms) for words in having
        ]
        return newest_with_all(self._session, parts, self._narrow, limit=limit)

    def passing(self, rows: Sequence[int]) -> Collection[int]:
        found = self._session.execute(
            "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s "
            f"AND m.seq = ANY(%(rows)s){self._narrow.where}",
            rows=list(rows),
            **self._narrow.values,
        )
        return [seq for (seq,) in found.fetchall()]

    def _newest_of(self, forms: Forms, limit: int) -> Sequence[int]:
        rows = self._rows(forms, limit)
        if rows is None:
            self._expected[forms] = max(limit, self._expected.get(forms, 0))
            self._look_up()
            rows = self._known[forms].newest
        return rows[:limit]

    def _rows(self, forms: Forms, limit: int) -> Sequence[int] | None:
        """The newest rows of a word, if so many are known."""
        known = self._known.get(forms)
        if known and (known.is_all or known.limit >= limit):
            return known.newest
        found = self._kept_rows(forms, limit) or self._among_few(forms)
        if found is None:
            return None
        self._known[forms] = found
        return found.newest

    def _kept_rows(self, forms: Forms, limit: int) -> _Rows | None:
        """The rows of a word that are kept, with those that have come since; None if too few are."""
        if self._kept is None:
            return None
        word = self._any_of(forms)
        kept = self._kept.of(word, self._moment)
        if kept is None or not kept.has(limit):
            return None
        rows, is_all = kept.rows, kept.is_all
        if kept.at != self._moment:
            since = Asked(word, SINCE_MAX, above=kept.at.last)
            (parts,) = rows_of_each(self._session, [since], self._narrow, newest=True)
            most = sys.maxsize if is_all else len(rows)
            rows = [*_merged(parts, SINCE_MAX), *rows][:most]
            self._kept.keep(word, rows, self._moment, is_all=is_all)
        return _Rows(rows, len(rows) + is_all)

    def _among_few(self, forms: Forms) -> _Rows | None:
        """The rows of a word among the few that pass, if all of its rows are known."""
        if self._few is None or self._everything is None:
            return None
        everywhere = self._everything._known.get(forms)  # noqa: SLF001 of this class
        if everywhere is None or not everywhere.is_all:
            return None
        few = frozenset(self._few)
        rows = [seq for seq in everywhere.newest if seq in few]
        return _Rows(rows, len(rows) + 1)

    def _all_with_any(self, words: Sequence[Forms]) -> set[int] | None:
        """All rows of any of these words, if they are known."""
        found: set[int] = set()
        for forms in words:
            known = self._known.get(tuple(forms))
            if known is None or not known.is_all:
                return None
            found.update(known.newest)
        return found

    def _look_up(self) -> None:
        """Look up all that is expected."""
        expected, self._expected = self._expected, {}
        asked = {
            forms: Asked(self._any_of(forms), limit)
            for forms, limit in expected.items()
        }
        found = rows_of_each(
            self._session, list(asked.values()), self._narrow, newest=False
        )
        common: dict[Forms, Asked] = {}
        for (forms, what), parts in zip(asked.items(), found, strict=True):
            if any(len(rows) >= what.most for rows in parts):
                common[forms] = what._replace(above=self._bound(parts, what.most))
            else:
                self._learn(forms, what, _merged(parts, what.most))
        for _ in range(LOOKS_MAX):
            common = self._look_up_newest(common)
            if not common:
                break

    def _look_up_newest(self, asked: dict[Forms, Asked]) -> dict[Forms, Asked]:
        """Look up the newest rows of common words; return where too few were looked at."""
        bounded = {forms: what for forms, what in asked.items() if what.above}
        unbounded = {forms: what for forms, what in asked.items() if not what.above}
        # Apart: one with no bound would have the others' statement read the whole table.
        found = [*self._each_newest(unbounded), *self._each_newest(bounded)]
        again: dict[Forms, Asked] = {}
        for forms, what, rows in found:
            if len(rows) < what.most and what.above:
                further = self.last - WIDENING * (self.last - what.above)
                again[forms] = what._replace(above=max(0, further))
            else:
                self._learn(forms, what, rows)
        return again

    def _each_newest(
        self, asked: dict[Forms, Asked]
    ) -> list[tuple[Forms, Asked, Sequence[int]]]:
        """Each of these with its newest rows."""
        if not asked:
            return []
        found = rows_of_each(
            self._session, list(asked.values()), self._narrow, newest=True
        )
        return [
            (forms, what, _merged(parts, what.most))
            for (forms, what), parts in zip(asked.items(), found, strict=True)
        ]

    def _learn(self, forms: Forms, asked: Asked, newest: Sequence[int]) -> None:
        rows = self._known[forms] = _Rows(newest, asked.most)
        if self._kept:
            self._kept.keep(asked.any_of, newest, self._moment, is_all=rows.is_all)

    def _bound(self, parts: Sequence[Sequence[int]], most: int) -> int:
        """Return a row after which there may be as many rows as are asked for."""
        span = min(max(rows) - min(rows) for rows in parts if len(rows) >= most) + 1
        if self.last <= BOUNDED_FROM * span:
            return 0
        return max(0, self.last - round(BOUND_SHARE * span))

    def _any_of(self, forms: Iterable[str]) -> AnyOf:
        owner = self._session.owner
        return AnyOf.of(tuple(phrase_hashes(owner, form)) for form in forms)


def newest_with_all(
    session: Session, having: Sequence[AnyOf], narrow: SqlFilter, *, limit: int
) -> list[int]:
    """The newest rows that have one of each of these; in their order only if they are many."""
    rows = rows_with_all(session, having, narrow, limit=limit, order="")
    if len(rows) >= limit:
        return rows_with_all(session, having, narrow, limit=limit, order="DESC")
    return sorted(rows, reverse=True)


def _merged(parts: Sequence[Sequence[int]], most: int) -> list[int]:
    return sorted({seq for rows in parts for seq in rows}, reverse=True)[:most]


def all_words(session: Session) -> PostgresWords:
    """The rows of words among all of an owner's memories."""
    return PostgresWords(session, EVERYTHING)
