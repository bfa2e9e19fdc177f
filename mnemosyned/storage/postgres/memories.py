"""Memories by their rows: new ones, messages known by their words, and moves to the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any

from mnemosyned.errors import DatabaseUnreachable, MemoryBusy
from mnemosyned.fairness import pause_for_other_owners
from mnemosyned.memory import ports, values
from mnemosyned.storage.common import records, sleep, state
from mnemosyned.storage.postgres.pool import PostgresEngine
from mnemosyned.storage.postgres.session import (
    OF_IDS,
    PostgresSession,
    Values,
    detail_texts,
    memory_values,
)


def detail_columns(originals: Iterable[Values]) -> dict[str, list[str | None]]:
    """Return the columns `details` and `secrets`: a JSON text per original, or None without values."""
    texts = [detail_texts(original) for original in originals]
    return {
        "details": [plain for plain, _ in texts],
        "secrets": [secret for _, secret in texts],
    }


_TYPES = {
    values.FieldKind.TEXT: "text",
    values.FieldKind.NUMBER: "float8",
    values.FieldKind.FLAG: "bool",
    values.FieldKind.TIME: "timestamptz",
    values.FieldKind.JSON: "text",
}
_ARRAYS = {
    **{field.column: _TYPES[field.kind] for field in values.ROW_FIELDS},
    "content_hash": "bigint",
}
_COLUMNS = ", ".join(_ARRAYS)
_GIVEN = ", ".join(f"%({name})s::{kind}[]" for name, kind in _ARRAYS.items())
_VALUES = ", ".join(f"%({name})s::{kind}" for name, kind in _ARRAYS.items())
_INSERTED = (
    f"INSERT INTO memory (owner, {_COLUMNS}, words, grams, seq) "
    f"SELECT o.owner, {', '.join(f'r.{name}' for name in _ARRAYS)}, "
    "r.words::integer[], r.grams::integer[], "
)
INSERT_MEMORIES = (
    f"{_INSERTED} r.seq FROM owner AS o "
    f"CROSS JOIN unnest({_GIVEN}, %(words)s::text[], %(grams)s::text[], %(seq)s::bigint[]) "
    f"AS r ({_COLUMNS}, words, grams, seq) WHERE o.owner = %(owner)s"
)
"""All rows in one statement; arrays within arrays go as text, as their lengths differ."""
# The numbers of new memories come from the owner's row: nobody waits for them, and nothing is
# inserted for an owner that was removed.
_COUNT_NEW = (
    "UPDATE owner SET last_memory = last_memory + %(count)s, "
    "working_count = working_count + %(count)s, "
    "working_characters = working_characters + %(characters)s WHERE owner = %(owner)s "
    "RETURNING last_memory - %(count)s, working_count - %(count)s"
)
_INSERT_ONE = (
    "WITH counted AS (UPDATE owner SET last_memory = last_memory + 1, "
    "working_count = working_count + 1, "
    "working_characters = working_characters + %(characters)s WHERE owner = %(owner)s "
    "RETURNING owner, last_memory, working_count), "
    f"kept AS (INSERT INTO memory (owner, {_COLUMNS}, words, grams, seq) "
    f"SELECT o.owner, {_VALUES}, %(words)s::integer[], %(grams)s::integer[], o.last_memory "
    "FROM counted AS o RETURNING owner, seq, created_at), "
    "begun AS (INSERT INTO fresh (owner, seq, created_at) "
    "SELECT k.owner, k.seq, k.created_at FROM kept AS k) "
    "SELECT o.last_memory - 1, o.working_count - 1 FROM counted AS o"
)
"""One memory by one statement, as most come; Citus would write its rows by way of another node."""
_INSERT_NEW = (
    f"{_INSERTED} o.last_memory - %(count)s + r.place FROM owner AS o "
    f"CROSS JOIN unnest({_GIVEN}, %(words)s::text[], %(grams)s::text[]) "
    f"WITH ORDINALITY AS r ({_COLUMNS}, words, grams, place) WHERE o.owner = %(owner)s"
)
_INSERT_NEW_FRESH = (
    "INSERT INTO fresh (owner, seq, created_at) "
    "SELECT o.owner, o.last_memory - %(count)s + r.place, r.created_at FROM owner AS o "
    "CROSS JOIN unnest(%(created_at)s::timestamptz[]) WITH ORDINALITY AS r (created_at, place) "
    "WHERE o.owner = %(owner)s"
)
SAID = 'm.said = hashtext(%(session)s::text COLLATE "C") # hashtext(%(content)s::text COLLATE "C")'
"""Condition for memories that may have these words in this session; the texts are then compared."""
# What was superseded or may expire does not stand for words that are said again.
SAID_BEFORE = (
    "SELECT m.id, m.created_at FROM memory AS m WHERE m.owner = %(owner)s "
    f"AND {SAID} AND m.session_id = %(session)s "
    "AND m.content = %(content)s AND m.source IS NOT DISTINCT FROM %(source)s::text "
    "AND NOT EXISTS (SELECT 1 FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.memory_seq = m.seq) ORDER BY m.created_at LIMIT 1"
)


# Ids that the product gave are no agent's own.
SAME_MESSAGE = (
    f"SELECT m.id FROM memory AS m WHERE m.owner = %(owner)s AND {SAID} "
    "AND m.session_id = %(session)s AND m.content = %(content)s "
    "AND m.source IS NOT DISTINCT FROM %(source)s::text AND m.role = %(role)s "
    "AND NOT starts_with(m.id, 'm-') AND (%(earliest)s::timestamptz IS NULL "
    "OR m.created_at BETWEEN %(earliest)s::timestamptz AND %(latest)s::timestamptz) "
    "ORDER BY EXISTS (SELECT 1 FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq), "
    "m.seq LIMIT 1"
)


class PostgresIntake(records.IntakeTransaction):
    """New memories on their way into working memory.

    The owner's row is locked before anything is read. Memories that are known to be new need no
    lock of their own: counting them takes it.
    """

    _session: PostgresSession
    _said = SAID_BEFORE
    same_message = SAME_MESSAGE

    def _insert_memories(self, memories: Sequence[values.MemoryRecord]) -> None:
        """Insert memories with tags, validity and index entries into working memory."""
        insert_new(self._session, memories)

    def _finish_intake(self) -> int:
        """Lock the owner's row; return how many memories this transaction has inserted.

        `working` has the number of working memories, to be read after the commit.
        """
        self._session.lock()
        return self._session.numbered

    @property
    def working(self) -> int:
        """The number of memories in working memory; after the commit it needs no round trip."""
        before = (self._session.locked_row or (0, 0))[1]
        return int(before) + self._session.numbered


INSERTED_AT_ONCE, INSERTS_MAX = 100, 10
"""Memories in one statement, and maximum statements for larger numbers. Between two, an owner who stores many
gives way to others, while its own other writes wait for its row."""


def insert_new(
    session: PostgresSession, memories: Sequence[values.MemoryRecord]
) -> None:
    """Insert memories in this order into working memory, with tags, validity and index entries."""
    if not memories:
        return
    rows = [memory_values(memory, session.owner) for memory in memories]
    count = len(memories)
    characters = sum(len(memory.content) for memory in memories)
    if count == 1 and not session.has_citus:
        terms = {name: _array_text(rows[0][name]) for name in ("words", "grams")}
        session.lock_by(_INSERT_ONE, **(rows[0] | terms), characters=characters)
    else:
        session.lock_by(_COUNT_NEW, count=count, characters=characters)
        size = max(INSERTED_AT_ONCE, count // INSERTS_MAX)
        for start in range(0, count, size):
            columns = values_by_column(rows[start : start + size])
            moments = columns["created_at"]
            # The end of a pipeline waits for the server, which then serves others first.
            with session.pipeline() if count > size else nullcontext():
                session.execute(_INSERT_NEW, count=count - start, **columns)
                session.execute(
                    _INSERT_NEW_FRESH, count=count - start, created_at=moments
                )
    session.numbered += count
    session.grown += count
    for place, memory in enumerate(memories):
        if memory.tags or memory.valid_until:
            seq = newest_number(session) - count + 1 + place
            state.insert_tags_and_validity(session, seq, memory)


def newest_number(session: PostgresSession) -> int:
    """Return the row number of the newest memory, which this transaction may have inserted."""
    return int((session.locked_row or (0, 0))[0]) + session.numbered


def values_by_column(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of `INSERT_MEMORIES` by column: each a list with one value per row."""
    lists = {name: [row[name] for row in rows] for name in _ARRAYS}
    lists["words"] = [_array_text(row["words"]) for row in rows]
    lists["grams"] = [_array_text(row["grams"]) for row in rows]
    return lists


def _array_text(numbers: Sequence[int] | None) -> str | None:
    """Return numbers as text such as `{1,2}` for PostgreSQL, None for None; other owners' threads run first."""
    pause_for_other_owners()
    return None if numbers is None else f"{{{','.join(map(str, numbers))}}}"


EVICT = (
    "DELETE FROM fresh AS f USING memory AS m "
    "WHERE f.owner = %(owner)s AND m.owner = %(owner)s AND m.seq = f.seq "
    f"AND {OF_IDS} AND NOT m.pinned RETURNING m.seq, m.id, length(m.content)"
)
INSERT_PLACED = (
    "INSERT INTO placed (owner, seq, episode_seq, details, secrets) SELECT o.owner, r.* "
    "FROM owner AS o CROSS JOIN unnest(%(seqs)s::bigint[], %(homes)s::bigint[], "
    "%(details)s::text[], %(secrets)s::text[]) AS r WHERE o.owner = %(owner)s"
)


class PostgresRecords(records.RecordStore):
    """A `RecordStore` of one owner in PostgreSQL."""

    _engine: PostgresEngine

    def remember(
        self, drafts: Sequence[ports.Draft], *, action: values.Action | None = None
    ) -> ports.RememberReport:
        """Store drafts by statements sent together, so as to wait less for the server; return the answers."""
        intake = PostgresIntake(drafts, action)
        with self._engine.pool.writing(self._engine.owner, at_once=True) as session:
            remembered = intake.run(session)
        return replace(remembered, working=intake.working)


PROMOTION_TRIES = 10
"""Maximum waits for the owner's row, of two seconds each, to store a group."""


class PostgresSleep(sleep.SleepStore):
    """A `SleepStore` of one owner in PostgreSQL."""

    _engine: PostgresEngine

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        """Claim the consolidation of the owner's memory among all daemons while the block runs."""
        return self._engine.pool.claims.sleep_claim(self._engine.owner)

    def consolidate(
        self, groups: Sequence[Sequence[ports.Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Store the episodes of each group, and archive their originals.

        Return None or the error for each group, in order. All groups are tried in one transaction and, after an
        error, each in its own; if the server cannot be reached, the groups that are left get the same error
        without an attempt.
        """
        outcomes: list[Exception | None] = []
        if len(groups) > 1:
            # Together first: most have no error, and a transaction costs as much as a group.
            error = self._promote_batch(list(chain(*groups)), durable=durable)
            if error is None or isinstance(error, DatabaseUnreachable | MemoryBusy):
                return [error] * len(groups)
        for promotions in groups:
            error = self._promote_batch(promotions, durable=durable)
            outcomes.append(error)
            if isinstance(error, DatabaseUnreachable):
                # The others would wait as long for nothing.
                outcomes += [error] * (len(groups) - len(outcomes))
                break
        return outcomes

    def _promote_batch(
        self, promotions: Sequence[ports.Promotion], *, durable: bool
    ) -> Exception | None:
        """Store groups in one transaction, tried `PROMOTION_TRIES` times if busy; return an error or None."""
        for tries_left in reversed(range(PROMOTION_TRIES)):
            try:
                with (
                    self._engine.pool.writing(
                        self._engine.owner, durable=durable
                    ) as session,
                    session.pipeline(),
                ):
                    self._promote(session, promotions)
            except MemoryBusy as error:
                if not tries_left:
                    return error
            except Exception as error:  # noqa: BLE001 it belongs to this group
                return error
            else:
                break
        return None

    def _archive_originals(
        self, session: PostgresSession, episodes: Mapping[int, values.Episode]
    ) -> int:
        """Move the originals of episodes to the archive, except pinned ones; return how many moved."""
        homes = {id: seq for seq, each in episodes.items() for id in each.summary_of}
        evicted = sorted(session.execute(EVICT, ids=list(homes)).fetchall())
        detail_values: dict[str, Values] = {}
        for episode in episodes.values():
            for detail in episode.details:
                known = detail_values.setdefault(detail.memory, {})
                known[str(detail.kind), detail.value] = detail.sensitive
        if evicted:
            session.execute(
                INSERT_PLACED,
                seqs=[seq for seq, _, _ in evicted],
                homes=[homes[id] for _, id, _ in evicted],
                **detail_columns(detail_values.get(id, {}) for _, id, _ in evicted),
            )
            session.grown += len(evicted)
        count, characters = len(evicted), sum(size for _, _, size in evicted)
        session.add_to_totals(values.Tier.WORKING, count=-count, characters=-characters)
        session.add_to_totals(values.Tier.ARCHIVE, count=count, characters=characters)
        return count
