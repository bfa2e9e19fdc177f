"""The archive: originals restored or pruned, and consolidation undone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.errors import BatchChanged, WordsPruned
from mnemosyned.instants import shift
from mnemosyned.memory.actions import ActionKind, UndoableAction
from mnemosyned.memory.forgetting import Prunable, Removal, Retention, UndoneEpisode
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.episodes import chain_above, delete_episode, invalidate
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
    replace_by,
    writes,
)

EPISODES_READ = 100
"""Episodes whose originals are read in one statement."""


class RetentionStore(Transactional):
    """Restores memories, and prunes the text of old originals."""

    @writes
    def restore(self, session: CommonSession, id: str) -> Removal:
        """Move an original from the archive back to working memory, pinned; return what changed.

        Raises `BatchChanged`, and `WordsPruned` if pruned originals would lose their summary.
        """
        position = session.position_of(id)
        seq, episode = position or (0, None)
        has_words = session.scalar(
            "SELECT 1 FROM placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.seq = %(seq)s AND m.content != ''",
            seq=seq,
        )
        if episode is None or not has_words:
            raise BatchChanged("the memory was changed concurrently; retry")
        if session.has_pruned(episode):
            raise WordsPruned(
                "other originals of its episode were pruned, and the summary is all that is left of "
                "their words; restoring this one would delete it. `get` shows this one",
                field="id",
            )
        self._return_pinned(session, seq, episode)
        removed, emptied = invalidate(session, [episode])
        return Removal(archived=1, removed=removed, emptied=emptied)

    @abstractmethod
    def _return_pinned(self, session: EngineSession, seq: int, episode: int) -> None:
        """Move the original at row number `seq` from its episode to working memory, and pin it.

        `episode` is the row number of its episode. Other originals of the episode whose text
        contains a secret of the memory have that value marked as secret.
        """

    @reads
    def prunable(
        self, session: CommonSession, retention: Retention, *, now: datetime, limit: int
    ) -> Prunable:
        """Return up to about `limit` originals that a retention gives up: whole episodes, oldest first."""
        # An episode is chosen if it ended before `before`, or as long as fewer than `excess`
        # characters are chosen.
        before = datetime.min.replace(tzinfo=UTC)
        if retention.keep is not None:
            before = shift(now, -retention.keep)
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

    @abstractmethod
    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        """Delete text, vectors and revisions of originals; return how many had a text. Exact values stay."""


def _read_unpruned(
    session: CommonSession,
) -> Iterator[tuple[datetime, datetime, list[tuple[str, datetime, int]]]]:
    """Yield each episode's ends, and id, time and length of its unpruned originals, oldest first."""
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


class UndoStore(Transactional):
    """Takes consolidated episodes apart again."""

    @reads
    def preview(
        self, session: CommonSession, episodes: Sequence[str]
    ) -> list[UndoneEpisode]:
        """Return the result that undoing each of these episodes would have, and change nothing."""
        return [_read_undoable(session, id)[2] for id in episodes]

    @reads
    def cycles(self, session: CommonSession, *, limit: int = 1) -> list[UndoableAction]:
        """Return the newest cycles with an episode to undo, newest first, by `limit` rows of the log."""
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
    def apply(
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
        return [self._undo_episode(session, id, now, held_until) for id in episodes]

    def _undo_episode(
        self, session: CommonSession, id: str, now: datetime, held_until: datetime
    ) -> UndoneEpisode:
        """Move an episode's originals, unless one was pruned, to working memory, and delete the episode."""
        seq, parent, result = _read_undoable(session, id)
        if result.pruned:
            return result
        gone = [id]
        if result.covers:
            session.insert_each(
                "working_state",
                [
                    {"memory_seq": original, "held_until": held_until}
                    for original in self._return_originals(session, seq)
                ],
                replace_by("memory_seq", ["held_until"]),
            )
            above = chain_above(session, parent)
            delete_episode(session, seq, id)
            removed, _ = invalidate(session, [above[parent]] if parent else [])
            gone += [upper for upper, number in above.items() if number in removed]
        session.update("consolidation_log", {"undone_at": now}, episode_id=gone)
        return result

    @abstractmethod
    def _return_originals(self, session: EngineSession, episode: int) -> list[int]:
        """Move all originals of the episode at a row number to working memory; return their row numbers."""


def _read_undoable(
    session: CommonSession, id: str
) -> tuple[int, str | None, UndoneEpisode]:
    """Return row number, parent, and the result of undoing an episode, with its originals' times."""
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
