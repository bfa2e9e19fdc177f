"""Undo: recorded actions, and consolidation taken apart. Originals put back into working memory, or pruned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned import errors, instants
from mnemosyned.memory.forgetting import Prunable, Removal, Retention, UndoneEpisode
from mnemosyned.memory.values import (
    ACTIONS_MAX,
    Action,
    ActionKind,
    ActionStep,
    Tier,
    UndoableAction,
)
from mnemosyned.storage.common.injections import erase_injected_texts
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    StorePart,
    as_method,
    instant,
    reads,
    replace_by,
    writes,
)
from mnemosyned.storage.common.state import chain_above, delete_episode, invalidate

_EXPIRED = (
    "(created_at <= %(before)s::timestamptz OR seq <= (SELECT newer.seq FROM undo_action AS newer "
    "WHERE newer.owner = %(owner)s ORDER BY newer.seq DESC LIMIT 1 OFFSET %(most)s))"
)
"""Condition for actions that can no longer be undone."""
STEPS_READ = 500
"""Memories that are read at once."""
STEPS_MAX = 1 << 31
"""A number of steps that no action reaches."""


def record_action(
    session: CommonSession, action: Action | None, changed: Iterable[tuple[int, str]]
) -> None:
    """Record that an action changed memories; without an action or a change, do nothing.

    `changed` has the row number of every memory, with the tag that was added or removed, if any, else
    ''. Raises `InvalidRequest` for an import with the id of another action.
    """
    steps = list(changed)
    if action is None or not steps:
        return
    insert_action(session, action)
    number = session.select_value(
        "undo_action", "seq", id=action.id, kind=action.kind.value
    )
    if number is None:
        raise errors.InvalidRequest(
            f"{action.id} is the id of another action; give the import another one",
            field="import_id",
        )
    rows = [{"action": number, "memory_seq": seq, "tag": tag} for seq, tag in steps]
    session.insert_each("undo_step", rows, UNLESS_KNOWN)


def insert_action(session: CommonSession, action: Action) -> None:
    """Insert an action unless it is recorded, as by an earlier part of an import."""
    session.insert(
        "undo_action",
        UNLESS_KNOWN,
        seq=session.new_number(),
        id=action.id,
        kind=action.kind.value,
        created_at=action.at,
    )


def delete_actions(session: CommonSession, condition: str, **values: object) -> None:
    """Delete the actions that meet an SQL condition on `values`, with their steps."""
    numbers = session.column(
        f"SELECT seq FROM undo_action WHERE owner = %(owner)s AND {condition}", **values
    )
    if numbers:
        session.delete("undo_step", action=numbers)
        session.delete("undo_action", seq=numbers)


def changed_after(session: CommonSession, id: str) -> set[tuple[int, str]]:
    """Return (row number, tag) of the steps of an action whose memories were changed again later.

    For a tag or a pin, only later changes of the same tag, or of pins, count.
    """
    rows = session.execute(
        "SELECT DISTINCT s.memory_seq, s.tag FROM undo_action AS a "
        "JOIN undo_step AS s ON s.owner = a.owner AND s.action = a.seq "
        "JOIN undo_step AS later ON later.owner = a.owner "
        "AND later.memory_seq = s.memory_seq AND later.action > a.seq "
        "JOIN undo_action AS b ON b.owner = a.owner AND b.seq = later.action "
        "WHERE a.owner = %(owner)s AND a.id = %(id)s AND (a.kind = 'import' "
        "OR (later.tag = s.tag AND b.kind IN ('tag', 'untag', 'pin', 'unpin')))",
        id=id,
    )
    return set(rows.fetchall())


EPISODES_READ = 100
"""Episodes whose originals are read in one statement."""


class RetentionStore(StorePart):
    """Restores memories, and prunes the text of old originals."""

    @writes
    def restore(self, session: CommonSession, id: str) -> Removal:
        """Move an original from the archive back to working memory, pinned; return what changed.

        Raises `BatchChanged` if `id` is not that of an original with text, and `WordsPruned` if other
        originals of the episode were pruned, whose only remains are in the summary.
        """
        position = session.position_of(id)
        seq, episode = position or (0, None)
        has_words = session.scalar(
            "SELECT 1 FROM placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.seq = %(seq)s AND m.content != ''",
            seq=seq,
        )
        if episode is None or not has_words:
            raise errors.BatchChanged("the memory was changed concurrently; retry")
        if session.has_pruned(episode):
            raise errors.WordsPruned(
                "other originals of its episode were pruned, and the summary is all that is left of "
                "their words; restoring this one would delete it. `get` shows this one",
                field="id",
            )
        session.share_secret_marks(seq, episode)
        session.return_to_working("seq", seq)
        session.update(session.memory_table(None), {"pinned": True}, seq=seq)
        removed, emptied = invalidate(session, [episode])
        return Removal(archived=1, removed=removed, emptied=emptied)

    @reads
    def prunable(
        self, session: CommonSession, retention: Retention, *, now: datetime, limit: int
    ) -> Prunable:
        """Return up to about `limit` originals to prune by a retention policy: whole episodes, oldest first."""
        # An episode is chosen if it ended before `before`, or as long as fewer than `excess`
        # characters are chosen.
        before = datetime.min.replace(tzinfo=UTC)
        if retention.keep is not None:
            before = instants.shift(now, -retention.keep)
        excess = 0
        if retention.characters_max is not None:
            excess = session.totals()[Tier.ARCHIVE][1] - retention.characters_max
        ids: list[str] = []
        times: list[datetime] = []
        characters = 0
        for begins, ends, originals in _read_unpruned(session):
            too_much = characters < excess
            if len(ids) >= limit or not (too_much or begins < before):
                break
            if too_much or ends < before:
                for id, created_at, size in originals:
                    ids.append(id)
                    times.append(created_at)
                    characters += size
        return Prunable(
            ids=tuple(ids),
            characters=characters,
            oldest=min(times, default=None),
            newest=max(times, default=None),
        )

    @writes
    def prune(
        self, session: CommonSession, ids: Sequence[str], *, now: datetime
    ) -> int:
        """Delete texts, injected copies, vectors and revisions of originals; return how many had a text."""
        # What was forgotten or restored meanwhile is not among them.
        originals = session.execute(
            "SELECT m.seq, m.content, m.role FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            f"WHERE m.owner = %(owner)s AND {session.of_ids} AND m.content != ''",
            ids=list(ids),
        ).fetchall()
        seqs = [seq for seq, _, _ in originals]
        session.erase_texts(originals)
        for table in ("embedding", "revision"):
            session.delete(table, memory_seq=seqs)
        session.insert_each(
            "memory_state",
            [{"memory_seq": seq, "pruned_at": now} for seq in seqs],
            replace_by("memory_seq", ["pruned_at"]),
        )
        erase_injected_texts(session, ids)
        return len(seqs)


def _read_unpruned(
    session: CommonSession,
) -> Iterator[tuple[datetime, datetime, list[tuple[str, datetime, int]]]]:
    """Yield first time, last time and unpruned originals (id, time, length) of each episode, oldest first."""
    begins, seq = datetime.min.replace(tzinfo=UTC), 0
    while True:  # ends, as each step is past the last
        episodes = session.execute(
            "SELECT covers_from, seq, covers_until FROM episode "
            "WHERE owner = %(owner)s AND level = 0 "
            "AND (covers_from, seq) > (%(begins)s, %(seq)s) "
            "ORDER BY covers_from, seq LIMIT %(most)s",
            begins=begins,
            seq=seq,
            most=EPISODES_READ,
        ).fetchall()
        rows = session.execute(
            "SELECT p.episode_seq, m.id, m.created_at, length(m.content) FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(episodes)s) AND m.content != '' "
            "ORDER BY p.episode_seq, p.seq",
            episodes=[row[1] for row in episodes],
        )
        originals = {
            episode: [(id, instant(moment), size) for _, id, moment, size in group]
            for episode, group in groupby(rows, key=itemgetter(0))
        }
        for since, episode, until in episodes:
            if episode in originals:
                yield instant(since), instant(until), originals[episode]
        if len(episodes) < EPISODES_READ:
            return
        begins, seq = instant(episodes[-1][0]), episodes[-1][1]


class UndoStore(StorePart):
    """Recorded actions with the memories that each one changed; takes consolidated episodes apart again."""

    @reads
    def actions(
        self,
        session: CommonSession,
        *,
        since: datetime,
        id: str | None = None,
        limit: int = 1,
    ) -> list[UndoableAction]:
        """Return up to `limit` actions after `since`, the newest first; with `id` only this action."""
        rows = session.execute(
            "SELECT a.id, a.kind, a.created_at, (SELECT count(DISTINCT s.memory_seq) "
            "FROM undo_step AS s WHERE s.owner = %(owner)s AND s.action = a.seq) "
            "FROM undo_action AS a WHERE a.owner = %(owner)s "
            "AND (%(id)s::text IS NULL OR a.id = %(id)s::text) "
            "AND a.created_at > %(since)s::timestamptz ORDER BY a.seq DESC LIMIT %(limit)s",
            id=id,
            since=since,
            limit=limit,
        )
        return [
            UndoableAction(
                id=action, kind=ActionKind(kind), at=instant(moment), memories=count
            )
            for action, kind, moment, count in rows
        ]

    @reads
    def steps(
        self, session: CommonSession, id: str, *, limit: int = STEPS_MAX
    ) -> list[ActionStep]:
        """Return the memories that an action changed and that still exist; read `limit` at most."""
        steps = session.execute(
            "SELECT s.memory_seq, s.tag FROM undo_action AS a JOIN undo_step AS s "
            "ON s.owner = a.owner AND s.action = a.seq WHERE a.owner = %(owner)s "
            "AND a.id = %(id)s ORDER BY s.memory_seq LIMIT %(limit)s",
            id=id,
            limit=limit,
        ).fetchall()
        found: list[ActionStep] = []
        for start in range(0, len(steps), STEPS_READ):
            chunk = steps[start : start + STEPS_READ]
            memories = session.memories_at({seq for seq, _ in chunk})
            found += [
                ActionStep(seq, memories[seq].id, tag)
                for seq, tag in chunk
                if seq in memories
            ]
        return found

    changed_after = reads(as_method(changed_after))

    @writes
    def delete(self, session: CommonSession, id: str) -> None:
        """Delete the record of an action that was undone."""
        delete_actions(session, "id = %(id)s", id=id)

    @reads
    def has_expired(self, session: CommonSession, before: datetime) -> bool:
        """Return whether `expire` would delete any action."""
        found = session.scalar(
            f"SELECT 1 FROM undo_action WHERE owner = %(owner)s AND {_EXPIRED} LIMIT 1",
            before=before,
            most=ACTIONS_MAX,
        )
        return found is not None

    @writes
    def expire(self, session: CommonSession, before: datetime) -> None:
        """Delete the actions of `before` or earlier, and all but the newest `ACTIONS_MAX`."""
        delete_actions(session, _EXPIRED, before=before, most=ACTIONS_MAX)

    @reads
    def preview(
        self, session: CommonSession, episodes: Sequence[str]
    ) -> list[UndoneEpisode]:
        """Return the results that undoing these episodes would have, in order; change nothing."""
        return [_read_undoable(session, id)[2] for id in episodes]

    @reads
    def cycles(self, session: CommonSession, *, limit: int = 1) -> list[UndoableAction]:
        """Return the newest cycles that can be undone, newest first, from up to `limit` rows of the log."""
        cycles: dict[str, UndoableAction] = {}
        for cycle, trigger, moment, count in session.execute(
            'SELECT l.cycle_id, l."trigger", l.created_at, l.items_consolidated '
            "FROM consolidation_log AS l WHERE l.owner = %(owner)s "
            "AND l.episode_id IS NOT NULL AND l.level = 0 AND l.undone_at IS NULL AND EXISTS ("
            "SELECT 1 FROM episode AS e "
            "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE e.owner = %(owner)s AND e.id = l.episode_id AND m.content != '') "
            "ORDER BY l.id DESC LIMIT %(limit)s",
            limit=limit,
        ):
            first = UndoableAction(
                id=cycle,
                kind=ActionKind.SLEEP,
                at=instant(moment),
                memories=0,
                trigger=trigger,
            )
            known = cycles.get(cycle, first)
            cycles[cycle] = replace(known, memories=known.memories + count)
        return list(cycles.values())

    @writes
    def undo_episodes(
        self,
        session: CommonSession,
        episodes: Sequence[str],
        *,
        now: datetime,
        held_until: datetime,
    ) -> list[UndoneEpisode]:
        """Move the originals of episodes back to working memory, and delete the episodes.

        An episode with pruned originals stays. Until `held_until` no cycle takes the memories
        again, except a cycle that ignores age. Return one result for each episode.
        """
        results: list[UndoneEpisode] = []
        for id in episodes:
            seq, parent, result = _read_undoable(session, id)
            results.append(result)
            if result.pruned:
                continue
            gone = [id]
            if result.covers:
                session.insert_each(
                    "working_state",
                    [
                        {"memory_seq": original, "held_until": held_until}
                        for original in session.return_to_working("episode_seq", seq)
                    ],
                    replace_by("memory_seq", ["held_until"]),
                )
                above = chain_above(session, parent)
                delete_episode(session, seq, id)
                removed, _ = invalidate(session, [above[parent]] if parent else [])
                gone += [upper for upper, number in above.items() if number in removed]
            session.update("consolidation_log", {"undone_at": now}, episode_id=gone)
        return results


def _read_undoable(
    session: CommonSession, id: str
) -> tuple[int, str | None, UndoneEpisode]:
    """Return an episode's row number (0 if unknown), its parent's id or None, and the result of undoing it."""
    row = session.execute(
        "SELECT e.seq, e.parent_id, e.covers_from, e.covers_until, count(m.seq), "
        "count(m.seq) FILTER (WHERE m.content = '') FROM episode AS e "
        "LEFT JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
        "LEFT JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE e.owner = %(owner)s AND e.id = %(id)s "
        "GROUP BY e.seq, e.parent_id, e.covers_from, e.covers_until",
        id=id,
    ).fetchone()
    if row is None:
        return 0, None, UndoneEpisode(episode=id)
    seq, parent, begins, ends, originals, pruned = row
    return (
        seq,
        parent,
        UndoneEpisode(
            episode=id,
            originals=originals,
            restored=0 if pruned else originals,
            pruned=pruned,
            covers=(instant(begins), instant(ends)),
        ),
    )
