"""Forgetting, alike in both engines: memories and learnings deleted with all traces, or put back.

With a grace period they are kept apart from all reads until they are put back or deleted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from mnemosyned.memory.edit import in_force_again
from mnemosyned.memory.exchange import ForgottenCopy, RecoverableRecord
from mnemosyned.memory.forgetting import (
    ForgetFilter,
    Grace,
    Newest,
    Removal,
    content_hash,
    is_made_of_source,
    is_named_in,
    keys_of_forgotten,
    name_matcher,
)
from mnemosyned.memory.values import RECOVERABLE, Action, MemoryRecord, Recoverable
from mnemosyned.storage.common import endings, injections, listing, state, undo
from mnemosyned.storage.common.learnings import (
    LearningRows,
    learnings_where,
    mark_learned,
    remove_learnings,
)
from mnemosyned.storage.common.rows import (
    FORGOTTEN,
    REVISION_COLUMNS,
    column_names,
    stored_values,
)
from mnemosyned.storage.common.session import (
    ORIGINALS_BELOW,
    UNLESS_KNOWN,
    CommonSession,
    EngineSession,
    StorePart,
    instant,
    optional_instant,
    reads,
    writes,
)

LEARNING = "learning"
"""Prefix of the key of a learning that was forgotten without a memory."""


def save_memories(session: CommonSession, seqs: Sequence[int], grace: Grace) -> None:
    """Save copies of memories for the grace period, before a deletion; skip pruned memories."""
    memories = {
        seq: memory
        for seq, memory in session.memories_at(seqs).items()
        if memory.content
    }
    copies = {
        seq: ForgottenCopy(
            seq=seq, memory={name: getattr(memory, name) for name in RECOVERABLE}
        )
        for seq, memory in memories.items()
    }
    links = session.column(
        "SELECT memory_seq FROM memory_state WHERE owner = %(owner)s "
        "AND superseded_by = ANY(%(seqs)s::bigint[]) ORDER BY memory_seq",
        seqs=list(copies),
    )
    by_id = {memory.id: copies[seq] for seq, memory in memories.items()}
    for memory in memories.values():
        by_id[memory.id].successor = memory.superseded_by
    for older in session.memories_at(links).values():
        since = older.superseded_at or older.created_at
        by_id[older.superseded_by or ""].predecessors[older.id] = since
    revisions = session.select(
        "revision",
        f"memory_seq, {REVISION_COLUMNS}",
        "ORDER BY memory_seq, seq",
        memory_seq=copies,
    )
    for seq, changed_at, *texts in revisions:
        copies[seq].revisions.append((instant(changed_at), *texts))
    learnings = learnings_where(session, "memory_id", list(by_id))
    LearningRows(session).save(learnings, by_id)
    _save_copies(session, grace, by_id)


def _save_copies(
    session: CommonSession, grace: Grace, copies: Mapping[str, ForgottenCopy]
) -> None:
    """Insert copies of forgotten records, by key, with the action's id and the end of the grace period.

    Earlier copies with these keys are deleted, to be purged.
    """
    if session.delete("forgotten", id=list(copies)).rowcount:
        state.request_purge(session)
    records = [
        RecoverableRecord(id=key, call=grace.call, final_at=grace.final_at, data=copy)
        for key, copy in copies.items()
    ]
    session.insert_each(
        "forgotten",
        [stored_values(FORGOTTEN.columns, record) for record in records],
    )


def _insert_history(
    session: CommonSession, seq: int, memory: MemoryRecord, copy: ForgottenCopy
) -> None:
    """Insert the revisions of a restored memory, and link it with predecessors and successors.

    Episodes of superseded memories are emptied, to be rewritten. Links with forgotten memories are
    added to the copies of these. From now on imports and hooks may store the memory again.
    """
    for revision in copy.revisions:
        columns = column_names(REVISION_COLUMNS)
        row = dict(zip(columns, revision, strict=True))
        state.insert_revision(session, seq, row)
    newer, since, chain = None, memory.superseded_at, [copy.successor]
    while (id := chain[-1]) and since and not (newer := session.position_of(id)):
        with state.changed_copy(session, id) as other:
            kept = other.predecessors.items() - copy.predecessors.items()
            other.predecessors = dict(kept) | {memory.id: since}
            chain.append(other.successor)
    links: dict[int, tuple[int, datetime]] = {}
    waiting = dict(copy.predecessors)
    stored = {each for each, _ in session.positions_of([*waiting]).values()}
    while waiting:  # ends, as each forgotten one is met once
        id, moment = waiting.popitem()
        position = session.position_of(id)
        if position:
            # It has a successor of this one, or its own, which succeeds this one, too.
            next_one = session.successor_of(position[0])
            if next_one and not newer:
                later = state.list_successors(session, next_one[0], id)
                newer = next_one if stored.isdisjoint(later) else None
            if next_one in (None, newer):
                links[position[0]] = seq, moment
        else:
            with state.changed_copy(session, id) as other:
                if other.successor in (None, *chain):
                    other.successor = memory.id
                    other.memory["superseded_at"] = moment
                    waiting |= other.predecessors
    if newer:
        moment = session.memories_at([newer[0]])[newer[0]].created_at
        links[seq] = newer[0], since or moment
    for older, (number, moment) in links.items():
        state.set_state(session, older, "superseded_by", number)
        state.set_state(session, older, "superseded_at", moment)
    state.invalidate(session, state.unpruned_episodes(session, links))
    before = (words for _, _, words, _ in copy.revisions)
    hashes = [content_hash(memory.content), *before]
    session.delete(
        "agent_forgotten",
        id=list(keys_of_forgotten(memory.id, memory.session, memory.source, hashes)),
    )


NAMING = ("consolidation_log", "compaction")
"""Tables that keep names of sessions and sources after their memories are deleted."""


def chosen_conditions(
    choice: ForgetFilter, kind: Literal["memory", "learning"], column: str = "{}"
) -> list[listing.Condition]:
    """Return the conditions of a forget filter on columns, times, and the highest row number of a `kind`.

    `column` is a format that turns a column's name into SQL.
    """
    when = column.format("created_at")
    conditions = [
        *listing.column_conditions(choice.columns, column),
        *listing.time_conditions(choice, first=when, last=when),
    ]
    if choice.newest:
        newest = getattr(choice.newest, kind)
        bound = f"{column.format('seq')} <= %(newest)s"
        conditions.append(listing.Condition(bound, {"newest": newest}))
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
    session: str


class DeletionStore(StorePart):
    """Deletes memories and learnings, puts those in their grace period back, and purges their words."""

    _unless_named: str
    """Ends a selection of names `n.name`: without those that a memory or summary has in a column."""

    @abstractmethod
    def _find(self, session: EngineSession, ids: Sequence[str]) -> list[FoundMemory]:
        """Return the stored memories with these ids, in the order of row numbers."""

    @abstractmethod
    def _delete(self, session: EngineSession, found: Sequence[FoundMemory]) -> None:
        """Delete memories with all rows; mark their secrets in the remaining originals of their episodes."""

    @abstractmethod
    def _insert_memory(
        self, session: EngineSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        """Insert a memory into working memory at row number `seq`, or a new one for None; return the number."""

    @abstractmethod
    def select(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter, in working memory and the archive."""

    @reads
    def select_learnings(
        self, session: CommonSession, choice: ForgetFilter
    ) -> list[str]:
        """Return the ids of learnings that match a filter; none if it has tags or fields of memories."""
        if choice.excludes_summaries:
            return []
        narrow = listing.join_conditions(chosen_conditions(choice, "learning", "l.{}"))
        rows = session.stream(
            "SELECT l.id, l.text, coalesce(l.session_id, ''), coalesce(l.source, '') "
            f"FROM learning AS l WHERE l.owner = %(owner)s{narrow.text} ORDER BY l.seq",
            **narrow.values,
        )
        named = name_matcher(choice.person) if choice.person else None
        found = ((id, texts) for id, *texts in rows if is_named_in(texts, named))
        if not choice.terms:
            return [id for id, _ in found]
        # Loaded here: only words need the tables of characters.
        from mnemosyned.storage.common.index_words import term_matcher  # noqa: PLC0415

        has_terms = term_matcher(choice.terms)
        return [id for id, texts in found if has_terms(texts[:1])]

    @reads
    def newest(self, session: CommonSession) -> Newest:
        """Return the row numbers of the newest memory and the newest learning; 0 for none."""
        learning = "SELECT coalesce(max(seq), 0) FROM learning WHERE owner = %(owner)s"
        return Newest(session.newest_memory(), session.scalar(learning))

    @reads
    def ids_under(self, session: CommonSession, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        return session.column(ORIGINALS_BELOW.format("id", "m.seq"), summary=summary)

    @reads
    def preview(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        learned: Sequence[str] = (),
    ) -> Removal:
        """Return what a forget of these memories and learnings would delete and change; delete nothing."""
        found = self._find(session, ids)
        originals = [memory for memory in found if memory.episode is not None]
        leaving = Counter(memory.episode or 0 for memory in originals)
        pruned = sum(not memory.size for memory in originals)
        there: int = session.scalar(
            "SELECT count(*) FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(episodes)s::bigint[]) "
            "AND m.content = ''",
            episodes=list(leaving),
        )
        in_force, rewritten = _find_in_force_again(session, found)
        for episode in rewritten:
            leaving[episode] += 0
        removed, emptied = _preview_summaries(session, leaving)
        return Removal(
            working=len(found) - len(originals),
            archived=len(originals),
            details=sum(memory.details for memory in originals),
            removed=removed,
            emptied=emptied,
            learnings=len(
                {*learned, *session.select_column("learning", "id", memory_id=ids)}
            ),
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
        import_id: str | None = None,
        action: Action | None = None,
    ) -> Removal:
        """Delete memories with all traces; return what changed. Unknown ids are skipped.

        With `grace`, copies are kept until it ends, and purged then; else a purge is requested. Every summary
        of these memories loses its text until `RollupStore.rewrite` writes a new one; a summary without
        remaining members is deleted. With `import_id`, memories that were changed since that import stay, and
        the others are stored again when their source is read again.
        """
        if action:
            undo.insert_action(session, action)
        found = self._find(session, ids)
        if import_id:
            changed = undo.changed_after(session, import_id)
            found = [each for each in found if (each.seq, "") not in changed]
        if grace:
            save_memories(session, [memory.seq for memory in found], grace)
        unlearned = remove_learnings(session, memory_id=[memory.id for memory in found])
        injections.forget_injected_words(
            session,
            [memory.id for memory in found],
            sessions={memory.session for memory in found},
        )
        in_force, rewritten = _find_in_force_again(session, found)
        endings.forget_endings(session, [memory.id for memory in found])
        if not import_id:
            self._save_source_keys(session, found)
        gone = [each.seq for each in found if not (grace and each.size)]
        session.delete("undo_step", memory_seq=gone)
        _relink_supersessions(session, [memory.seq for memory in found])
        self._delete(session, found)
        originals = [memory for memory in found if memory.episode is not None]
        episodes = {memory.episode or 0 for memory in originals}
        removed, emptied = state.invalidate(session, episodes | rewritten)
        pruned = sum(not memory.size for memory in found)
        if found and (pruned or not grace):  # exact values of pruned ones go at once
            state.request_purge(session)
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
        """Save keys that prevent the storing of forgotten memories when their source is read again."""
        seqs = [memory.seq for memory in found if is_made_of_source(memory.id)]
        if not seqs:
            return
        memories = session.memories_at(seqs)
        known = session.known_records([each.id for each in memories.values()])
        before: dict[int, list[int]] = defaultdict(list)
        for seq, words in session.select(
            "revision", "memory_seq, content_hash", memory_seq=seqs
        ):
            before[seq].append(words)
        keys: set[str] = set()
        for seq, memory in memories.items():
            _, _, said = known[memory.id]
            said = content_hash(memory.content) if said is None else said
            hashes = [said, *before[seq]]
            keys |= keys_of_forgotten(memory.id, memory.session, memory.source, hashes)
        rows = [{"id": key} for key in keys]
        session.insert_each("agent_forgotten", rows, UNLESS_KNOWN)

    @writes
    def forget_learnings(
        self,
        session: CommonSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
        action: Action | None = None,
    ) -> Removal:
        """Delete learnings; return how many. Save copies until `grace` ends, or request a purge for None."""
        if action:
            undo.insert_action(session, action)
        if grace:
            learnings = learnings_where(session, "id", ids)
            copies = {learning.id: ForgottenCopy() for learning in learnings}
            LearningRows(session).save(learnings, copies)
            by_key = {f"{LEARNING}:{id}": copy for id, copy in copies.items()}
            _save_copies(session, grace, by_key)
        removal = Removal(learnings=remove_learnings(session, id=ids))
        if removal.learnings and not grace:
            state.request_purge(session)
        return removal

    @writes
    def put_back(
        self, session: CommonSession, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Restore forgotten records by key; return ids and row numbers of the restored memories.

        Memories go to working memory. A memory stays forgotten if its id has been stored again since. An
        action of forgetting is deleted when the last of its records is restored.
        """
        keeper = LearningRows(session)
        calls: set[str] = set()
        returned: dict[int, MemoryRecord] = {}
        for key in keys:
            found = FORGOTTEN.find(session, "AND id = %(key)s", key=key)
            if not found or (found[0].data.memory and session.position_of(key)):
                continue
            copy = found[0].data
            if copy.memory:
                memory = msgspec.convert(copy.memory, MemoryRecord)
                seq = None if session.memories_at([copy.seq]) else copy.seq
                seq = self._insert_memory(session, memory, seq)
                returned[seq] = memory
                _insert_history(session, seq, memory, copy)
            keeper.put_back(key, copy, returned)
            calls.add(found[0].call)
            session.delete("forgotten", id=key)
        for seq, memory in returned.items():
            if memory.superseded_at and session.successor_of(seq) is None:
                # What superseded it is gone: it holds again.
                state.end_supersession(session, seq)
        undo.delete_actions(
            session,
            "id = ANY(%(calls)s::text[]) AND NOT EXISTS (SELECT 1 FROM forgotten AS f "
            "WHERE f.owner = %(owner)s AND f.call = undo_action.id)",
            calls=list(calls),
        )
        mark_learned(session, returned)
        return [(memory.id, seq) for seq, memory in returned.items()]

    @reads
    def recoverable_keys(
        self,
        session: CommonSession,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        """Return keys of forgotten records: with these memory or action ids, or with grace over by `before`."""
        return session.column(
            "SELECT id FROM forgotten WHERE owner = %(owner)s "
            "AND (id = ANY(%(ids)s::text[]) OR call = ANY(%(ids)s::text[]) "
            "OR final_at <= %(before)s::timestamptz) ORDER BY id",
            ids=list(ids),
            before=before,
        )

    @writes
    def erase(self, session: CommonSession, keys: Sequence[str]) -> int:
        """Delete forgotten records for good, by key, and request a purge; return how many were deleted."""
        found = FORGOTTEN.find(
            session, "AND id = ANY(%(keys)s::text[])", keys=list(keys)
        )
        seqs = [record.data.seq for record in found]
        session.delete("undo_step", memory_seq=seqs)
        deleted = session.delete("forgotten", id=keys).rowcount
        if deleted:
            state.request_purge(session)
        return deleted

    @reads
    def recoverable(self, session: CommonSession) -> Recoverable:
        """Return the number of recoverable memories, and the first end of a grace period."""
        row = session.execute(
            "SELECT count(*) FILTER (WHERE id NOT LIKE %(learning)s), min(final_at) "
            "FROM forgotten WHERE owner = %(owner)s",
            learning=f"{LEARNING}:%",
        ).fetchone()
        count, final_at = row or (0, None)
        return Recoverable(count, optional_instant(final_at))

    @reads
    def recoverable_until(self, session: CommonSession, id: str) -> datetime | None:
        """Return when the grace period of a forgotten memory or action ends; None for an unknown id."""
        final_at = session.scalar(
            "SELECT min(final_at) FROM forgotten "
            "WHERE owner = %(owner)s AND (id = %(id)s OR call = %(id)s)",
            id=id,
        )
        return optional_instant(final_at)

    def forget_orphaned_names(self) -> None:
        """Erase from logs and compactions the names of sessions and sources that no memory or summary has."""
        for column, nameless in (("session_id", ""), ("source", None)):
            named = " UNION ".join(
                f"SELECT {column} AS name FROM {table} "
                f"WHERE owner = %(owner)s AND {column} != ''"
                for table in NAMING
            )
            with self._engine.reading() as session:
                names = session.column(
                    f"SELECT n.name FROM ({named}) AS n {self._unless_named.format(column)}"
                )
            if names:
                self._erase_names(column, names, nameless)

    @writes
    def _erase_names(
        self,
        session: CommonSession,
        column: str,
        names: Sequence[str],
        nameless: str | None,
    ) -> None:
        """Replace names in a column of logs and compactions by `nameless`, except names of memories."""
        named = " UNION ".join(
            f"SELECT DISTINCT {column} FROM {table} "
            f"WHERE owner = %(owner)s AND {column} = ANY(%(names)s::text[])"
            for table in (session.memory_tables[0], "episode")
        )
        gone = {*names}.difference(session.column(named, names=list(names)))
        for table in NAMING if gone else ():
            session.update(table, {column: nameless}, **{column: gone})

    @reads
    def purge_due(self, session: CommonSession) -> bool:
        """Return whether deleted text still waits for a purge."""
        return session.select_value("scrub_due", "1", "LIMIT 1") is not None

    @abstractmethod
    def purge_deleted(self) -> bool:
        """Overwrite all text deleted before this call in the files of the store.

        Return False if some text remains because another program is reading; then try again later. On a
        server this is only a VACUUM, and `places_beyond_purge` names what the server keeps.
        """

    def places_beyond_purge(self) -> tuple[str, ...]:
        """Return sentences that name the places where deleted text remains after a purge, and until when."""
        return ()


def _relink_supersessions(session: CommonSession, seqs: Sequence[int]) -> None:
    """Link memories superseded by `seqs` with the successors of these; without any they apply again."""
    rows = session.select("memory_state", "DISTINCT superseded_by", superseded_by=seqs)
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
    """Return the ids of memories that apply again without `found`, and row numbers of episodes to rewrite."""
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
        state.unpruned_episodes(session, again)
        | endings.episodes_of_older(session, [memory.id for memory in found]),
    )


def _preview_summaries(
    session: CommonSession, leaving: Mapping[int, int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the row numbers of (summaries that a deletion would delete, summaries that it would empty).

    `leaving` has the number of deleted originals by the row number of their episode. A summary that loses all
    of its sources is deleted; the roll-ups above it follow, level by level.
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
