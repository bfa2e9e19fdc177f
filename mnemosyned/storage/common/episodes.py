"""Summaries: hierarchy, names, and summaries that are stale because a source is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from mnemosyned.memory.periods import distinct_details
from mnemosyned.memory.values import Episode
from mnemosyned.storage.common.rows import EPISODE_COLUMNS, episode_from
from mnemosyned.storage.common.session import CommonSession

_ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episode
        WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episode AS e ON e.owner = %(owner)s AND e.id = above.parent_id
    ) SELECT id, seq FROM above
"""


def episode_at(
    session: CommonSession,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """Return an episode by `id` or row number `seq`, as `key` says, or None; exact values with `details`."""
    row = session.select(
        "episode", f"seq, {EPISODE_COLUMNS}", **{key: value}
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    if episode.level:
        made_of = session.select_column(
            "episode", "id", "ORDER BY covers_from, seq", parent_id=episode.id
        )
    else:
        made_of = session.original_ids(row[0])
    values = tuple(session.details_under(episode.id)) if details else ()
    return replace(
        episode,
        summary_of=tuple(made_of),
        # Above an episode each value stands once.
        details=distinct_details(values) if episode.level else values,
    )


def chain_above(session: CommonSession, summary: str | None) -> dict[str, int]:
    """Return a summary and the roll-ups above it, lowest first: row numbers by id; none for None."""
    return dict(session.execute(_ABOVE, summary=summary).fetchall())


def ancestors(session: CommonSession, seqs: Iterable[int]) -> dict[int, int]:
    """Return the parent of each summary and each roll-up above that has one; all are row numbers."""
    # Read as the recursion meets them: joined to them behind it, the planner of PostgreSQL would
    # read every summary.
    rows = session.execute(
        "WITH RECURSIVE above (below, seq, parent_id) AS ("
        "SELECT NULL::bigint, e.seq, e.parent_id FROM episode AS e "
        "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s::bigint[]) "
        "UNION SELECT above.seq::bigint, p.seq, p.parent_id FROM above "
        "JOIN episode AS p ON p.owner = %(owner)s AND p.id = above.parent_id) "
        "SELECT below, seq FROM above WHERE below IS NOT NULL",
        seqs=sorted(seqs),
    )
    return dict(rows.fetchall())


def name_rollup(session: CommonSession, id: str) -> None:
    """Give a roll-up the session and source of all of its children, or none if these differ."""
    row = session.execute(
        "SELECT CASE WHEN min(session_id) = max(session_id) THEN min(session_id) ELSE '' END, "
        "CASE WHEN min(coalesce(source, '')) = max(coalesce(source, '')) THEN min(source) END, "
        "(SELECT p.session_id FROM episode AS p WHERE p.owner = %(owner)s AND p.id = %(id)s), "
        "(SELECT p.source FROM episode AS p WHERE p.owner = %(owner)s AND p.id = %(id)s) "
        "FROM episode WHERE owner = %(owner)s AND parent_id = %(id)s",
        id=id,
    ).fetchone()
    name, source, *present = row or ("", None)
    if present != [name, source]:
        session.update("episode", {"session_id": name, "source": source}, id=id)


def mark_emptied(session: CommonSession, seq: int) -> None:
    """Mark the emptied summary at row number `seq` to be rewritten.

    The mark is a new number, so that a rewrite which began before is refused.
    """
    unmark_emptied(session, seq)
    session.insert("emptied_episode", mark=session.new_number(), episode_seq=seq)


def unmark_emptied(session: CommonSession, seq: int) -> None:
    """Remove the summary at row number `seq` from the list of summaries to rewrite."""
    session.delete("emptied_episode", episode_seq=seq)


def mark_emptied_again(session: CommonSession, episodes: Iterable[int]) -> None:
    """Mark the emptied ones of these summaries again, so that a rewrite in progress is refused."""
    rows = session.select(
        "emptied_episode", "episode_seq", episode_seq=episodes
    ).fetchall()
    for (seq,) in rows:
        mark_emptied(session, seq)


def unpruned_episodes(session: CommonSession, seqs: Iterable[int]) -> set[int]:
    """Return the row numbers of episodes with an original in `seqs` and no pruned original.

    With pruned ones, a summary is all that is left of the words, and is not to be emptied.
    """
    rows = session.select("placed", "DISTINCT episode_seq", seq=seqs).fetchall()
    return {episode for (episode,) in rows if not session.has_pruned(episode)}


def invalidate(
    session: CommonSession, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty episodes and the roll-ups above them, or delete those without any source left.

    `episodes` are row numbers. Return the row numbers of deleted and of emptied summaries.
    """
    deleted: set[int] = set()
    emptied: set[int] = set()
    waiting = set(episodes)
    while waiting:  # ends, as each step goes up a level
        seq = waiting.pop()
        row = session.execute(
            "SELECT e.id, (SELECT p.seq FROM episode AS p "
            "WHERE p.owner = %(owner)s AND p.id = e.parent_id), "
            "(SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq), "
            "EXISTS (SELECT 1 FROM episode AS c "
            "WHERE c.owner = %(owner)s AND c.parent_id = e.id) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND e.seq = %(seq)s",
            seq=seq,
        ).fetchone()
        if row is None:
            continue
        id, parent, originals, has_children = row
        if originals or has_children:
            _remove_from_log(session, id)
            session.empty_episode(seq, originals=originals)
            mark_emptied(session, seq)
            emptied.add(seq)
        else:
            delete_episode(session, seq, id)
            deleted.add(seq)
            emptied.discard(seq)
        if parent is not None:
            waiting.add(parent)
    return frozenset(deleted), frozenset(emptied)


def delete_episode(session: CommonSession, seq: int, id: str) -> None:
    """Delete an episode without originals and children, its mark, and its text in the log."""
    _remove_from_log(session, id)
    unmark_emptied(session, seq)
    session.delete_episode(seq)


def _remove_from_log(session: CommonSession, episode: str) -> None:
    """Erase the summary preview and the fallback reason from the log entries of an episode."""
    erased = {"summary_preview": "", "fallback_reason": None}
    session.update("consolidation_log", erased, episode_id=episode)
