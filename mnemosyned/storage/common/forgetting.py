"""Forgetting: memories and learnings are deleted with all their traces, alike in both engines."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mnemosyned.memory.edit import in_force_again
from mnemosyned.memory.forgetting import ForgetFilter, Grace, Newest, Removal
from mnemosyned.memory.intake import (
    Known,
    content_hash,
    is_made_of_source,
    keys_of_forgotten,
)
from mnemosyned.memory.ports import DeletionStore
from mnemosyned.storage.common.episodes import invalidate, unpruned_episodes
from mnemosyned.storage.common.filters import (
    Condition,
    column_conditions,
    time_conditions,
)
from mnemosyned.storage.common.grace import save_learnings, save_memories
from mnemosyned.storage.common.learnings import remove_learnings, remove_learnings_of
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.common.state import request_purge

NAMING = ("consolidation_log", "compaction")
"""The tables that name sessions and sources, and outlive the memories of these."""


def chosen_conditions(
    choice: ForgetFilter, newest: int | None, column: str = "{}"
) -> list[Condition]:
    """Return the conditions of a filter on columns, time and the newest row; `column` formats names."""
    when = column.format("created_at")
    conditions = [
        *column_conditions(choice.columns, column),
        *time_conditions(choice, first=when, last=when),
    ]
    if newest is not None:
        bound = f"{column.format('seq')} <= %(newest)s"
        conditions.append(Condition(bound, {"newest": newest}))
    return conditions


class FoundMemory(NamedTuple):
    """A memory that is to be deleted."""

    seq: int
    id: str
    size: int
    """The size of its text; 0 if it was pruned."""
    episode: int | None
    """The row number of its episode; None in working memory."""
    details: int
    """The number of its exact values."""


class CommonDeletion(Transactional, DeletionStore):
    """A `DeletionStore` of either engine."""

    _newest_memory: str
    """Selects the row number of the last memory."""
    _ids_below: str
    """Selects the ids of all originals under `summary`."""
    _count_pruned: str
    """Counts the originals of `episodes` whose text was pruned."""
    _unless_named: str
    """Ends a selection of names `n.name`: without those that a memory or summary has in a column."""
    _selected_memories: Callable[[EngineSession, ForgetFilter], list[str]]
    _selected_learnings: Callable[[EngineSession, ForgetFilter], list[str]]
    _known_records: Callable[[EngineSession, Sequence[str]], Mapping[str, Known]]

    @abstractmethod
    def _find(self, session: EngineSession, ids: Sequence[str]) -> list[FoundMemory]:
        """Return the existing memories among these ids, in the order of their row numbers."""

    @abstractmethod
    def _delete(self, session: EngineSession, found: Sequence[FoundMemory]) -> None:
        """Delete memories with all rows that refer to them; their secrets stay secret in others."""

    @reads
    def select(self, session: CommonSession, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter."""
        return self._selected_memories(session, choice)

    @reads
    def select_learnings(
        self, session: CommonSession, choice: ForgetFilter
    ) -> list[str]:
        """Return the ids of the learnings that match a filter; none if it names what they lack."""
        if choice.excludes_summaries:
            return []
        return self._selected_learnings(session, choice)

    @reads
    def newest(self, session: CommonSession) -> Newest:
        """Return the row numbers of the last memory and the last learning."""
        learning = "SELECT coalesce(max(seq), 0) FROM learning WHERE owner = %(owner)s"
        return Newest(session.scalar(self._newest_memory), session.scalar(learning))

    @reads
    def ids_under(self, session: CommonSession, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        return [id for (id,) in session.execute(self._ids_below, summary=summary)]

    @reads
    def preview(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        learned: Sequence[str] = (),
    ) -> Removal:
        """Return the counts and ids that forgetting these memories and learnings would remove."""
        found = self._find(session, ids)
        originals = [memory for memory in found if memory.episode is not None]
        leaving = Counter(memory.episode or 0 for memory in originals)
        pruned = sum(not memory.size for memory in originals)
        there: int = session.scalar(self._count_pruned, episodes=list(leaving))
        in_force, rewritten = _find_in_force_again(session, found)
        for episode in rewritten:
            leaving[episode] += 0
        removed, emptied = _preview_summaries(session, leaving)
        rows = session.execute(
            "SELECT id FROM learning "
            "WHERE owner = %(owner)s AND memory_id = ANY(%(ids)s::text[])",
            ids=list(ids),
        )
        return Removal(
            working=len(found) - len(originals),
            archived=len(originals),
            details=sum(memory.details for memory in originals),
            removed=removed,
            emptied=emptied,
            learnings=len({*learned, *(id for (id,) in rows)}),
            pruned=pruned,
            in_force=in_force,
            pruned_losing_summary=there - pruned,
        )

    @writes
    def forget(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        """Delete memories, empty or delete their summaries, and request a purge; return what changed.

        With `grace` they can be put back until it ends, and the purge waits. Unknown ids are
        skipped.
        """
        found = self._find(session, ids)
        if grace:
            save_memories(session, [memory.seq for memory in found], grace)
        unlearned = remove_learnings_of(session, [memory.id for memory in found])
        self._save_source_keys(session, found)
        in_force, rewritten = _find_in_force_again(session, found)
        _relink_supersessions(session, [memory.seq for memory in found])
        self._delete(session, found)
        originals = [memory for memory in found if memory.episode is not None]
        episodes = {memory.episode or 0 for memory in originals}
        removed, emptied = invalidate(session, episodes | rewritten)
        pruned = sum(not memory.size for memory in found)
        if found and (pruned or not grace):  # exact values of pruned ones go at once
            request_purge(session)
        return Removal(
            working=len(found) - len(originals),
            archived=len(originals),
            details=sum(memory.details for memory in originals),
            learnings=unlearned,
            pruned=pruned,
            in_force=in_force,
            removed=removed,
            emptied=emptied,
        )

    def _save_source_keys(
        self, session: CommonSession, found: Sequence[FoundMemory]
    ) -> None:
        """Save keys of forgotten memories, by which a second reading of their source skips them."""
        seqs = [memory.seq for memory in found if is_made_of_source(memory.id)]
        if not seqs:
            return
        memories = session.memories_at(seqs)
        known = self._known_records(session, [each.id for each in memories.values()])
        before: dict[int, list[int]] = defaultdict(list)
        for seq, words in session.execute(
            "SELECT memory_seq, content_hash FROM revision "
            "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[])",
            seqs=seqs,
        ):
            before[seq].append(words)
        keys: set[str] = set()
        for seq, memory in memories.items():
            _, _, said = known[memory.id]
            said = content_hash(memory.content) if said is None else said
            hashes = [said, *before[seq]]
            keys |= keys_of_forgotten(memory.id, memory.session, memory.source, hashes)
        session.execute_many(
            "INSERT INTO agent_forgotten (owner, id) VALUES (%(owner)s, %(id)s) "
            "ON CONFLICT DO NOTHING",
            [{"id": key} for key in keys],
        )

    @writes
    def forget_learnings(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        """Delete learnings and request a purge; return the counts.

        With `grace` copies are saved, to be restored on request until the grace period ends.
        """
        if grace:
            save_learnings(session, ids, grace)
        removal = Removal(learnings=remove_learnings(session, ids))
        if removal.learnings and not grace:
            request_purge(session)
        return removal

    @reads
    def orphaned_log_names(self, session: CommonSession) -> tuple[list[str], list[str]]:
        """Return the sessions and sources in logs and compactions that no memory has."""
        return (
            self._orphaned_names(session, "session_id"),
            self._orphaned_names(session, "source"),
        )

    def _orphaned_names(self, session: CommonSession, column: str) -> list[str]:
        """Return the names in a column of logs and compactions that no memory has."""
        named = " UNION ".join(
            f"SELECT {column} AS name FROM {table} "
            f"WHERE owner = %(owner)s AND {column} != ''"
            for table in NAMING
        )
        rows = session.execute(
            f"SELECT n.name FROM ({named}) AS n {self._unless_named.format(column)}"
        )
        return sorted(name for (name,) in rows)

    @writes
    def forget_names(
        self,
        session: CommonSession,
        *,
        sessions: Iterable[str],
        sources: Iterable[str],
    ) -> None:
        """Erase these sessions and sources from logs and compactions, unless a memory has them."""
        for column, names, nameless in (
            ("session_id", sessions, ""),
            ("source", sources, None),
        ):
            gone = {*names}.intersection(self._orphaned_names(session, column))
            for table in NAMING if gone else ():
                session.execute(
                    f"UPDATE {table} SET {column} = %(nameless)s::text "
                    f"WHERE owner = %(owner)s AND {column} = ANY(%(gone)s::text[])",
                    nameless=nameless,
                    gone=sorted(gone),
                )


def _relink_supersessions(session: CommonSession, seqs: Sequence[int]) -> None:
    """Let the next successor supersede the memories that the deleted ones had superseded.

    Without such a successor they are in force again.
    """
    rows = session.execute(
        "SELECT DISTINCT superseded_by FROM memory_state "
        "WHERE owner = %(owner)s AND superseded_by = ANY(%(seqs)s::bigint[])",
        seqs=list(seqs),
    )
    # One by one, as several of one chain may go.
    for (seq,) in rows.fetchall():
        session.execute(
            "UPDATE memory_state AS older SET superseded_by = s.superseded_by, superseded_at = "
            "CASE WHEN s.superseded_at IS NOT NULL THEN older.superseded_at END "
            "FROM (SELECT 1) AS one LEFT JOIN memory_state AS s "
            "ON s.owner = %(owner)s AND s.memory_seq = %(seq)s "
            "WHERE older.owner = %(owner)s AND older.superseded_by = %(seq)s",
            seq=seq,
        )


def _find_in_force_again(
    session: CommonSession, found: Sequence[FoundMemory]
) -> tuple[frozenset[str], set[int]]:
    """Return the ids of superseded memories that a deletion puts in force again.

    Also return the row numbers of their episodes, which are to be rewritten.
    """
    gone = {memory.seq for memory in found}
    links = session.execute(
        "SELECT memory_seq, superseded_by FROM memory_state WHERE owner = %(owner)s "
        "AND superseded_at IS NOT NULL AND (superseded_by = ANY(%(seqs)s::bigint[]) "
        "OR memory_seq = ANY(%(seqs)s::bigint[]))",
        seqs=list(gone),
    )
    again = in_force_again(dict(links.fetchall()), gone)
    memories = session.memories_at(again)
    return (
        frozenset(memory.id for memory in memories.values()),
        unpruned_episodes(session, again),
    )


def _preview_summaries(
    session: CommonSession, leaving: Mapping[int, int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the row numbers of summaries to be deleted, and of summaries to be emptied.

    `leaving` counts the deleted originals by episode. A summary that loses all of its sources is
    deleted; the summaries above follow, level by level.
    """
    removed: set[int] = set()
    emptied: set[int] = set()
    while leaving:  # ends, as each step goes up a level
        above: Counter[int] = Counter()
        rows = session.execute(
            "SELECT e.seq, (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "+ (SELECT count(*) FROM episode AS c "
            "WHERE c.owner = %(owner)s AND c.parent_id = e.id), "
            "(SELECT u.seq FROM episode AS u WHERE u.owner = %(owner)s AND u.id = e.parent_id) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s::bigint[])",
            seqs=list(leaving),
        )
        for seq, parts, parent in rows:
            gone = leaving[seq] >= parts
            (removed if gone else emptied).add(seq)
            if parent is not None:
                above[parent] += gone
        leaving = above
    return frozenset(removed), frozenset(emptied - removed)
