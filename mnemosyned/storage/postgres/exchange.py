"""Memories and vectors of an owner as records of an export and of a move, and stored from them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

import msgspec

from mnemosyned.memory import exchange
from mnemosyned.memory.fields import column_list
from mnemosyned.memory.forgetting import content_hash
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.exchange import (
    ExportSnapshot,
    PlacedMemory,
    RestoreTransaction,
    export_condition,
    insert_states,
)
from mnemosyned.storage.common.rows import (
    EXPORTED_EPISODE,
    exported_episode_from,
    exported_fields_from,
    exported_revision_from,
)
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres.memories import (
    INSERT_MEMORIES,
    INSERT_PLACED,
    detail_columns,
    values_by_column,
)
from mnemosyned.storage.postgres.session import (
    INSERT_FRESH,
    TAGS,
    PostgresSession,
    memory_values,
    values_of,
)
from mnemosyned.storage.postgres.vectors import USE_MODEL

_ORIGINALS = "(SELECT count(*) FROM placed AS p WHERE p.owner = %(owner)s AND p.episode_seq = e.seq)"
_REVISIONS = (
    "(SELECT json_agg(json_build_array(r.changed_at, r.content, r.content_hash, r.fields) "
    "ORDER BY r.seq)::text FROM revision AS r "
    "WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
_ROW = column_list(prefix="m.")
_MEMORY = (
    "m.seq, m.content_hash, m.valid_until, m.superseded_at, m.pruned_at, m.held_until, "
    f"m.future_since, {_ROW}, k.episode, {TAGS}, k.details, k.secrets, {_REVISIONS}"
)
# A planner that takes an owner for small, as statistics older than its memories do, reads all of a
# table again for each row of another. It takes no `OFFSET 0` apart: what is inside it is looked up
# by its key.
_AT_KEYS = (
    f"SELECT {_MEMORY} FROM ({{keys}} OFFSET 0) AS k CROSS JOIN LATERAL ("
    f"SELECT m.seq, m.content_hash, {_ROW}, s.valid_until, s.superseded_at, s.pruned_at, "
    "h.held_until, h.future_since FROM memory AS m "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
    "LEFT JOIN working_state AS h ON h.owner = m.owner AND h.memory_seq = m.seq "
    "WHERE m.owner = %(owner)s AND m.seq = k.seq AND {where} OFFSET 0) AS m ORDER BY {order}"
)
"""The memories of some keys: each a `seq`, the id of its episode, and its exact values."""
_WORKING = (
    "SELECT f.seq, NULL::text AS episode, NULL::text AS details, NULL::text AS secrets FROM fresh AS f "
    "WHERE f.owner = %(owner)s ORDER BY f.seq"
)
_ARCHIVED = (
    "SELECT p.seq, e.id AS episode, e.seq AS episode_seq, p.details, p.secrets FROM ("
    "SELECT e.id, e.seq FROM episode AS e "
    "WHERE e.owner = %(owner)s AND {episodes} OFFSET 0) AS e CROSS JOIN LATERAL ("
    "SELECT p.seq, p.details, p.secrets FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq OFFSET 0) AS p ORDER BY {order}"
)
_ORIGINALS_NOT = (
    "EXISTS (SELECT 1 FROM placed AS q CROSS JOIN LATERAL (SELECT 1 FROM memory AS o "
    "WHERE o.owner = %(owner)s AND o.seq = q.seq AND NOT ({}) OFFSET 0) AS n "
    "WHERE q.owner = %(owner)s AND q.episode_seq = e.seq OFFSET 0)"
)
"""Whether an episode has originals for which a condition does not hold."""
_SUPERSESSIONS = (
    "SELECT m.id, n.id FROM (SELECT s.memory_seq, s.superseded_by FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.superseded_by IS NOT NULL OFFSET 0) AS s "
    "CROSS JOIN LATERAL (SELECT m.id, m.seq, EXISTS (SELECT 1 FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0) AS works FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.seq = s.memory_seq AND {} OFFSET 0) AS m "
    "CROSS JOIN LATERAL (SELECT n.id, EXISTS (SELECT 1 FROM fresh AS g "
    "WHERE g.owner = %(owner)s AND g.seq = n.seq OFFSET 0) AS works FROM memory AS n "
    "WHERE n.owner = %(owner)s AND n.seq = s.superseded_by OFFSET 0) AS n "
    "ORDER BY NOT m.works, NOT n.works, m.seq"
)
"""Those in working memory first."""
_DECODER = msgspec.json.Decoder(list[tuple[datetime, str | None, int, str]])


class PostgresExporting(ExportSnapshot):
    """The records of one snapshot."""

    _vectors = (
        "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
        "JOIN embedding_model AS m ON m.owner = v.owner AND m.number = v.model "
        "JOIN memory AS n ON n.owner = v.owner AND n.seq = v.memory_seq "
        "WHERE v.owner = %(owner)s ORDER BY v.memory_seq"
    )

    def _memories(
        self, keys: str, where: str = "true", *, order: str
    ) -> Iterator[exchange.ExportedMemory]:
        """Yield exported memories at the row numbers that a query selects, under a condition, in an order."""
        rows = self._stream(_AT_KEYS.format(keys=keys, where=where, order=order))
        return map(_memory_from, rows)

    def _episodes(self) -> Iterator[exchange.Record]:
        whole = "e.level = 0"
        if self._chosen.is_set:
            others = _ORIGINALS_NOT.format(export_condition(self._chosen, "o"))
            whole += f" AND NOT {others}"
        # Two streams in the same order, so that an episode costs no round trip.
        keys = _ARCHIVED.format(episodes=whole, order="e.seq, p.seq")
        originals = self._memories(keys, order="k.episode_seq, k.seq")
        episodes = self._stream(
            f"SELECT {EXPORTED_EPISODE}, {_ORIGINALS} FROM episode AS e "
            f"WHERE e.owner = %(owner)s AND {whole} ORDER BY e.seq"
        )
        for *row, count in episodes:
            yield exported_episode_from(tuple(row), originals=count)
            yield from islice(originals, count)

    def _loose_originals(self) -> Iterator[exchange.Record]:
        others = _ORIGINALS_NOT.format(export_condition(self._chosen, "o"))
        keys = _ARCHIVED.format(episodes=others, order="p.seq")
        where = f"{export_condition(self._chosen, 'm')} AND m.content != ''"
        yield from self._memories(keys, where, order="k.seq")

    def _working(self) -> Iterator[exchange.Record]:
        where = export_condition(self._chosen, "m")
        yield from self._memories(_WORKING, where, order="k.seq")

    def _supersessions(self) -> Iterator[exchange.Record]:
        where = export_condition(self._chosen, "m")
        for memory, newer in self._stream(_SUPERSESSIONS.format(where)):
            yield exchange.ExportedSupersession(memory=memory, superseded_by=newer)


def _memory_from(row: Row) -> exchange.ExportedMemory:
    """Return an exported memory from a row of `_MEMORY`."""
    seq, content_hash, valid_until, superseded_at, pruned_at, *others = row[:7]
    held_until, future_since = others
    *values, episode, tags, plain, secret, revisions = row[7:]
    return exchange.ExportedMemory(
        **exported_fields_from(values, content_hash),
        seq=seq,
        tags=tuple(tags or ()),
        episode=episode,
        valid_until=valid_until,
        superseded_at=superseded_at,
        pruned_at=pruned_at,
        held_until=held_until,
        future_since=future_since,
        details=tuple(
            (kind, value, is_secret)
            for (kind, value), is_secret in values_of(plain, secret).items()
        ),
        revisions=tuple(
            map(exported_revision_from, _DECODER.decode(revisions or "[]"))
        ),
    )


_INSERT_VECTOR = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT n.owner, n.seq, m.number, %(vector)s, %(version)s FROM memory AS n "
    "JOIN embedding_model AS m ON m.owner = n.owner AND m.digest = %(digest)s "
    "WHERE n.owner = %(owner)s AND n.id = %(memory)s ON CONFLICT DO NOTHING"
)


class PostgresRestoring(RestoreTransaction):
    """The restoring of records in one transaction."""

    _session: PostgresSession

    def _last_number(self) -> int:
        return int(self._session.select_value("owner", "last_memory"))

    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        session = self._session
        if memories:
            session.execute(
                INSERT_MEMORIES,
                seq=[each.seq for each in memories],
                **values_by_column(
                    [_memory_row_values(session.owner, each) for each in memories]
                ),
            )
            session.grown += len(memories)
            session.note_rewording()
            self._insert_into_tiers(memories)
            insert_states(session, memories)
        session.skip_numbers("memory", last_number)

    def _insert_into_tiers(self, memories: Sequence[PlacedMemory]) -> None:
        """Insert restored memories into working memory or under their episodes."""
        session = self._session
        working = [each for each in memories if each.home is None]
        archived = [each for each in memories if each.home is not None]
        session.execute(
            INSERT_FRESH,
            seq=[each.seq for each in working],
            created_at=[each.memory.created_at for each in working],
        )
        session.execute(
            INSERT_PLACED,
            seqs=[each.seq for each in archived],
            homes=[each.home for each in archived],
            # Of two details alike the first one counts.
            **detail_columns(
                {
                    (kind, value): is_secret
                    for kind, value, is_secret in reversed(each.memory.details)
                }
                for each in archived
            ),
        )
        for tier, members in ((Tier.WORKING, working), (Tier.ARCHIVE, archived)):
            characters = sum(len(each.memory.content) for each in members)
            session.add_to_totals(tier, count=len(members), characters=characters)

    def _restore_vector(self, vector: exchange.KeptVector) -> exchange.Outcome:
        session = self._session
        known = session.select_value("embedding_model", "1", digest=vector.digest)
        if known is None:
            session.execute(USE_MODEL, name=vector.model, digest=vector.digest)
        version = session.new_number()
        inserted = session.execute(
            _INSERT_VECTOR,
            version=version,
            memory=vector.memory,
            digest=vector.digest,
            vector=vector.vector,
        )
        return bool(inserted.rowcount)


def _memory_row_values(owner: int, placed: PlacedMemory) -> dict[str, object]:
    """Return a restored memory's row by column; a pruned memory has no index terms."""
    memory = placed.memory
    values = memory_values(memory, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values
