"""The session of a file: memories, exact values and summaries by their rows.

Its statements have values by place, or by name as both engines write them.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec

from mnemosyned.instants import in_zone
from mnemosyned.memory import edit, exchange, forgetting
from mnemosyned.memory.values import (
    ROW_FIELDS,
    Episode,
    FieldKind,
    MemoryRecord,
    Tier,
    column_list,
)
from mnemosyned.storage.common import session
from mnemosyned.storage.common.rows import (
    ROW_COLUMNS,
    detail_from,
    episode_values,
    memory_of,
    stored_values,
)
from mnemosyned.storage.sqlite import fulltext
from mnemosyned.text.details import Detail

MEMORY_COLUMNS = f"{column_list()}, content_hash"
_STATE = (
    "(SELECT json_array(s.valid_until, s.superseded_at, s.pruned_at, ("
    "SELECT n.id FROM working_memory AS n WHERE n.seq = s.superseded_by UNION ALL "
    "SELECT n.id FROM archive AS n WHERE n.seq = s.superseded_by)) "
    "FROM memory_state AS s WHERE s.memory_seq = {seq})"
)
"""State of a memory in one lookup; NULL for most memories."""
_TAGS = (
    "(SELECT group_concat(t.name, char(10)) FROM tag AS t WHERE t.memory_seq = {seq})"
)
_EDITED = "(SELECT max(r.changed_at) FROM revision AS r WHERE r.memory_seq = {seq})"
_BESIDE = f"{_STATE}, {_TAGS}, {_EDITED}"
MEMORY_FIELDS = f"{column_list()}, {_BESIDE.format(seq='working_memory.seq')}"
ARCHIVE_FIELDS = f"{column_list(prefix='a.')}, {_BESIDE.format(seq='a.seq')}"
SEQ_AMONG = "seq IN (SELECT value FROM json_each(?))"
"""The same text for any number of rows, so that SQLite prepares the statement only once."""


def instant_text(moment: datetime) -> str:
    """Return a time as a text in UTC, always of 27 characters, so that texts sort by time."""
    if moment.tzinfo is not UTC:
        moment = in_zone(moment, UTC)
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


_TIME_COLUMNS = [field.column for field in ROW_FIELDS if field.kind is FieldKind.TIME]


def memory_row(memory: MemoryRecord | exchange.ExportedMemory) -> session.Row:
    """Return the values of a memory for the columns `MEMORY_COLUMNS`, in order."""
    values = stored_values(ROW_COLUMNS, memory)
    for column in _TIME_COLUMNS:
        values[column] = instant_text(values[column])
    return (*values.values(), forgetting.content_hash(memory.content))


def memory_from(row: Sequence[Any], episode: str | None = None) -> MemoryRecord:
    """Return a memory made from a row of `MEMORY_FIELDS`; `episode` is the id of its episode, if any."""
    *values, state, tags, edited_at = row
    values += msgspec.json.decode(state) if state else (None,) * 4
    names = sorted(tags.split("\n")) if tags else ()
    return memory_of((*values, edited_at, episode), names)


_OWNED = r"(?:\w+\.)?owner = (?:%\(owner\)s|\w+\.owner)"
_TRANSLATIONS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # A file has one owner, whom none of its tables names.
        (rf"{_OWNED} AND ", ""),
        (rf" (?:AND|WHERE) {_OWNED}", ""),
        (r"\(owner, ", "("),
        (r"SELECT \w+\.owner, ", "SELECT "),
        (r"\(%\(owner\)s, ", "("),
        (
            r"= ANY\(%\((\w+)\)s(?:::\w+\[\])?\)",
            r"IN (SELECT value FROM json_each(:\1))",
        ),
        (r"%\((\w+)\)s", r":\1"),
        (r"::\w+( COLLATE \"C\")?", ""),
        (r"\bIS NOT DISTINCT FROM\b", "IS"),
        (r"\bgreatest\(", "max("),
        (r"\boctet_length\(([\w.]+)\)", r"length(CAST(\1 AS BLOB))"),
        (r" OFFSET 0\b", ""),  # for the planner of PostgreSQL
        (r"\bIS DISTINCT FROM\b", "IS NOT"),
        (r"\bjson_agg\(", "json_group_array("),
        (r"\bjson_build_array\(", "json_array("),
        (r"\bILIKE\b", "LIKE"),
        (r"\b(FROM|JOIN|INTO|UPDATE) episode\b", r"\1 episodic_memory"),
        (r"\b(FROM|JOIN|INTO|UPDATE) placed\b", r"\1 archive"),
        (r"\b(FROM|JOIN|INTO|UPDATE) fresh\b", r"\1 working_memory"),
        # As an index has it.
        (r"\bcoalesce\(period_from, covers_from\)", "ifnull(period_from, covers_from)"),
    )
]
"""Replacements that turn the common statements from PostgreSQL's dialect into SQLite's."""
_WITH_MEMORY = re.compile(
    r"\b(fresh AS f|placed AS p)( ON .*?)? (?:LEFT )?JOIN memory AS m "
    r"ON m\.owner = \w\.owner AND m\.seq = \w\.(?:memory_)?seq"
)
"""A tier of PostgreSQL joined with its memories; in SQLite this is one table, called `m` here."""
_TIERS = {"fresh AS f": "working_memory AS m", "placed AS p": "archive AS m"}


class SqliteSession(sqlite3.Connection, session.CommonSession):
    """A connection that also runs the statements which both engines have alike.

    Values by place (`?`) are for statements of SQLite alone, and bound as they are.
    """

    is_durable = True
    """Whether its commits wait for the disk, as `open_writer` sets it up."""
    generation = 0
    """Which of the files that the path led to in turn a reader has open."""
    memory_tables = ("working_memory", "archive")
    of_ids = "m.id = ANY(%(ids)s)"
    has_session = (
        "EXISTS (SELECT 1 FROM working_memory AS w WHERE +w.session_id = +s.session_id) OR "
        "EXISTS (SELECT 1 FROM episodic_memory AS e WHERE e.session_id = s.session_id)"
    )

    def execute(
        self,
        sql: str,
        parameters: Any = (),  # noqa: ANN401 as sqlite3
        /,
        **values: object,
    ) -> sqlite3.Cursor:
        """Run an SQL statement, translated into SQLite's dialect if values have names; return the cursor."""
        if values or "%(owner)s" in sql:
            parameters = {name: stored_form(value) for name, value in values.items()}
            sql = translate(sql)
        return super().execute(sql, parameters)

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]], /) -> int:
        """Run an SQL statement, in SQLite's dialect, for each row of values; return how many rows changed."""
        bound = [
            {name: stored_form(value) for name, value in row.items()} for row in rows
        ]
        return self.executemany(translate(sql), bound).rowcount if bound else 0

    def positions_of(self, ids: Sequence[str]) -> dict[str, edit.Position]:
        """Return {id: (row number, row number of the episode or None)} of the memories with these ids."""
        among = "WHERE id IN (SELECT value FROM json_each(:ids))"
        rows = self.execute(
            f"SELECT id, seq, NULL FROM working_memory {among} "
            f"UNION ALL SELECT id, seq, episode_seq FROM archive {among}",
            ids=list(ids),
        )
        return {id: (seq, episode) for id, seq, episode in rows}

    def memories(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return {id: memory} for these ids, working memory first, the oldest first in each tier."""
        positions = self.positions_of(ids).values()
        found = self.memories_at([seq for seq, _ in positions])
        working_first = sorted(
            found.items(),
            key=lambda each: (
                each[1].tier is Tier.ARCHIVE,
                each[1].created_at,
                each[0],
            ),
        )
        return {memory.id: memory for _, memory in working_first}

    def memories_at(self, seqs: Collection[int]) -> dict[int, MemoryRecord]:
        """Return {row number: memory} for the memories of both tiers at these row numbers."""
        among = (json.dumps(list(seqs)),)
        working = self.execute(
            f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE {SEQ_AMONG}", among
        )
        memories = {seq: memory_from(row) for seq, *row in working}
        if len(memories) < len(seqs):
            archived = self.execute(
                f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM episodic_memory AS e "
                f"JOIN archive AS a ON a.episode_seq = e.seq WHERE a.{SEQ_AMONG}",
                among,
            )
            memories |= {
                seq: memory_from(row, episode) for seq, episode, *row in archived
            }
        return memories

    def details_under(self, summary: str, *, secrets: bool = False) -> Iterator[Detail]:
        """Yield the exact values of the originals below a summary, or only secrets, oldest original first."""
        rows = self.execute(
            f"{session.BELOW} SELECT k.name, d.value, d.sensitive, a.id, EXISTS ("
            "SELECT 1 FROM memory_state AS s WHERE s.memory_seq = a.seq "
            f"AND s.superseded_at IS NOT NULL) FROM {'below' if secrets else session.FIRST_BELOW} "
            "CROSS JOIN archive AS a ON a.episode_seq = below.seq "
            "CROSS JOIN detail AS d ON d.memory_seq = a.seq "
            "JOIN detail_kind AS k ON k.number = d.kind "
            f"{'WHERE d.sensitive ' if secrets else ''}"
            "ORDER BY a.created_at, a.seq, k.name, d.value",
            summary=summary,
        )
        return map(detail_from, rows)

    def totals(self) -> dict[Tier, tuple[int, int]]:
        """Return {tier: (entries, characters)} from the table that triggers keep up to date."""
        rows = self.execute("SELECT tier, count, characters FROM tier_totals")
        return {Tier(tier): (count, characters) for tier, count, characters in rows}

    def insert_episode(
        self, episode: Episode, index_terms: str, *, seq: int | None = None
    ) -> int:
        """Insert a summary with its index entries, at `seq` or a new row number; return the number."""
        values = episode_values(episode, index_terms)
        inserted = cast("sqlite3.Cursor", self.insert("episode", seq=seq, **values))
        number = cast("int", inserted.lastrowid)
        self._write_episode_grams(number)
        return number

    def write_episode(
        self,
        seq: int,
        episode: Episode,
        index_terms: str,
        *,
        is_rollup: bool = False,
    ) -> None:
        """Update the summary at a row number, and replace its entries in the index of character pairs."""
        self._write_episode_grams(seq, remove=True)
        values = episode_values(episode, index_terms)
        self.update(
            "episode", session.episode_changes(values, is_rollup=is_rollup), seq=seq
        )
        self._write_episode_grams(seq)

    def empty_episode(self, seq: int, *, originals: int) -> None:
        """Erase a summary's text and index terms; save the number of its `originals` if above 0."""
        self._write_episode_grams(seq, remove=True)
        self.execute(
            "UPDATE episodic_memory SET content = '', index_terms = '', "
            "item_count = iif(:originals, :originals, item_count) WHERE seq = :seq",
            originals=originals,
            seq=seq,
        )

    def delete_episode(self, seq: int) -> None:
        """Delete the summary at a row number with its entries in the index of character pairs."""
        self._write_episode_grams(seq, remove=True)
        self.execute("DELETE FROM episodic_memory WHERE seq = ?", (seq,))

    def insert_details(self, rows: Sequence[tuple[int, str, str, bool]]) -> None:
        """Insert exact values: the original's row number, kind, value, and whether it is a secret."""
        self.executemany(
            "INSERT OR IGNORE INTO detail_kind (name) VALUES (?)",
            {(kind,) for _, kind, _, _ in rows},
        )
        kinds = dict(self.execute("SELECT name, number FROM detail_kind"))
        self.executemany(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            [(seq, kinds[kind], value, secret) for seq, kind, value, secret in rows],
        )

    def insert_episode_details(self, details: Sequence[Detail], episode: int) -> None:
        """Insert exact values of originals; `episode` is the row number of their episode."""
        seqs: dict[str, int] = dict(
            self.execute(
                "SELECT id, seq FROM archive WHERE episode_seq = ?", (episode,)
            )
        )
        self.insert_details(
            [
                (seqs[each.memory], str(each.kind), each.value, each.sensitive)
                for each in details
            ]
        )

    def return_to_working(
        self, key: Literal["seq", "episode_seq"], value: int
    ) -> list[int]:
        """Move one or more originals to working memory; return their row numbers."""
        self.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE {key} = ?",
            (value,),
        )
        gone = self.execute(
            f"DELETE FROM archive WHERE {key} = ? RETURNING seq", (value,)
        )
        return [seq for (seq,) in gone.fetchall()]

    def share_secret_marks(self, seq: int, episode: int) -> None:
        """Mark the secrets of the original `seq` in the other originals of its episode."""
        for kind, value in self.execute(
            "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
        ).fetchall():
            self.execute(
                "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
                "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
                "ON CONFLICT DO UPDATE SET sensitive = 1",
                (kind, value, episode, seq, value),
            )

    def refresh_details(self, seq: int, episode: int, memory: MemoryRecord) -> None:
        """Extract the exact values of an edited original again."""
        self.share_secret_marks(seq, episode)
        self.execute("DELETE FROM detail WHERE memory_seq = ?", (seq,))
        secrets = self.execute(
            "SELECT k.name, d.value FROM archive AS a JOIN detail AS d ON d.memory_seq = a.seq "
            "JOIN detail_kind AS k ON k.number = d.kind WHERE a.episode_seq = ? AND d.sensitive",
            (episode,),
        ).fetchall()
        self.insert_episode_details(edit.details_with_secrets(memory, secrets), episode)
        self.share_secret_marks(seq, episode)

    def write_edited_text(
        self,
        seq: int,
        episode: int | None,
        *,
        before: MemoryRecord,
        after: MemoryRecord,
    ) -> None:
        """Write the new text and the index entries of an edited memory."""
        if before.content != after.content:
            self.execute(
                f"UPDATE {self.memory_table(episode)} "
                "SET content = ?, content_hash = ? WHERE seq = ?",
                (after.content, forgetting.content_hash(after.content), seq),
            )
        fulltext.unindex_memory(self, seq, before.content, before.role)
        fulltext.index_memories(self, [(seq, after.content, after.role)])
        self.execute("DELETE FROM embedding WHERE memory_seq = ?", (seq,))

    def erase_texts(self, originals: Sequence[tuple[int, str, str]]) -> None:
        """Erase text, metadata and index entries of originals: (row number, text, speaker)."""
        for seq, content, role in originals:
            fulltext.unindex_memory(self, seq, content, role)
            self.execute(
                "UPDATE archive SET content = '', metadata = '{}' WHERE seq = ?", (seq,)
            )

    def _write_episode_grams(self, seq: int, *, remove: bool = False) -> None:
        """Write a summary's entry in the index of character pairs, or remove it; no trigger does so."""
        content, index_terms = self.execute(
            "SELECT content, index_terms FROM episodic_memory WHERE seq = ?", (seq,)
        ).fetchone()
        text = f"{content}\n{index_terms}"
        fulltext.write_grams(self, "episode_gram_fts", seq, text, remove=remove)


@lru_cache(maxsize=256)
def translate(sql: str) -> str:
    """Return a statement, written for both engines, in SQLite's dialect of SQL."""
    while tier := _WITH_MEMORY.search(sql):
        sql = sql.replace(tier[0], f"{_TIERS[tier[1]]}{tier[2] or ''}")
        sql = re.sub(rf"\b{tier[1][-1]}\.", "m.", sql)
    for pattern, replacement in _TRANSLATIONS:
        sql = pattern.sub(replacement, sql)
    return sql


def stored_form(value: object) -> object:
    """Return a value in the form that SQLite stores: a time as text, a list as JSON text."""
    if isinstance(value, datetime):
        return instant_text(value)
    return json.dumps(value, default=instant_text) if isinstance(value, list) else value
