"""Statements over the indexes of words, and a cache of their rows between questions.

These are the only statements that compare index terms: few shapes, each with its values bound. They
read views of the tables, which the index of words serves under row-level security too, and no other
index (see the migration); the tables themselves where the key names rows.

An index of PostgreSQL knows where a row is, but not its number: to read it takes half a microsecond,
and up to 8,000 are read for a question. That is most of what a question takes longer than on SQLite;
from the cache they come in a tenth of that. The cache contains numbers, no words, and is true for one
state of an owner's words: `rewordings` counts changes and deletions. Newer rows are looked up alone.
If a word has more rows than a question reads, the newest are cached: finding them among a million
memories takes up to a fifth of a second.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Literal, NamedTuple

from mnemosyned.storage.common.listing import Filter
from mnemosyned.storage.postgres.fulltext import phrase_hashes
from mnemosyned.storage.postgres.session import PostgresSession

Table = Literal["memory", "episode"]
Column = Literal["words", "grams"]
Source = tuple[Table, Column]
"""An index of words."""
WORDS: Source = ("memory", "words")
Phrase = tuple[int, ...]
"""Index terms of a word: one, or several in order for a code."""

_TOGETHER = "strpos(' ' || array_to_string({column}, ' ') || ' ', {written}) > 0"
_NAMES = {"memory": "m", "episode": "e"}
"""Aliases of the tables in filters."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Terms and phrases to look up; a row needs to contain one of them."""

    terms: tuple[int, ...]
    phrases: tuple[Phrase, ...]

    @classmethod
    def from_forms(cls, owner: int, forms: Iterable[str]) -> AnyOf:
        """Return the look-up of rows with any form of a word, hashed for the index of `owner`."""
        return cls.from_phrases(tuple(phrase_hashes(owner, form)) for form in forms)

    @classmethod
    def from_phrases(cls, phrases: Iterable[Phrase]) -> AnyOf:
        """Return the look-up of rows with any of these phrases; single terms are kept apart."""
        distinct = [phrase for phrase in dict.fromkeys(phrases) if phrase]
        return cls(
            tuple(phrase[0] for phrase in distinct if len(phrase) == 1),
            tuple(phrase for phrase in distinct if len(phrase) > 1),
        )


class Asked(NamedTuple):
    """A word to look up, with limits on the number and the position of its rows."""

    any_of: AnyOf
    most: int
    above: int = 0
    """Only rows after this one."""
    source: Source = WORDS


def phrase_text(phrase: Phrase) -> str:
    """Return a phrase's term numbers as text, each between spaces."""
    return f" {' '.join(map(str, phrase))} "


class _Lookup(NamedTuple):
    """One part of a word to look up: rows with any of its terms, or with all as a phrase."""

    number: int
    """Of what is asked."""
    terms: tuple[int, ...]
    is_phrase: bool


def look_up_rows(
    session: PostgresSession,
    asked: Sequence[Asked],
    narrows: Mapping[Source, Filter],
    *,
    newest: bool,
) -> list[list[list[int]]]:
    """Return the row numbers of several words, looked up together, each within the filter of its index.

    For each word there is one list for its single terms and one for each longer phrase. With `newest` they are
    the newest rows, newest first; else any rows, in no order.
    """
    found: list[list[list[int]]] = [[] for _ in asked]
    lookups: list[_Lookup] = []
    for number, what in enumerate(asked):
        if what.any_of.terms:
            lookups.append(_Lookup(number, what.any_of.terms, is_phrase=False))
        lookups += [
            _Lookup(number, phrase, is_phrase=True) for phrase in what.any_of.phrases
        ]
    if not lookups:
        return found
    statement = _rows_statement(
        narrows,
        bounded=any(what.above for what in asked),
        phrases=any(each.is_phrase for each in lookups),
        newest=newest,
    )
    sources = {source: number for number, source in enumerate(narrows)}
    # All terms are in one array, with the bounds of each look-up.
    ends = list(accumulate((len(each.terms) for each in lookups), initial=0))
    rows_found = session.execute(
        statement,
        numbers=[each.number for each in lookups],
        firsts=[end + 1 for end in ends[:-1]],
        lasts=ends[1:],
        mosts=[asked[each.number].most for each in lookups],
        aboves=[asked[each.number].above for each in lookups],
        texts=[phrase_text(each.terms) if each.is_phrase else "" for each in lookups],
        sources=[sources[asked[each.number].source] for each in lookups],
        terms=[term for each in lookups for term in each.terms],
        **{
            name: value
            for each in narrows.values()
            for name, value in each.values.items()
        },
    )
    for number, rows in rows_found:
        found[number].append(rows)
    return found


def _rows_statement(
    narrows: Mapping[Source, Filter], *, bounded: bool, phrases: bool, newest: bool
) -> str:
    """Return the SQL that looks up the rows of any number of words in indexes, each within its filter.

    `bounded` tells that a word has a lowest row, `phrases` that a word has several terms in order,
    and `newest` that the newest rows are wanted, newest first.
    """
    held, selects = "", list[str]()
    for number, ((table, column), narrow) in enumerate(narrows.items()):
        where = narrow.text
        name = _NAMES[table]
        home = table if bounded else f"{table}_index"
        if narrow.only is not None:
            held = (
                "WITH held AS MATERIALIZED (SELECT m.owner, m.seq, m.words FROM memory AS m "
                f"WHERE m.owner = %(owner)s{where}) "
            )
            home, where = "held", ""
        above = f"AND {name}.seq > a.above " if bounded else ""
        order = f"ORDER BY {name}.seq DESC " if newest else ""
        select = (
            f"SELECT a.number, ARRAY(SELECT {name}.seq FROM {home} AS {name} "
            f"WHERE {name}.owner = %(owner)s {above}"
            f"AND {name}.{column} {{match}} (%(terms)s::int[])[a.low:a.high]{{together}}"
            f"{where} {order}LIMIT a.most) "
            "FROM unnest(%(numbers)s::int[], %(firsts)s::int[], %(lasts)s::int[], %(mosts)s::int[], "
            "%(aboves)s::bigint[], %(texts)s::text[], %(sources)s::int[]) "
            "AS a (number, low, high, most, above, written, source) "
            f"WHERE a.source = {number} AND a.written {{is_word}} ''"
        )
        selects.append(select.format(match="&&", together="", is_word="="))
        if phrases:
            near = _TOGETHER.format(column=f"{name}.{column}", written="a.written")
            phrase = select.format(match="@>", together=f" AND {near}", is_word="!=")
            selects.append(phrase)
    return held + " UNION ALL ".join(selects)


def rows_with_all(
    session: PostgresSession,
    having: Sequence[AnyOf],
    narrow: Filter,
    *,
    limit: int,
    order: Literal["", "ASC", "DESC"],
) -> list[int]:
    """Return up to `limit` rows within `narrow` with any form of each word, by `order` if given."""
    where, values = _all_words_conditions(having, "m.words")
    ordered = f"ORDER BY m.seq {order} " if order else ""
    table = "memory" if narrow.only is not None else "memory_index"
    rows = session.execute(
        f"SELECT m.seq FROM {table} AS m WHERE m.owner = %(owner)s{where}{narrow.text} "
        f"{ordered}LIMIT %(most)s",
        most=limit,
        **values,
        **narrow.values,
    )
    return [seq for (seq,) in rows.fetchall()]


def _all_words_conditions(
    having: Sequence[AnyOf], column: str
) -> tuple[str, dict[str, object]]:
    """Return conditions on a column of index terms for any form of each word, with bind values."""
    where, values = "", dict[str, object]()
    for at, any_of in enumerate(having):
        either: list[str] = []
        if any_of.terms:
            either.append(f"{column} && %(terms_{at})s::int[]")
            values[f"terms_{at}"] = list(any_of.terms)
        for number, phrase in enumerate(any_of.phrases):
            name = f"phrase_{at}_{number}"
            near = _TOGETHER.format(column=column, written=f"%({name}_text)s::text")
            either.append(f"({column} @> %({name})s::int[] AND {near})")
            values |= {name: list(phrase), f"{name}_text": phrase_text(phrase)}
        where += f" AND ({' OR '.join(either) or 'false'})"
    return where, values


NUMBERS_MAX = 1_000_000
"""Row numbers that are cached, of all memories together: 8 MB."""
_ENTRY_NUMBERS = 32
"""Size of a cache entry without its row numbers, as a number of row numbers."""
KEPT_FROM = 200
"""Minimum rows of a word that are cached."""
SINCE_MAX = 1_000
"""Maximum memories stored since a word was cached; with more, the word is looked up again."""


class Moment(NamedTuple):
    """The state of an owner's words in a snapshot."""

    rewordings: int
    last: int
    """The last number that was given to a memory."""


class CachedRows(NamedTuple):
    """Rows of a word at a moment, the newest first."""

    rows: Sequence[int]
    at: Moment
    is_all: bool
    """Whether the word had no others."""

    @property
    def size(self) -> int:
        """The size of the entry in the cache: the count of its numbers."""
        return len(self.rows) + _ENTRY_NUMBERS

    def has_newest(self, limit: int) -> bool:
        """Return whether the cached rows include the newest `limit` rows of the word, or all."""
        return self.is_all or len(self.rows) >= limit


class RowCache:
    """Cached rows of words in one memory; for any thread.

    If the cache of all memories is full, the least recently used rows are dropped first.
    """

    _all: ClassVar[OrderedDict[tuple[RowCache, AnyOf], CachedRows]] = OrderedDict()
    """Of all memories; those used last are at the end."""
    _numbers: ClassVar[int] = 0
    """Their size, in numbers."""
    _changing: ClassVar[threading.Lock] = threading.Lock()

    def find(self, word: AnyOf, at: Moment) -> CachedRows | None:
        """Return the cached rows of a word as of the moment `at` or shortly before, or None."""
        with self._changing:
            kept = self._all.get((self, word))
            if kept is None or kept.at.rewordings != at.rewordings:
                return None
            self._all.move_to_end((self, word))
        if kept.at.last > at.last:
            # What others have asked since is not in this snapshot yet.
            rows = [seq for seq in kept.rows if seq <= at.last]
            return CachedRows(rows, at, kept.is_all)
        return kept if at.last - kept.at.last <= SINCE_MAX else None

    def keep(
        self, word: AnyOf, rows: Iterable[int], at: Moment, *, is_all: bool
    ) -> None:
        """Store a word's rows, newest first, as of the moment `at`, if they are many.

        Newer or longer cached rows stay. `is_all` tells whether the word has no other rows.
        """
        kept = CachedRows(array("q", rows), at, is_all)
        if len(kept.rows) < KEPT_FROM:
            return
        with self._changing:
            known = self._all.get((self, word))
            if known and known.at.rewordings >= at.rewordings:
                is_newer = known.at.rewordings > at.rewordings
                if is_newer or (
                    known.at >= at and known.has_newest(len(kept.rows) + is_all)
                ):
                    return
            self._all.pop((self, word), None)
            self._all[self, word] = kept
            RowCache._numbers += kept.size - (known.size if known else 0)
            while RowCache._numbers > NUMBERS_MAX:
                _, dropped = self._all.popitem(last=False)
                RowCache._numbers -= dropped.size
