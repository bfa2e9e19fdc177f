"""Memories and vectors of a file as records of an export and of a move, and stored from them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from mnemosyned.memory import exchange
from mnemosyned.memory.fields import column_list
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
from mnemosyned.storage.common.session import Row, optional_instant
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.memories import INSERT_NUMBERED
from mnemosyned.storage.sqlite.session import MEMORY_COLUMNS, SqliteSession, memory_row

_STATE = (
    "(SELECT json_array(s.valid_until, s.superseded_at, s.pruned_at) "
    "FROM memory_state AS s WHERE s.memory_seq = m.seq)"
)
_HELD = (
    "(SELECT json_array(h.held_until, h.future_since) "
    "FROM working_state AS h WHERE h.memory_seq = m.seq)"
)
_DETAILS = (
    "(SELECT json_group_array(json_array(k.name, d.value, d.sensitive)) FROM detail AS d "
    "JOIN detail_kind AS k ON k.number = d.kind WHERE d.memory_seq = m.seq)"
)
_TAGS = "(SELECT json_group_array(t.name) FROM tag AS t WHERE t.memory_seq = m.seq)"
_REVISED = "EXISTS (SELECT 1 FROM revision AS r WHERE r.memory_seq = m.seq)"
_MEMORY = (
    f"m.seq, m.content_hash, {_STATE}, {_TAGS}, {_REVISED}, {column_list(prefix='m.')}"
)
_WORKING = f"SELECT {_MEMORY}, {_HELD}, NULL, NULL FROM working_memory AS m"
_ARCHIVED = f"SELECT {_MEMORY}, NULL, {_DETAILS}, e.id FROM archive AS m"
_NO_TRIPLE = (None, None, None)


class SqliteExporting(ExportSnapshot):
    """The records of one snapshot."""

    _vectors = (
        "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
        "JOIN embedding_model AS m ON m.number = v.model "
        "JOIN (SELECT seq, id FROM working_memory UNION ALL SELECT seq, id FROM archive) AS n "
        "ON n.seq = v.memory_seq ORDER BY v.memory_seq"
    )

    def _memory_with_revisions(self, row: Sequence[Any]) -> exchange.ExportedMemory:
        """Return the memory in a row of `_WORKING` or `_ARCHIVED`, with its earlier revisions."""
        memory = _memory_from(row)
        if not row[4]:
            return memory
        rows = self._session.execute(
            "SELECT changed_at, content, content_hash, fields FROM revision "
            "WHERE memory_seq = :seq ORDER BY seq",
            seq=memory.seq,
        )
        return replace(memory, revisions=tuple(map(exported_revision_from, rows)))

    def _episodes(self) -> Iterator[exchange.Record]:
        whole = "e.level = 0"
        if self._chosen.is_set:
            whole += (
                " AND NOT EXISTS (SELECT 1 FROM archive AS m WHERE m.episode_seq = e.seq "
                f"AND NOT ({export_condition(self._chosen, 'm')}))"
            )
        episodes = self._stream(
            f"SELECT {EXPORTED_EPISODE} FROM episode AS e "
            f"WHERE e.owner = %(owner)s AND {whole} ORDER BY e.seq"
        )
        for row in episodes:
            originals = self._session.execute(
                f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
                "WHERE m.episode_seq = :episode ORDER BY m.seq",
                episode=row[1],
            ).fetchall()
            yield exported_episode_from(row, originals=len(originals))
            yield from map(self._memory_with_revisions, originals)

    def _loose_originals(self) -> Iterator[exchange.Record]:
        rows = self._stream(
            f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
            f"WHERE {export_condition(self._chosen, 'm')} AND m.content != '' "
            "AND EXISTS (SELECT 1 FROM archive AS o WHERE o.episode_seq = e.seq "
            f"AND NOT ({export_condition(self._chosen, 'o')})) ORDER BY m.seq"
        )
        return map(self._memory_with_revisions, rows)

    def _working(self) -> Iterator[exchange.Record]:
        where = export_condition(self._chosen, "m")
        return map(
            self._memory_with_revisions,
            self._stream(f"{_WORKING} WHERE {where} ORDER BY m.seq"),
        )

    def _supersessions(self) -> Iterator[exchange.Record]:
        where = export_condition(self._chosen, "m")
        for table in ("working_memory", "archive"):
            for other in ("working_memory", "archive"):
                rows = self._stream(
                    "SELECT m.id, n.id FROM memory_state AS s "
                    f"JOIN {table} AS m ON m.seq = s.memory_seq "
                    f"JOIN {other} AS n ON n.seq = s.superseded_by "
                    f"WHERE s.superseded_by IS NOT NULL AND {where} ORDER BY m.seq"
                )
                for memory, newer in rows:
                    yield exchange.ExportedSupersession(
                        memory=memory, superseded_by=newer
                    )


def _memory_from(row: Sequence[Any]) -> exchange.ExportedMemory:
    """Return an exported memory without revisions from a row of `_WORKING` or `_ARCHIVED`."""
    seq, content_hash, state, tags, _, *values, held, details, episode = row
    valid_until, superseded_at, pruned_at = _decode_json_list(state, _NO_TRIPLE)
    held_until, future_since = _decode_json_list(held, _NO_TRIPLE[:2])
    return exchange.ExportedMemory(
        **exported_fields_from(values, content_hash),
        seq=seq,
        tags=tuple(_decode_json_list(tags, ())),
        episode=episode,
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        pruned_at=optional_instant(pruned_at),
        held_until=optional_instant(held_until),
        future_since=optional_instant(future_since),
        details=tuple(
            (kind, value, bool(sensitive))
            for kind, value, sensitive in _decode_json_list(details, ())
        ),
    )


def _decode_json_list(text: str | None, otherwise: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a JSON list; `otherwise` if `text` is None."""
    values: Sequence[Any] = msgspec.json.decode(text) if text else otherwise
    return values


_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
    f"VALUES (?, ?, {', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
)


class SqliteRestoring(RestoreTransaction):
    """The restoring of records in one transaction."""

    _session: SqliteSession

    def _last_number(self) -> int:
        last: int | None = self._session.scalar(
            "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
        )
        if last is None:
            self._session.execute(
                "INSERT INTO sqlite_sequence VALUES ('working_memory', 0)"
            )
        return last or 0

    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        for memory, seq, home in memories:
            values: Row = (seq, *memory_row(memory))
            if memory.content_hash is not None:  # of words that were pruned
                values = (*values[:-1], memory.content_hash)
            if home is None:
                self._session.execute(INSERT_NUMBERED, values)
            else:
                self._session.execute(_INSERT_ARCHIVED, (*values, home))
        insert_states(self._session, memories)
        self._session.insert_details(
            [
                (seq, *detail)
                for memory, seq, home in memories
                if home is not None
                for detail in memory.details
            ],
        )
        index_memories(
            self._session,
            [
                (seq, memory.content, memory.role)
                for memory, seq, _ in memories
                if memory.content
            ],
        )
        self._session.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'working_memory'",
            (last_number,),
        )

    def _restore_vector(self, vector: exchange.KeptVector) -> exchange.Outcome:
        session = self._session
        session.execute(
            "INSERT OR IGNORE INTO embedding_model (name, digest) VALUES (?, ?)",
            (vector.model, vector.digest),
        )
        position = session.position_of(vector.memory)
        if position is None:
            return None
        inserted = session.execute(
            "INSERT OR IGNORE INTO embedding (memory_seq, model, vector) "
            "SELECT ?, number, ? FROM embedding_model WHERE digest = ?",
            (position[0], vector.vector, vector.digest),
        )
        return bool(inserted.rowcount)
