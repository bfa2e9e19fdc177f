"""One transaction about one owner, and rows: where columns meet the fields of memories.

Its statements have named values, the owner's first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Literal, cast

import msgspec
import psycopg

from mnemosyned import fairness, instants
from mnemosyned.memory import edit, forgetting
from mnemosyned.memory.engine_ports import LOCAL_NAME, LOCAL_OWNER
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.values import (
    Episode,
    MemoryRecord,
    Tier,
    column_list,
)
from mnemosyned.storage.common.rows import (
    ROW_COLUMNS,
    detail_from,
    episode_values,
    memory_of,
    stored_values,
)
from mnemosyned.storage.common.session import (
    BELOW,
    FIRST_BELOW,
    UNLESS_KNOWN,
    CommonSession,
    RecordNumbers,
    Result,
    Row,
    episode_changes,
)
from mnemosyned.storage.postgres.fulltext import gram_hashes, word_hashes
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.terms import glued_words

TAGS = (
    "(SELECT array_agg(t.name ORDER BY t.name) FROM tag AS t "
    "WHERE t.owner = %(owner)s AND t.memory_seq = m.seq)"
)
MEMORY_FIELDS = (
    f"{column_list(prefix='m.')}, s.valid_until, s.superseded_at, s.pruned_at, "
    "(SELECT n.id FROM memory AS n WHERE n.owner = %(owner)s AND n.seq = s.superseded_by), "
    "(SELECT max(r.changed_at) FROM revision AS r "
    f"WHERE r.owner = %(owner)s AND r.memory_seq = m.seq), e.id, {TAGS}"
)
"""Columns of `MEMORY_TABLES`, for `memory_from`."""
MEMORY_TABLES = (
    "memory AS m "
    "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
    "LEFT JOIN episode AS e ON e.owner = p.owner AND e.seq = p.episode_seq "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq"
)
"""A memory of either tier; in working memory, `p` and `e` are empty."""

MEMORIES_AT = (
    f"SELECT m.seq, {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
    "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)"
)
"""Memories at given row numbers, each after its number."""
OF_IDS = (
    "m.seq = ANY(ARRAY(SELECT i.seq FROM unnest(%(ids)s::text[]) AS n (id) CROSS JOIN LATERAL "
    "(SELECT o.seq FROM memory AS o WHERE o.owner = %(owner)s AND o.id = n.id LIMIT 1) AS i))"
)
"""Condition for the memories with some ids, each looked up by itself.

The server keeps no statistics of ids. It would take an id for that of one memory in two hundred,
and hundreds for those of all, and read the tables beside it from end to end; of numbers it knows that
they are few.
"""


def memory_values(memory: MemoryRecord | ExportedMemory, owner: int) -> dict[str, Any]:
    """Return a memory's row by column, with index terms but no row number; other owners' threads run first."""
    fairness.pause_for_other_owners()
    return {
        **stored_values(ROW_COLUMNS, memory),
        "content_hash": None,
        "words": word_hashes(
            owner, memory.content, memory.role, *glued_words(memory.content)
        ),
        "grams": gram_hashes(owner, memory.content),
    }


def memory_from(row: Row) -> MemoryRecord:
    """Return a memory from a row of `MEMORY_FIELDS`."""
    *values, tags = row
    return memory_of(values, tags)


def episode_row(episode: Episode, index_terms: str, owner: int) -> dict[str, Any]:
    """Return the values of a summary's row by column, with index terms, without the row number."""
    content = episode.content
    glued = glued_words(f"{content}\n{index_terms}")
    return {
        "words": word_hashes(owner, content, index_terms, *glued),
        "grams": gram_hashes(owner, f"{content}\n{index_terms}"),
        **episode_values(episode, index_terms),
    }


_KINDS = tuple(DetailKind)
"""Stored as their numbers, from 1."""
KIND_NUMBERS = {str(kind): number for number, kind in enumerate(_KINDS, start=1)}
Values = dict[tuple[str, str], bool]
"""Whether each kind and value is a secret."""


def values_of(plain: str | None, secret: str | None) -> Values:
    """Return {(kind, value): is a secret} of the exact values of an original.

    `plain` and `secret` are JSON texts of plain values and of secrets, or None without any.
    """
    found = dict.fromkeys(detail_pairs(plain), False)
    found |= dict.fromkeys(detail_pairs(secret), True)
    return dict(sorted(found.items()))


def detail_pairs(text: str | None) -> list[tuple[str, str]]:
    """Return the pairs of kind and value in a JSON text; no pairs for None."""
    if text is None:
        return []
    numbers, values = (items := msgspec.json.decode(text))[::2], items[1::2]
    return [
        (str(_KINDS[number - 1]), value)
        for number, value in zip(numbers, values, strict=True)
    ]


def detail_texts(values: Values) -> tuple[str | None, str | None]:
    """Return the plain values and the secrets in `values`, each as JSON text, or None without any."""
    items: dict[bool, list[int | str]] = {False: [], True: []}
    for (kind, value), is_secret in sorted(values.items()):
        items[is_secret] += [KIND_NUMBERS[kind], value]
    plain, secret = (
        msgspec.json.encode(each).decode() if each else None for each in items.values()
    )
    return plain, secret


_HOLDING = (
    "SELECT p.seq, p.details, p.secrets, m.content FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND EXISTS "
    "(SELECT 1 FROM unnest(%(values)s::text[]) AS v (value) WHERE strpos(m.content, v.value) > 0)"
)
INSERT_FRESH = (
    "INSERT INTO fresh (owner, seq, created_at) "
    "SELECT o.owner, r.seq, r.created_at FROM owner AS o "
    "CROSS JOIN unnest(%(seq)s::bigint[], %(created_at)s::timestamptz[]) AS r (seq, created_at) "
    "WHERE o.owner = %(owner)s"
)
_RETURN = (
    "DELETE FROM placed AS p USING memory AS m "
    "WHERE p.owner = %(owner)s AND m.owner = %(owner)s AND m.seq = p.seq AND p.{key} = %(value)s "
    "RETURNING m.seq, m.created_at, length(m.content)"
)
_PRUNE = (
    "UPDATE memory AS m SET content = '', metadata = '{}', words = '{}', grams = NULL, "
    "content_hash = r.hash FROM unnest(%(seqs)s::bigint[], %(hashes)s::bigint[]) AS r (seq, hash) "
    "WHERE m.owner = %(owner)s AND m.seq = r.seq"
)
Statement = tuple[str, Mapping[str, object]]
"""A statement and its values by name."""
_UNSTORABLE = re.compile("[\\x00\ud800-\udfff]")
LOCKED = "last_memory, working_count"
_LOCK = (
    f"SELECT {LOCKED}, last_record, last_log FROM owner "
    "WHERE owner = %(owner)s FOR UPDATE"
)
IDS_PER_QUERY = 5_000
ROWS_AT_ONCE = 200
"""Rows of a stream that are fetched together, and kept in memory."""


class PostgresSession(CommonSession):
    """Statements within a transaction; each binds `%(owner)s` in addition to its own values."""

    memory_tables = ("memory",)
    of_ids = OF_IDS
    has_session = (
        "EXISTS (SELECT 1 FROM memory AS m "
        "WHERE m.owner = %(owner)s AND m.session_id = s.session_id)"
    )

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        owner: int,
        *,
        has_citus: bool = False,
    ) -> None:
        self._connection = connection
        self.owner = owner
        self.has_citus = has_citus
        """Whether nodes may hold the rows: a statement that writes to several tables asks all of them."""
        self.numbered = 0
        """Memories that this transaction has given new numbers."""
        self.grown = 0
        """Memories that it has added to a table, which statistics do not know."""
        self.defers = False
        """Whether additions to the owner's row wait for `save_additions`, before the commit."""
        self._additions: Counter[str] = Counter()
        """By column of the owner's row."""
        self._last_numbers: dict[str, int] = {}
        """By column of the owner's row, as far as this transaction has taken numbers."""
        self._is_locked = False
        self._lock: Result | None = None
        self._locked: Row | None = None
        self._streams = 0
        self.owner_version = ""
        """The version of the owner's row in a snapshot, if it was read: each write of vectors changes it."""
        self.first: Result | None = None
        """The result of the statement that went with the transaction's beginning."""

    def lock(self) -> None:
        """Lock the owner's row until the transaction ends, so that nobody else changes its data."""
        if not self._is_locked:
            self.lock_by(_LOCK)

    def lock_by(self, sql: str, /, **values: object) -> None:
        """Run a statement that locks the owner's row; `locked_row` then has the first result row."""
        result = self.execute(sql, **values)
        if not self._is_locked:
            self._lock, self._is_locked = result, True

    @property
    def locked_row(self) -> Row | None:
        """The `LOCKED` columns of the owner's row from before its lock; None without a lock or the row."""
        if self._lock:
            self._locked, self._lock = self._lock.fetchone(), None
        return self._locked

    def execute(self, sql: str, /, **values: object) -> Result:
        """Run an SQL statement with values bound by name, the owner's number among them; return its result."""
        return self._send(sql, values)

    def call(self, function: str, /, *values: object, columns: str = "*") -> Result:
        """Call a function of the schema with values in order, and return its rows."""
        bound = {f"value_{number}": value for number, value in enumerate(values)}
        marks = ", ".join(f"%({name})s" for name in bound)
        return self.execute(f"SELECT {columns} FROM {function}({marks})", **bound)

    def execute_once(self, sql: str, /) -> None:
        """Run an SQL statement that will not be repeated, without preparing it on the server."""
        self._send(sql, {}, prepare=False)

    def stream(self, sql: str, /, **values: object) -> Iterator[Row]:
        """Run an SQL statement and yield its rows, fetched in portions.

        Other statements may run in between. After an early stop nothing has to be closed, as the
        end of the transaction closes it.
        """
        self._streams += 1
        name = f"stream_{self._streams}"
        # Citus chooses a cursor's node before values are bound.
        sql = sql.replace("%(owner)s", f"{self.owner:d}")
        # Not prepared: the same words mean other rows in the next transaction.
        self._send(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values, prepare=False)
        fetch = f"FETCH {ROWS_AT_ONCE} FROM {name}".encode()
        while True:  # ends, as the rows do
            rows = self._connection.execute(fetch, prepare=False).fetchall()
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                break
        self._connection.execute(f"CLOSE {name}".encode(), prepare=False)

    def _send(
        self, sql: str, values: Mapping[str, object], *, prepare: bool | None = None
    ) -> Result:
        """Let other owners' threads run, then send a statement with its values; return the result.

        Characters that PostgreSQL cannot store are replaced in the values. `prepare` tells whether the server
        prepares the statement; None leaves that to the driver.
        """
        fairness.pause_for_other_owners()
        text = sql.encode()
        bound: dict[str, object] = {"owner": self.owner}
        bound |= {name: _bindable(value) for name, value in values.items()}
        try:
            result = self._connection.execute(text, bound, prepare=prepare)
        except (psycopg.DataError, UnicodeEncodeError):
            # What the server's text cannot hold was noticed here: nothing was sent yet.
            storable = {name: _storable(value) for name, value in bound.items()}
            if storable == bound:
                raise
            result = self._connection.execute(text, storable, prepare=prepare)
        return cast("Result", result)

    def pipeline(self) -> AbstractContextManager[object]:
        """Send the statements of the block together; their errors are raised at its end."""
        return cast("AbstractContextManager[object]", self._connection.pipeline())

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]], /) -> int:
        """Run an SQL statement for each row of values and the owner's number; return how many rows changed."""
        with self._connection.cursor() as cursor:
            cursor.executemany(
                sql.encode(),
                [
                    {"owner": self.owner}
                    | {name: _bindable(value) for name, value in row.items()}
                    for row in rows
                ],
            )
            return int(cursor.rowcount)

    def take_numbers(
        self, kind: Literal["memory", "log", "record"], count: int
    ) -> range:
        """Reserve and return the next `count` numbers for rows: memories, log entries or other records."""
        column = f"last_{kind}"
        if self.defers and kind != "memory" and self.locked_row:
            if not self._last_numbers:
                _, _, record, log = self.locked_row
                self._last_numbers = {"last_record": record, "last_log": log}
            self._last_numbers[column] += count
            self._add_to_owner(**{column: count})
            last = self._last_numbers[column]
        else:
            last = self.scalar(
                f"UPDATE owner SET {column} = {column} + %(count)s "
                f"WHERE owner = %(owner)s RETURNING {column}",
                count=count,
            )
        return range(last - count + 1, last + 1)

    def _add_to_owner(self, **additions: int) -> None:
        """Add numbers to columns of the owner's row, now or when `save_additions` is called."""
        self._additions.update(additions)
        if not self.defers:
            self.save_additions()

    def save_additions(self) -> None:
        """Increase the counters of the owner's row by the numbers that were collected for them."""
        additions = {name: self._additions[name] for name in sorted(self._additions)}
        self._additions.clear()
        if additions:
            changes = ", ".join(f"{name} = {name} + %({name})s" for name in additions)
            self.execute(
                f"UPDATE owner SET {changes} WHERE owner = %(owner)s", **additions
            )

    def new_number(self, kind: RecordNumbers = "record", /) -> int:
        """Return the next number of a kind of rows from the counters in the owner's row."""
        return self.take_numbers(kind, 1).start

    def number_rows_above(
        self, kind: RecordNumbers | Literal["memory"], upto: int, /
    ) -> None:
        """Give new rows of a kind numbers above `upto`."""
        self.save_additions()
        column = f"last_{kind}"
        if column in self._last_numbers:
            self._last_numbers[column] = max(self._last_numbers[column], upto)
        self.execute(
            f"UPDATE owner SET {column} = greatest({column}, %(upto)s) "
            "WHERE owner = %(owner)s",
            upto=upto,
        )

    def positions_of(self, ids: Sequence[str]) -> dict[str, edit.Position]:
        """Return {id: (row number, row number of the episode or None)} of the memories with these ids."""
        rows = self.execute(
            "SELECT m.id, m.seq, (SELECT p.episode_seq FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.seq = m.seq) FROM memory AS m "
            f"WHERE m.owner = %(owner)s AND {OF_IDS}",
            ids=list(ids),
        )
        return {id: (seq, episode) for id, seq, episode in rows}

    def insert_episode(
        self, episode: Episode, index_terms: str, *, seq: int | None = None
    ) -> int:
        """Insert a summary with its index terms, and add it to the owner's totals; return the row number."""
        number = self.new_number() if seq is None else seq
        row = episode_row(episode, index_terms, self.owner)
        self.insert("episode", seq=number, **row)
        self.add_to_totals(Tier.EPISODIC, count=1, characters=len(episode.content))
        return number

    def write_episode(
        self,
        seq: int,
        episode: Episode,
        index_terms: str,
        *,
        is_rollup: bool = False,
    ) -> None:
        """Update the summary at a row number with its index terms, and the characters in the owner's totals."""
        before = self._episode_characters(seq)
        row = episode_row(episode, index_terms, self.owner)
        self.update("episode", episode_changes(row, is_rollup=is_rollup), seq=seq)
        self.note_rewording()
        self.add_to_totals(Tier.EPISODIC, characters=len(episode.content) - before)

    def _episode_characters(self, seq: int) -> int:
        """Return the number of characters of the stored summary at a row number."""
        return int(self.select_value("episode", "length(content)", seq=seq))

    def empty_episode(self, seq: int, *, originals: int) -> None:
        """Erase a summary's text and index terms; save the number of its `originals` if above 0."""
        characters = self._episode_characters(seq)
        self.execute(
            "UPDATE episode SET content = '', index_terms = '', words = '{}', grams = NULL, "
            "item_count = CASE WHEN %(originals)s > 0 THEN %(originals)s ELSE item_count END "
            "WHERE owner = %(owner)s AND seq = %(seq)s",
            originals=originals,
            seq=seq,
        )
        self.note_rewording()
        self.add_to_totals(Tier.EPISODIC, characters=-characters)

    def delete_episode(self, seq: int) -> None:
        """Delete the summary at a row number, and subtract it from the owner's totals."""
        characters = self._episode_characters(seq)
        self.delete("episode", seq=seq)
        self.note_rewording()
        self.add_to_totals(Tier.EPISODIC, count=-1, characters=-characters)

    def memories(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return {id: memory} for these ids, from one table, each part of `IDS_PER_QUERY` ids oldest first."""
        memories: dict[str, MemoryRecord] = {}
        for start in range(0, len(ids), IDS_PER_QUERY):
            rows = self.execute(
                f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
                f"WHERE m.owner = %(owner)s AND {OF_IDS} ORDER BY m.created_at, m.seq",
                ids=list(ids[start : start + IDS_PER_QUERY]),
            )
            memories |= {memory.id: memory for memory in map(memory_from, rows)}
        return memories

    def memories_at(self, seqs: Collection[int]) -> dict[int, MemoryRecord]:
        """Return {row number: memory} for the memories of both tiers at these row numbers."""
        rows = self.execute(MEMORIES_AT, seqs=list(seqs)) if seqs else ()
        return {row[0]: memory_from(row[1:]) for row in rows}

    def details_under(self, summary: str, *, secrets: bool = False) -> Iterator[Detail]:
        """Yield the exact values of the originals below a summary, or only secrets, oldest original first."""
        plain = "NULL" if secrets else "p.details"
        rows = self.execute(
            f"{BELOW} SELECT {plain}, p.secrets, m.id, s.superseded_at IS NOT NULL "
            f"FROM {'below' if secrets else FIRST_BELOW} "
            "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = below.seq "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "LEFT JOIN memory_state AS s ON s.owner = p.owner AND s.memory_seq = p.seq "
            f"WHERE coalesce({plain}, p.secrets) IS NOT NULL ORDER BY m.created_at, m.seq",
            summary=summary,
        )
        for values, secret, id, superseded in rows:
            for pair, is_secret in values_of(values, secret).items():
                yield detail_from((*pair, is_secret, id, superseded))

    def return_to_working(
        self, key: Literal["seq", "episode_seq"], value: int
    ) -> list[int]:
        """Move one or more originals to working memory; return their row numbers."""
        rows = sorted(self.execute(_RETURN.format(key=key), value=value).fetchall())
        seqs = [seq for seq, _, _ in rows]
        if seqs:
            times = [created_at for _, created_at, _ in rows]
            self.execute(INSERT_FRESH, seq=seqs, created_at=times)
        characters = sum(size for _, _, size in rows)
        self.add_to_totals(Tier.ARCHIVE, count=-len(seqs), characters=-characters)
        self.add_to_totals(Tier.WORKING, count=len(seqs), characters=characters)
        return seqs

    def share_secret_marks(self, seq: int, episode: int) -> None:
        """Mark the secrets of the original `seq` in the other originals of its episode."""
        secrets = detail_pairs(self.select_value("placed", "secrets", seq=seq))
        if not secrets:
            return
        others = self.execute(
            _HOLDING, episode=episode, seq=seq, values=[value for _, value in secrets]
        ).fetchall()
        for other, plain, secret, content in others:
            held = {pair: True for pair in secrets if pair[1] in content}
            self._write_details(other, values_of(plain, secret) | held)

    def _write_details(self, seq: int, values: Values) -> None:
        """Store the exact values of the original at row number `seq` in place of its former ones."""
        plain, secret = detail_texts(values)
        self.update("placed", {"details": plain, "secrets": secret}, seq=seq)

    def refresh_details(self, seq: int, episode: int, memory: MemoryRecord) -> None:
        """Extract the exact values of an edited original again."""
        self.share_secret_marks(seq, episode)
        others = self.column(
            "SELECT p.secrets FROM placed AS p WHERE p.owner = %(owner)s "
            "AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND p.secrets IS NOT NULL",
            episode=episode,
            seq=seq,
        )
        secrets = [pair for text in others for pair in detail_pairs(text)]
        restated = edit.details_with_secrets(memory, secrets)
        values = {(str(each.kind), each.value): each.sensitive for each in restated}
        self._write_details(seq, values)
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
        content = after.content
        words = word_hashes(self.owner, content, after.role, *glued_words(content))
        changes = {
            "content": content,
            "words": words,
            "grams": gram_hashes(self.owner, content),
        }
        self.update("memory", changes, seq=seq)
        self.delete("embedding", memory_seq=seq)
        self.requeue_embedding([seq])
        tier = Tier.WORKING if episode is None else Tier.ARCHIVE
        self.add_to_totals(tier, characters=len(content) - len(before.content))

    def erase_texts(self, originals: Sequence[tuple[int, str, str]]) -> None:
        """Erase text, metadata and index entries of originals: (row number, text, speaker)."""
        self.execute(
            _PRUNE,
            seqs=[seq for seq, _, _ in originals],
            hashes=[forgetting.content_hash(content) for _, content, _ in originals],
        )
        self.note_rewording()
        characters = sum(len(content) for _, content, _ in originals)
        self.add_to_totals(Tier.ARCHIVE, characters=-characters)

    def requeue_embedding(self, positions: Sequence[int], /) -> None:
        """Look for memories without a vector again, from the lowest of these row numbers on.

        The change is counted, so that no thread that is embedding records all memories as embedded.
        """
        self.execute(
            "UPDATE embedding_model SET done = %(before)s "
            "WHERE owner = %(owner)s AND done > %(before)s",
            before=min(positions) - 1,
        )
        self.note_rewording()

    def ensure_owner(self) -> None:
        """Insert the owner's row if it is missing."""
        name = LOCAL_NAME if self.owner == LOCAL_OWNER else f"owner-{self.owner}"
        self.insert("owner", UNLESS_KNOWN, name=name)

    def note_rewording(self) -> None:
        """Note in the database that stored texts changed, so that caches of words are dropped.

        The texts were rewritten or deleted, or came back under their old row numbers.
        """
        self._add_to_owner(rewordings=1)

    def add_to_totals(self, tier: Tier, *, count: int = 0, characters: int = 0) -> None:
        """Add to the number of entries and characters of a tier; negative numbers subtract."""
        if count or characters:
            name = tier.value
            self._add_to_owner(
                **{f"{name}_count": count, f"{name}_characters": characters}
            )

    def totals(self) -> dict[Tier, tuple[int, int]]:
        """Return {tier: (entries, characters)} from the owner's row, after saving collected changes to it."""
        self.save_additions()
        columns = ", ".join(f"{tier}_count, {tier}_characters" for tier in Tier)
        values = iter(self.select("owner", columns).fetchone() or (0,) * 6)
        return {tier: (next(values), next(values)) for tier in Tier}


def _bindable(value: object) -> object:
    """Return a value as it is sent to the server: times in UTC, lists as the text of an array.

    Other values are returned unchanged. With a list, the driver would look at each item twice, and prepare the
    statement anew for numbers of another size.
    """
    if isinstance(value, datetime):
        return instants.in_zone(value, UTC)
    if isinstance(value, list) and value:
        if isinstance(value[0], datetime):
            return list(map(_bindable, value))
        kinds = set(map(type, value))
        if kinds == {int}:
            return f"{{{','.join(map(str, value))}}}"
        if kinds <= {str, type(None)}:
            return f"{{{','.join(map(_array_item, value))}}}"
    return value


def _array_item(text: str | None) -> str:
    """Return a text as an item of an array in PostgreSQL's text form; NULL for None."""
    if text is None:
        return "NULL"
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _storable(value: object) -> object:
    """Return a text, or the texts in a list, with U+FFFD for NUL and lone surrogates; any other value as is."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    return list(map(_storable, value)) if isinstance(value, list) else value
