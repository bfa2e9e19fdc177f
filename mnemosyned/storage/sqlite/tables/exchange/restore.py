"""Records of an export stored again: each once, and no summary without what it was made of."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from mnemosyned.domain.exchange import (
    OTHER_WORDS,
    WORDS_PRUNED,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    Outcome,
    Restored,
    known_memory,
)
from mnemosyned.domain.ports.archive.exchange import KIND_NAMES, AnyRecord
from mnemosyned.storage.sqlite.fulltext.indexing import (
    index_episode_grams,
    index_memories,
)
from mnemosyned.storage.sqlite.tables.changing.tags import add_tags
from mnemosyned.storage.sqlite.tables.exchange.moved import MOVED
from mnemosyned.storage.sqlite.tables.exchange.restore_single import SINGLE
from mnemosyned.storage.sqlite.tables.insert import known_records
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    Row,
    instant_text,
    memory_row,
)

_EPISODE_COLUMNS = (
    "seq, id, session_id, source, level, content, item_count, covers_from, covers_until, "
    "summarizer, created_at, period_from, index_terms, stale"
)
_PLACES = ", ".join("?" * (1 + len(MEMORY_COLUMNS.split(", "))))
_INSERT_WORKING = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) VALUES ({_PLACES})"
)
_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) VALUES ({_PLACES}, ?)"
)


class Restoring:
    """The restoring of records in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._outcome = Restored()
        self._kinds: dict[str, int] = {}
        self._taken: set[int] = set()
        self._last_seq = 0

    def restore(self, records: Sequence[AnyRecord]) -> Restored:
        """Store what is not here yet."""
        sorted_records: dict[type[Any], list[Any]] = defaultdict(list)
        for record in records:
            sorted_records[type(record)].append(record)
        episodes = sorted_records[ExportedEpisode]
        self._restore_groups(
            [episode for episode in episodes if episode.level == 0],
            sorted_records[ExportedMemory],
        )
        rollups = [episode for episode in episodes if episode.level > 0]
        self._each(sorted(rollups, key=lambda rollup: rollup.level), self._rollup)
        self._each(sorted_records[ExportedSupersession], self._supersession)
        for kind, store in {**SINGLE, **MOVED}.items():
            self._each(sorted_records[kind], partial(store, self._connection))
        return self._outcome

    def _each(self, records: Iterable[Any], store: Callable[[Any], Outcome]) -> None:
        """Store records one by one, and count what became of them."""
        for record in records:
            id = str(getattr(record, "id", ""))
            self._outcome.count(KIND_NAMES[type(record)], id, store(record))

    # ------------------------------------------------- episodes and memories

    def _restore_groups(
        self, episodes: Sequence[ExportedEpisode], memories: Sequence[ExportedMemory]
    ) -> None:
        ids = [episode.id for episode in episodes] + [memory.id for memory in memories]
        known = {id: row[0] for id, row in known_records(self._connection, ids).items()}
        by_episode: dict[str | None, list[ExportedMemory]] = defaultdict(list)
        for memory in memories:
            by_episode[memory.episode].append(memory)
        self._restore_episodes(episodes, by_episode, known)
        self._reserve([memory.seq for memory in memories if memory.id not in known])
        homes = self._homes(set(by_episode) - {None})
        texts = self._restore_memories(memories, homes, known)
        self._connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'working_memory'",
            (self._last_seq,),
        )
        index_memories(self._connection, texts)

    def _restore_episodes(
        self,
        episodes: Sequence[ExportedEpisode],
        by_episode: Mapping[str | None, Sequence[ExportedMemory]],
        known: dict[str, str | None],
    ) -> None:
        """Store episodes whose originals come with them and are new."""

        def restore_episode(episode: ExportedEpisode) -> Outcome:
            originals = {memory.id for memory in by_episode.get(episode.id, ())}
            complete = bool(originals) and originals.isdisjoint(known)
            return self._episode(episode, known=known, complete=complete)

        self._each(episodes, restore_episode)

    def _restore_memories(
        self,
        memories: Sequence[ExportedMemory],
        homes: Mapping[str | None, int],
        known: dict[str, str | None],
    ) -> list[tuple[int, str, str]]:
        """Store memories that are new; return row, text and role of those with words."""
        texts: list[tuple[int, str, str]] = []

        def restore_memory(memory: ExportedMemory) -> Outcome:
            if memory.id in known:
                return known_memory(memory, known[memory.id])
            known[memory.id] = memory.content
            home = homes.get(memory.episode)
            if memory.episode and home is None and not memory.content:
                return WORDS_PRUNED
            seq = self._memory(memory, home)
            if memory.content:
                texts.append((seq, memory.content, memory.role))
            return True

        self._each(memories, restore_memory)
        return texts

    def _homes(self, episodes: set[str | None]) -> dict[str | None, int]:
        """Return the rows of those episodes that are here, by id."""
        rows = self._connection.execute(
            "SELECT id, seq FROM episodic_memory WHERE level = 0 "
            "AND id IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(sorted(filter(None, episodes))).decode(),),
        )
        return dict(rows.fetchall())

    def _episode(
        self, episode: ExportedEpisode, *, known: dict[str, str | None], complete: bool
    ) -> Outcome:
        if episode.id in known:
            # Of an episode no words are known: they may have been written again.
            return False if known[episode.id] is None else OTHER_WORDS
        if not complete:
            self._outcome.left_out += 1
            return None
        self._insert_episode(episode)
        return True

    def _insert_episode(self, episode: ExportedEpisode) -> None:
        taken = self._connection.execute(
            "SELECT 1 FROM episodic_memory WHERE seq = ?", (episode.seq,)
        ).fetchone()
        row = self._connection.execute(
            f"INSERT INTO episodic_memory ({_EPISODE_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _episode_values(episode, None if taken else episode.seq),
        )
        number = row.lastrowid
        index_episode_grams(
            self._connection, number, episode.content, episode.index_terms
        )
        if episode.emptied:
            self._connection.execute(
                "INSERT INTO emptied_episode (episode_seq) VALUES (?)", (number,)
            )

    def _reserve(self, seqs: Sequence[int]) -> None:
        """Note which of these numbers are taken; new ones are given above all of them."""
        wanted = msgspec.json.encode(seqs).decode()
        rows = self._connection.execute(
            "SELECT seq FROM working_memory WHERE seq IN (SELECT value FROM json_each(?1)) "
            "UNION ALL SELECT seq FROM archive WHERE seq IN (SELECT value FROM json_each(?1))",
            (wanted,),
        )
        self._taken = {seq for (seq,) in rows}
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
        ).fetchone()
        if row is None:
            self._connection.execute(
                "INSERT INTO sqlite_sequence VALUES ('working_memory', 0)"
            )
        self._last_seq = max([row[0] if row else 0, *seqs])

    def _number(self, seq: int) -> int:
        """Return the number of a memory: the one it had, if that is free."""
        if seq in self._taken:
            self._last_seq += 1
            return self._last_seq
        self._taken.add(seq)
        return seq

    def _memory(self, memory: ExportedMemory, home: int | None) -> int:
        """Insert a memory: into the archive, where its episode is here."""
        number = self._number(memory.seq)
        values = _memory_values(memory, number)
        if home is None:
            self._connection.execute(_INSERT_WORKING, values)
            self._outcome.working += memory.episode is not None
        else:
            self._connection.execute(_INSERT_ARCHIVED, (*values, home))
            self._insert_details(memory, number)
        self._insert_state(memory, number)
        self._insert_changes(memory, number)
        return number

    def _insert_state(self, memory: ExportedMemory, seq: int) -> None:
        state = [
            moment and instant_text(moment)
            for moment in (memory.valid_until, memory.superseded_at, memory.pruned_at)
        ]
        if any(state):
            self._connection.execute(
                "INSERT INTO memory_state (memory_seq, valid_until, superseded_at, pruned_at) "
                "VALUES (?, ?, ?, ?)",
                (seq, *state),
            )
        held = [
            moment and instant_text(moment)
            for moment in (memory.held_until, memory.future_since)
        ]
        if any(held):
            self._connection.execute(
                "INSERT INTO working_state (memory_seq, held_until, future_since) "
                "VALUES (?, ?, ?)",
                (seq, *held),
            )

    def _insert_changes(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the tags of a memory and what it was before it was edited."""
        if memory.tags:
            add_tags(self._connection, seq, memory.tags)
        for revision in memory.revisions:
            self._connection.execute(
                "INSERT INTO revision (memory_seq, changed_at, content, content_hash, fields) "
                "VALUES (?, ?, ?, ?, ?)",
                (
                    seq,
                    instant_text(revision.changed_at),
                    revision.content,
                    revision.content_hash,
                    msgspec.json.encode(revision.fields).decode(),
                ),
            )

    def _insert_details(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the exact values of an original."""
        for kind, value, sensitive in memory.details:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail (memory_seq, kind, value, sensitive) "
                "VALUES (?, ?, ?, ?)",
                (seq, self._kind(kind), value, sensitive),
            )

    def _kind(self, name: str) -> int:
        """Return the number of a kind of exact value."""
        if name not in self._kinds:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail_kind (name) VALUES (?)", (name,)
            )
            self._kinds = dict(
                self._connection.execute("SELECT name, number FROM detail_kind")
            )
        return self._kinds[name]

    def _rollup(self, rollup: ExportedEpisode) -> Outcome:
        """Store a day, week or month, if all it was made of is here and belongs to no other."""
        known = known_records(self._connection, [rollup.id])
        if rollup.id in known:
            if known[rollup.id][0] is None:
                return False
            return OTHER_WORDS
        below = msgspec.json.encode(rollup.summary_of).decode()
        (free,) = self._connection.execute(
            "SELECT count(*) FROM episodic_memory "
            "WHERE parent_id IS NULL AND level < ? "
            "AND id IN (SELECT value FROM json_each(?))",
            (rollup.level, below),
        ).fetchone()
        taken = self._connection.execute(
            "SELECT 1 FROM episodic_memory WHERE level = ? AND period_from = ?",
            (rollup.level, rollup.period_from and instant_text(rollup.period_from)),
        ).fetchone()
        if taken or free != len(rollup.summary_of):
            self._outcome.left_out += 1
            return None
        self._insert_episode(rollup)
        self._connection.execute(
            "UPDATE episodic_memory SET parent_id = ? "
            "WHERE id IN (SELECT value FROM json_each(?))",
            (rollup.id, below),
        )
        return True

    def _supersession(self, link: ExportedSupersession) -> Outcome:
        """Link a superseded memory to the newer one, where both are here."""
        seqs = [self._seq_of(id) for id in (link.memory, link.superseded_by)]
        if None in seqs:
            return None
        changed = self._connection.execute(
            "UPDATE memory_state SET superseded_by = ?2 WHERE memory_seq = ?1 "
            "AND superseded_at IS NOT NULL AND superseded_by IS NULL",
            seqs,
        ).rowcount
        return bool(changed)

    def _seq_of(self, id: str) -> int | None:
        row = self._connection.execute(
            "SELECT seq FROM working_memory WHERE id = ?1 "
            "UNION ALL SELECT seq FROM archive WHERE id = ?1",
            (id,),
        ).fetchone()
        return row[0] if row else None


def _memory_values(memory: ExportedMemory, seq: int) -> Row:
    """Return the values for seq and MEMORY_COLUMNS."""
    row = memory_row(memory)
    if memory.content_hash is not None:  # of words that were pruned
        row = (*row[:-1], memory.content_hash)
    return (seq, *row)


def _episode_values(episode: ExportedEpisode, seq: int | None) -> tuple[Any, ...]:
    """Return the values for _EPISODE_COLUMNS."""
    period = episode.period_from
    return (
        seq,
        episode.id,
        episode.session,
        episode.source,
        episode.level,
        episode.content,
        episode.item_count,
        instant_text(episode.covers_from),
        instant_text(episode.covers_until),
        episode.summarizer,
        instant_text(episode.created_at),
        instant_text(period) if period else None,
        episode.index_terms,
        int(episode.stale),
    )
