"""Exports and moves: records read from one snapshot, and each restored once, no summary without its sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import msgspec

from mnemosyned.memory import exchange
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.injections import Injection
from mnemosyned.memory.values import Action, Episode, Learning, MemoryFilter
from mnemosyned.storage.common import (
    learnings,
    listing,
    rows,
    sleep,
    surroundings,
    undo,
)
from mnemosyned.storage.common.endings import empty_summaries
from mnemosyned.storage.common.injections import insert_injection, read_injections
from mnemosyned.storage.common.records import insert_compaction
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    Engine,
    Row,
    StorePart,
    optional_instant,
    writes,
)
from mnemosyned.storage.common.state import add_tags, insert_revision, mark_emptied


class PlacedMemory(NamedTuple):
    """A memory with its number and the position of its episode, if any."""

    memory: exchange.ExportedMemory
    seq: int
    home: int | None


_EPISODE_FIELDS = {each.name for each in fields(Episode)}.intersection(
    each.name for each in fields(exchange.ExportedEpisode)
)


def _restore_learning(session: CommonSession, learning: Learning) -> exchange.Outcome:
    """Insert a learning unless its id is stored; return True if inserted, False if known, or the conflict."""
    text = session.select_value("learning", "text", id=learning.id)
    if text is None:
        rows.LEARNINGS.add(session, learning, seq=session.new_number())
        return True
    return False if text == learning.text else exchange.OTHER_WORDS


def _restore_log_entry(session: CommonSession, entry: LogEntry) -> exchange.Outcome:
    """Insert a log entry unless stored, with its old number if that is free; return whether inserted."""
    known = session.scalar(
        "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s "
        "AND episode_id IS NOT DISTINCT FROM %(episode)s::text AND cycle_id = %(cycle)s "
        "AND created_at = %(created_at)s AND session_id = %(session)s AND level = %(level)s "
        "LIMIT 1",
        episode=entry.episode,
        cycle=entry.cycle,
        created_at=entry.created_at,
        session=entry.session,
        level=int(entry.level),
    )
    if known:
        return False
    taken = session.select_value("consolidation_log", "1", id=entry.id)
    sleep.insert_log(session, entry, id=None if taken else entry.id)
    if not taken:
        session.number_rows_above("log", entry.id)
    return True


def _restore_sighting(session: CommonSession, sighting: Sighting) -> exchange.Outcome:
    """Save the exported reading of the clock, unless one is saved; return whether it was saved."""
    if surroundings.saved_sighting(session):
        return False
    surroundings.save_sighting(session, sighting)
    return True


RESTORERS: Mapping[type[Any], Callable[[CommonSession, Any], exchange.Outcome]] = {
    Learning: _restore_learning,
    LogEntry: _restore_log_entry,
    exchange.ExportedCompaction: insert_compaction,
    Sighting: _restore_sighting,
    Injection: insert_injection,
    **{
        table.kind: partial(table.add, conflict=UNLESS_KNOWN)
        for table in (*rows.EXPORTED_TABLES, *rows.MOVED_TABLES)
        if table is not rows.ENDINGS
    },
}
"""Functions that store a record, for each kind that refers to no memory."""


class RestoreTransaction(ABC):
    """Transaction that restores records; an engine inserts memories and vectors."""

    def __init__(self, session: CommonSession, action: Action | None = None) -> None:
        self._session = session
        self._action = action
        self._outcome = exchange.RestoreReport()

    def restore(self, records: Iterable[exchange.AnyRecord]) -> exchange.RestoreReport:
        """Store the records that are not stored yet; return counts of the outcomes."""
        by_kind: dict[type[Any], list[Any]] = defaultdict(list)
        for record in records:
            by_kind[type(record)].append(record)
        episodes: list[exchange.ExportedEpisode] = by_kind[exchange.ExportedEpisode]
        self._restore_groups(
            [episode for episode in episodes if episode.level == 0],
            by_kind[exchange.ExportedMemory],
        )
        rollups = [episode for episode in episodes if episode.level > 0]
        self._restore_records(
            sorted(rollups, key=lambda rollup: rollup.level), self._restore_rollup
        )
        self._restore_records(
            by_kind[exchange.ExportedSupersession], self._restore_supersession
        )
        for kind, store in RESTORERS.items():
            self._restore_records(by_kind[kind], partial(store, self._session))
        self._restore_records(by_kind[EndingRecord], self._restore_ending)
        self._restore_records(by_kind[exchange.KeptVector], self._restore_vector)
        return self._outcome

    def _restore_records(
        self, records: Iterable[Any], store: Callable[[Any], exchange.Outcome]
    ) -> None:
        """Call `store` with every record, and count the returned outcomes."""
        for record in records:
            id = str(getattr(record, "id", ""))
            self._outcome.count(exchange.KIND_NAMES[type(record)], id, store(record))

    def _restore_groups(
        self,
        episodes: Sequence[exchange.ExportedEpisode],
        memories: Sequence[exchange.ExportedMemory],
    ) -> None:
        """Store the episodes whose originals are all new, then the new memories; count the outcomes."""
        ids = [episode.id for episode in episodes] + [memory.id for memory in memories]
        known = {
            id: record[0] for id, record in self._session.known_records(ids).items()
        }
        originals: dict[str | None, set[str]] = defaultdict(set)
        for memory in memories:
            originals[memory.episode].add(memory.id)

        def store(episode: exchange.ExportedEpisode) -> exchange.Outcome:
            """Store an episode if it is new and has originals in `memories`, all new; return the outcome."""
            if episode.id in known:
                return _outcome_for_stored_id(known[episode.id])
            members = originals[episode.id]
            if not members or not members.isdisjoint(known):
                self._outcome.left_out += 1
                return None
            self._insert_episode(episode)
            known[episode.id] = None
            return True

        self._restore_records(episodes, store)
        self._restore_memories(memories, known)

    def _restore_memories(
        self, memories: Sequence[exchange.ExportedMemory], known: dict[str, str | None]
    ) -> None:
        """Store the memories not in `known` ({id: content}), add them to `known`, count the outcomes.

        A memory goes to the archive if its episode is stored and lacks originals, else to working memory. An
        original that was forgotten here is not lacking, as the summary was written without it.
        """
        stored = self._session.execute(
            "SELECT id, seq, item_count - (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND level = 0 "
            "AND id = ANY(%(ids)s::text[])",
            ids=list({memory.episode for memory in memories if memory.episode}),
        ).fetchall()
        seqs = [memory.seq for memory in memories if memory.id not in known]
        taken = set(
            self._session.column(
                "SELECT seq FROM fresh WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[]) UNION ALL "
                "SELECT seq FROM placed WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        )
        # New numbers are given above all of them.
        last = max([self._highest_row_number(), *seqs])
        homes = {id: seq for id, seq, _ in stored}
        lacking = Counter({id: count for id, _, count in stored})
        placed: list[PlacedMemory] = []

        def choose_place(memory: exchange.ExportedMemory) -> exchange.Outcome:
            """Add a new memory, with a row number and an episode or None, to `placed`; return the outcome."""
            if memory.id in known:
                content = known[memory.id]
                # Pruned texts are empty; None is that of a summary.
                is_same = content == memory.content or (
                    content is not None and "" in (content, memory.content)
                )
                return False if is_same else exchange.OTHER_WORDS
            known[memory.id] = memory.content
            home = None
            if memory.episode and lacking[memory.episode] > 0:
                lacking[memory.episode] -= 1
                home = homes[memory.episode]
            if memory.episode and home is None and not memory.content:
                return exchange.WORDS_PRUNED
            nonlocal last
            seq = memory.seq
            if seq in taken:
                seq = last = last + 1
            taken.add(seq)
            placed.append(PlacedMemory(memory, seq, home))
            self._outcome.working += home is None and memory.episode is not None
            return True

        self._restore_records(memories, choose_place)
        self._insert_memories(placed, last_number=last)
        seqs = [each.seq for each in placed]
        # Steps of forgotten memories with these numbers.
        self._session.delete("undo_step", memory_seq=seqs)
        undo.record_action(self._session, self._action, [(seq, "") for seq in seqs])
        learnings.mark_learned(self._session, seqs)

    def _restore_rollup(self, rollup: exchange.ExportedEpisode) -> exchange.Outcome:
        """Store a roll-up if its period has none and all members are stored without a parent.

        Return the outcome. Otherwise a later cycle writes the roll-up.
        """
        known = self._session.known_records([rollup.id])
        if rollup.id in known:
            return _outcome_for_stored_id(known[rollup.id][0])
        # Its members are to be here without a parent, and no other is to have its period.
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=int(rollup.level),
            below=list(rollup.summary_of),
        )
        taken = self._session.select_value(
            "episode", "1", level=int(rollup.level), period_from=rollup.period_from
        )
        if taken or free != len(rollup.summary_of):
            self._outcome.left_out += 1
            return None
        self._insert_episode(rollup)
        self._session.update(
            "episode", {"parent_id": rollup.id}, id=list(rollup.summary_of)
        )
        return True

    def _restore_ending(self, ending: EndingRecord) -> exchange.Outcome:
        """Store an ending unless stored; return the outcome, None if a memory is not stored.

        If the older memory was stored before this import, its summary still says what ended, and is emptied.
        """
        positions = self._session.positions_of([*ending.involved])
        if len(positions) < len(ending.involved):
            return None
        is_new = rows.ENDINGS.add(self._session, ending, UNLESS_KNOWN)
        if is_new and self._action and not ending.undone:
            imported = self._session.select_value(
                "undo_action", "seq", id=self._action.id, kind=self._action.kind.value
            )
            seq, _ = positions[ending.older]
            if not self._session.select_value(
                "undo_step", "1", action=imported, memory_seq=seq
            ):
                empty_summaries(self._session, [ending.older])
        return is_new

    @abstractmethod
    def _highest_row_number(self) -> int:
        """Return the highest row number that any memory of this store has had."""

    @abstractmethod
    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert memories with all that belongs to them; number later memories above `last_number`."""

    @abstractmethod
    def _restore_vector(self, vector: exchange.KeptVector) -> exchange.Outcome:
        """Store a vector if its memory has none; return whether it was stored, or None without the memory."""

    def _insert_episode(self, episode: exchange.ExportedEpisode) -> None:
        """Insert an exported summary under its old row number, or under a new number if that is taken."""
        taken = self._session.select_value("episode", "1", seq=episode.seq)
        if not taken:
            self._session.number_rows_above("record", episode.seq)
        record = Episode(**{name: getattr(episode, name) for name in _EPISODE_FIELDS})
        number = self._session.insert_episode(
            record, episode.index_terms, seq=None if taken else episode.seq
        )
        if episode.stale:
            self._session.update("episode", {"stale": True}, seq=number)
        if episode.emptied:
            mark_emptied(self._session, number)

    def _restore_supersession(
        self, supersession: exchange.ExportedSupersession
    ) -> exchange.Outcome:
        """Save a memory's missing successor; return whether one was missing, None if a memory is not stored."""
        older = self._session.position_of(supersession.memory)
        newer = self._session.position_of(supersession.superseded_by)
        if older is None or newer is None:
            return None
        changed = self._session.update(
            "memory_state",
            {"superseded_by": newer[0]},
            "AND superseded_at IS NOT NULL AND superseded_by IS NULL",
            memory_seq=older[0],
        )
        return bool(changed.rowcount)


def _outcome_for_stored_id(content: str | None) -> exchange.Outcome:
    """Return the outcome for a taken id: a conflict if it is a memory's, with text `content`; else False."""
    return False if content is None else exchange.OTHER_WORDS


_TIMES = ("valid_until", "superseded_at", "pruned_at", "held_until", "future_since")
"""Times of a memory that are in other tables than its own; the last two are of working memory."""


def insert_states(session: CommonSession, memories: Sequence[PlacedMemory]) -> None:
    """Insert tags, revisions, and the times (`_TIMES`) of validity and other states of restored memories."""
    for table, names, members in (
        ("memory_state", _TIMES[:3], memories),
        (
            "working_state",
            _TIMES[3:],
            [placed for placed in memories if placed.home is None],
        ),
    ):
        session.insert_each(
            table,
            [
                {"memory_seq": seq, **{name: getattr(memory, name) for name in names}}
                for memory, seq, _ in members
                if any(getattr(memory, name) for name in names)
            ],
        )
    for memory, seq, _ in memories:
        if memory.tags:
            add_tags(session, seq, memory.tags)
        for revision in memory.revisions:
            insert_revision(
                session, seq, rows.stored_values(rows.REVISION_COLUMNS, revision)
            )


_ROLLUPS = (
    "FROM episode AS e WHERE e.owner = %(owner)s AND e.level > 0 "
    "AND (%(since)s::timestamptz IS NULL OR e.covers_until >= %(since)s) "
    "AND (%(until)s::timestamptz IS NULL OR e.covers_from < %(until)s)"
)


def export_condition(chosen: MemoryFilter, alias: str) -> str:
    """Return the SQL condition for the rows of table `alias` that an export filter selects."""
    when = f"{alias}.created_at"
    conditions = [
        *listing.column_conditions(chosen.columns, f"coalesce({alias}.{{}}, '')"),
        *listing.tag_conditions(chosen.tags, f"{alias}.seq"),
        *listing.time_conditions(chosen, first=when, last=when),
    ]
    return f"1 = 1{listing.join_conditions(conditions).text}"


TAGS_AND_REVISIONS = (
    "(SELECT json_agg(t.name)::text FROM tag AS t "
    "WHERE t.owner = %(owner)s AND t.memory_seq = m.seq), "
    "(SELECT json_agg(json_build_array(r.seq, r.changed_at, r.content, r.content_hash, r.fields))::text "
    "FROM revision AS r WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
"""The last two columns of an exported memory `m`."""
_decode_tags = msgspec.json.Decoder(list[str]).decode
_decode_revisions = msgspec.json.Decoder(
    list[tuple[int, datetime, str | None, int, str]]
).decode
_ORIGINALS = "(SELECT count(*) FROM placed AS p WHERE p.owner = %(owner)s AND p.episode_seq = e.seq)"


class ExportSnapshot(ABC):
    """The records of one snapshot, each part read as it is asked for, by statements of an engine."""

    _working: ClassVar[str]
    """Formats the selection of the working memories that meet a condition `where`.

    The columns are row number, text hash, `_TIMES`, those of `ROW_FIELDS`, the episode's id, two of exact
    values for `_read_details`, and `TAGS_AND_REVISIONS`.
    """
    _archived: ClassVar[str]
    """Formats the selection of originals by `where`, a condition on `m`, and `episodes`, a condition on `e`.

    The columns are those of `_working`, the order is that of episodes, then of originals.
    """
    _has_others: ClassVar[str]
    """Formats the condition that an episode `e` has an original `o` which does not meet a condition."""
    _superseded: ClassVar[str]
    """Formats the selection of ids: superseded memories that meet a condition on `m`, and their successors.

    Those in working memory come first.
    """
    _vectors: ClassVar[str]
    """Selects memory id, model, digest and vector of all vectors, in the order of the memories."""

    def __init__(self, session: CommonSession, chosen: MemoryFilter) -> None:
        self._session = session
        self._chosen = chosen
        self._values: dict[str, object] = {
            **{column: list(values) for column, values in chosen.columns.items()},
            "tags": list(chosen.tags),
            "since": chosen.since,
            "until": chosen.until,
        }

    def _stream(self, statement: str) -> Iterator[Row]:
        """Yield the rows of a statement, with the values of the export's filter bound to it."""
        return self._session.stream(statement, **self._values)

    def records(self) -> Iterator[exchange.Record]:
        """Yield the records that the filter selects, an episode only if all of its originals are selected."""
        where = export_condition(self._chosen, "m")
        others = self._has_others.format(export_condition(self._chosen, "o"))
        # Each episode whose originals are all exported, followed by these.
        yield from self._episodes(f"NOT {others}" if self._chosen.is_set else "1 = 1")
        if self._chosen.is_set:
            # Without their episodes, as these are not exported whole.
            with_text = f"{where} AND m.content != ''"
            yield from self._memories(
                self._archived.format(episodes=others, where=with_text)
            )
        yield from self._memories(self._working.format(where=where))
        if not (self._chosen.columns or self._chosen.tags):
            yield from self._rollups()
        for memory, newer, *_ in self._stream(self._superseded.format(where)):
            yield exchange.ExportedSupersession(memory=memory, superseded_by=newer)
        if not self._chosen.excludes_summaries:
            for kept in (rows.LEARNINGS, rows.LOG):
                streamed = self._stream(
                    f"SELECT {kept.columns} FROM {kept.name} AS r WHERE r.owner = %(owner)s "
                    f"AND {export_condition(self._chosen, 'r')} ORDER BY r.{kept.order}"
                )
                yield from map(kept.read, streamed)
        if not self._chosen.is_set:
            columns = rows.COMPACTIONS.columns.replace(", ", ", c.")
            streamed = self._stream(
                f"SELECT c.{columns}, p.part "
                "FROM compaction AS c LEFT JOIN compacted AS p ON p.owner = c.owner "
                "AND p.compaction = c.id WHERE c.owner = %(owner)s "
                "ORDER BY c.created_at, c.id, p.position"
            )
            for row, group in groupby(streamed, key=itemgetter(slice(-1))):
                parts = tuple(part for *_, part in group if part is not None)
                yield rows.COMPACTIONS.read(row, parts=parts)
            for table in rows.EXPORTED_TABLES:
                yield from table.stream(self._session)

    def all_records(self) -> Iterator[exchange.AnyRecord]:
        """Yield all records of an export, then the records that only a move to a new store has."""
        yield from self.records()
        session = self._session
        yield from read_injections(session, "ORDER BY id")
        for table in rows.MOVED_TABLES:
            yield from table.stream(session)
        for id, model, digest, vector in session.stream(self._vectors):
            yield exchange.KeptVector(
                memory=id, model=model, digest=digest, vector=bytes(vector)
            )
        if sighting := surroundings.saved_sighting(session):
            yield sighting

    def count_expected(self) -> dict[str, int]:
        """Return the number of exported memories as `memory`, and of all summaries as `episode`."""
        where = export_condition(self._chosen, "m")
        memories = sum(
            self._session.scalar(
                f"SELECT count(*) FROM {table} AS m WHERE m.owner = %(owner)s AND {where}",
                **self._values,
            )
            for table in self._session.memory_tables
        )
        episodes = self._session.select_value("episode", "count(*)")
        return {"memory": memories, "episode": episodes}

    def _episodes(self, chosen: str) -> Iterator[exchange.Record]:
        """Yield episodes that meet the SQL condition `chosen` on alias `e`; after each come its originals."""
        whole = f"e.level = 0 AND {chosen}"
        # Two streams in the same order, so that an episode costs no round trip.
        originals = self._memories(self._archived.format(episodes=whole, where="1 = 1"))
        episodes = self._stream(
            f"SELECT {rows.EXPORTED_EPISODE}, {_ORIGINALS} FROM episode AS e "
            f"WHERE e.owner = %(owner)s AND {whole} ORDER BY e.seq"
        )
        for *row, count in episodes:
            yield rows.exported_episode_from(row, originals=count)
            yield from islice(originals, count)

    def _memories(self, statement: str) -> Iterator[exchange.ExportedMemory]:
        """Yield the memories that a statement selects, with tags, exact values and revisions."""
        for seq, content_hash, *row in self._stream(statement):
            *values, episode, plain, secret, tags, revisions = row[5:]
            times = map(optional_instant, row[:5])
            fields = rows.record_fields(
                exchange.ExportedMemory, rows.ROW_COLUMNS, values
            ) | dict(zip(_TIMES, times, strict=True))
            yield exchange.ExportedMemory(
                **fields,
                content_hash=None if fields["content"] else content_hash,
                seq=seq,
                tags=tuple(sorted(_decode_tags(tags or "[]"))),
                episode=episode,
                details=tuple(self._read_details(plain, secret)),
                revisions=tuple(
                    exchange.ExportedRevision(
                        **rows.record_fields(
                            exchange.ExportedRevision,
                            rows.REVISION_COLUMNS,
                            revision[1:],
                        )
                    )
                    for revision in sorted(_decode_revisions(revisions or "[]"))
                ),
            )

    @abstractmethod
    def _read_details(
        self, plain: str | None, secret: str | None
    ) -> Iterable[tuple[str, str, bool]]:
        """Return (kind, value, is secret) of the exact values in two columns, for plain values and secrets."""

    def _rollups(self) -> Iterator[exchange.Record]:
        """Yield the exported summaries of days, weeks and months, each after its members."""
        # Two streams in the same order, so that a summary costs no round trip.
        below = self._stream(
            "SELECT r.seq, c.id FROM (SELECT e.seq, e.id, e.level "
            f"{_ROLLUPS}) AS r JOIN episode AS c ON c.owner = %(owner)s AND c.parent_id = r.id "
            "ORDER BY r.level, r.seq, c.seq"
        )
        groups = groupby(below, key=itemgetter(0))
        group = next(groups, None)
        streamed = self._stream(
            f"SELECT {rows.EXPORTED_EPISODE} {_ROLLUPS} ORDER BY e.level, e.seq"
        )
        for row in streamed:
            members: tuple[str, ...] = ()
            if group and group[0] == row[1]:
                members = tuple(id for _, id in group[1])
                group = next(groups, None)
            yield rows.exported_episode_from(row, summary_of=members)


class ExchangeStore(StorePart):
    """Export and restore of all stored records."""

    def __init__(
        self,
        engine: Engine,
        exporting: type[ExportSnapshot],
        restoring: type[RestoreTransaction],
    ) -> None:
        super().__init__(engine)
        self._exporting = exporting
        self._restoring = restoring

    @contextmanager
    def export(
        self, chosen: MemoryFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[exchange.Record]]]:
        """Open a snapshot of the records that a filter selects.

        Yields the counts of memories and of summaries by kind, and an iterator that reads the
        records while the block runs. An episode comes before its originals, a roll-up after its
        members.
        """
        with self._engine.streaming() as session:
            exported = self._exporting(session, chosen)
            yield exported.count_expected(), exported.records()

    @contextmanager
    def everything(
        self,
    ) -> Iterator[tuple[dict[str, int], Iterator[exchange.AnyRecord]]]:
        """Open a snapshot of all records, including records that only a move to another store carries.

        Yields the counts by kind, and an iterator that reads the records while the block runs. The
        order is the same in every store, and the records of a move alone come last.
        """
        with self._engine.streaming() as session:
            exported = self._exporting(session, MemoryFilter())
            yield exported.count_expected(), exported.all_records()

    @writes
    def restore(
        self,
        session: CommonSession,
        records: Sequence[exchange.AnyRecord],
        *,
        action: Action | None = None,
    ) -> exchange.RestoreReport:
        """Store the records that are not stored yet, in one transaction; return counts of the outcomes.

        An episode is stored only with all of its originals in the same call; else the originals go to working
        memory. A roll-up is stored if all of its members are here.
        """
        return self._restoring(session, action).restore(records)
