"""State of memories, such as tags and earlier versions, and of summaries; summaries that become stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Literal

import msgspec

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory import exchange, forgetting, periods, values
from mnemosyned.memory.edit import HISTORY_MAX, REVISIONS_MAX, MemoryEdit
from mnemosyned.storage.common import rows
from mnemosyned.storage.common.session import UNLESS_KNOWN, CommonSession, replace_by

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
) -> values.Episode | None:
    """Return a summary by `id` or row number `seq`; None if unknown. `details` adds the exact values."""
    row = session.select(
        "episode", f"seq, {rows.EPISODE_COLUMNS}", **{key: value}
    ).fetchone()
    if row is None:
        return None
    episode = rows.episode_from(row[1:])
    if episode.level:
        made_of = session.select_column(
            "episode", "id", "ORDER BY covers_from, seq", parent_id=episode.id
        )
    else:
        made_of = session.original_ids(row[0])
    exact_values = tuple(session.details_under(episode.id)) if details else ()
    return replace(
        episode,
        summary_of=tuple(made_of),
        # Above an episode each value stands once.
        details=periods.distinct_details(exact_values)
        if episode.level
        else exact_values,
    )


def chain_above(session: CommonSession, summary: str | None) -> dict[str, int]:
    """Return {id: row number} of a summary and the roll-ups above it, lowest first; empty for None."""
    return dict(session.execute(_ABOVE, summary=summary).fetchall())


def ancestors(session: CommonSession, seqs: Iterable[int]) -> dict[int, int]:
    """Return {child: parent}, as row numbers, for these summaries and all roll-ups above them."""
    # Read as the recursion meets them: joined to them behind it, the planner of PostgreSQL would
    # read every summary.
    links = session.execute(
        "WITH RECURSIVE above (below, seq, parent_id) AS ("
        "SELECT NULL::bigint, e.seq, e.parent_id FROM episode AS e "
        "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s::bigint[]) "
        "UNION SELECT above.seq::bigint, p.seq, p.parent_id FROM above "
        "JOIN episode AS p ON p.owner = %(owner)s AND p.id = above.parent_id) "
        "SELECT below, seq FROM above WHERE below IS NOT NULL",
        seqs=sorted(seqs),
    )
    return dict(links.fetchall())


def name_rollup(session: CommonSession, id: str) -> None:
    """Give a roll-up the session and source of its children; each is empty if the children differ."""
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
    session.delete("emptied_episode", episode_seq=seq)
    session.insert("emptied_episode", mark=session.new_number(), episode_seq=seq)


def unpruned_episodes(session: CommonSession, seqs: Iterable[int]) -> set[int]:
    """Return the row numbers of episodes with an original in `seqs` and no pruned original.

    The summary of pruned originals must not be emptied, as nothing else is left of their words.
    """
    episodes = session.select_column("placed", "DISTINCT episode_seq", seq=seqs)
    return {episode for episode in episodes if not session.has_pruned(episode)}


def invalidate(
    session: CommonSession, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty episodes and the roll-ups above them, or delete them if they have no source left.

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
    """Delete an episode that has no originals left, its mark for rewriting, and its texts in the log."""
    _remove_from_log(session, id)
    session.delete("emptied_episode", episode_seq=seq)
    session.delete_episode(seq)


def _remove_from_log(session: CommonSession, episode: str) -> None:
    """Erase the summary preview and the fallback reason from the log entries of an episode."""
    erased = {"summary_preview": "", "fallback_reason": None}
    session.update("consolidation_log", erased, episode_id=episode)


@contextmanager
def changed_copy(session: CommonSession, id: str) -> Iterator[exchange.ForgottenCopy]:
    """Lend the copy of a forgotten memory to the block, then save it; for an unknown id, lend an empty one."""
    records = rows.FORGOTTEN.find(session, "AND id = %(id)s", id=id)
    yield records[0].data if records else exchange.ForgottenCopy()
    for record in records:
        session.update("forgotten", rows.stored_values("data", record), id=id)


def request_purge(session: CommonSession) -> None:
    """Record that deleted words wait for a purge; a purge already running does not count."""
    session.insert("scrub_due", asked=session.new_number())


def set_state(
    session: CommonSession,
    seq: int,
    field: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: datetime | int,
) -> None:
    """Set one field of the state of the memory at row number `seq`."""
    conflict = replace_by("memory_seq", [field])
    session.insert("memory_state", conflict, memory_seq=seq, **{field: value})


def end_supersession(session: CommonSession, seq: int) -> None:
    """Clear the supersession of the memory at row number `seq`; delete its state if nothing else is set."""
    none = {"superseded_at": None, "superseded_by": None}
    session.update("memory_state", none, memory_seq=seq)
    is_empty = "AND valid_until IS NULL AND pruned_at IS NULL"
    session.delete("memory_state", is_empty, memory_seq=seq)


def insert_revision(
    session: CommonSession, seq: int, revision: Mapping[str, object]
) -> None:
    """Insert the values of `REVISION_COLUMNS` as the newest revision of the memory at row number `seq`."""
    session.insert("revision", seq=session.new_number(), memory_seq=seq, **revision)


def add_revision(
    session: CommonSession,
    seq: int,
    edit: MemoryEdit,
    changed_at: datetime,
    derived: exchange.ForgottenCopy | None,
) -> None:
    """Save the text and fields before an edit as a revision; keep the newest `REVISIONS_MAX`.

    `derived` has what the edit deletes. With None, save only the time of the edit, and erase the texts of
    earlier revisions.
    """
    text = edit.before.content
    revision = {"changed_at": changed_at, "content_hash": forgetting.content_hash(text)}
    earlier: dict[str, object] = {"content": None, "fields": "{}"}
    if derived is None:
        session.update("revision", earlier, memory_seq=seq)
    else:
        fields = {name: getattr(edit.before, name) for name in edit.changed_fields}
        fields |= {rows.DERIVED: derived} if edit.is_reworded else {}
        earlier["fields"] = msgspec.json.encode(fields).decode()
        earlier["content"] = text if text != edit.after.content else None
    insert_revision(session, seq, revision | earlier)
    session.keep_newest("revision", "seq", "seq", REVISIONS_MAX, memory_seq=seq)


def supersede(session: CommonSession, *, old: str, new: str) -> None:
    """Mark the memory `old`, or the last in its chain of successors, as superseded by `new`.

    Both are ids. If that memory had superseded `new`, `new` applies again. The episodes of both, unless they
    have pruned originals, are emptied, to be rewritten. Raises `NotFound` for an unknown id, and
    `InvalidRequest` for a chain that is too long.
    """
    position, newer = session.position_of(old), session.position_of(new)
    if position is None:
        raise NotFound(f"no memory has the id {old!r}", field="supersedes")
    if newer is None:
        raise NotFound(f"no memory has the id {new!r}", field="id")
    new_seq = newer[0]
    chain = list_successors(session, position[0], old)
    if new_seq in chain:  # the same call again
        return
    seq, changed = chain[-1], [chain[-1]]
    if seq in list_successors(session, new_seq, new):
        end_supersession(session, new_seq)
        changed.append(new_seq)
    moment = session.memories_at([new_seq])[new_seq].created_at
    set_state(session, seq, "superseded_at", moment)
    set_state(session, seq, "superseded_by", new_seq)
    # With pruned originals, the summary is all that is left of their words: it stays.
    invalidate(session, unpruned_episodes(session, changed))


def list_successors(session: CommonSession, seq: int, id: str) -> list[int]:
    """Return the row numbers of a memory and its successors in order. Raises `InvalidRequest` for too many."""
    chain = [seq]
    while successor := session.successor_of(chain[-1]):
        if len(chain) == HISTORY_MAX:
            raise InvalidRequest(
                f"{id} was superseded over {HISTORY_MAX} times; forget it first",
                field="supersedes",
            )
        chain.append(successor[0])
    return chain


def add_tags(session: CommonSession, seq: int, names: Iterable[str]) -> None:
    """Add tags to a memory. Raises `InvalidRequest` for too many."""
    tags = [{"memory_seq": seq, "name": name} for name in names]
    session.insert_each("tag", tags, UNLESS_KNOWN)
    count = session.select_value("tag", "count(*)", memory_seq=seq)
    if count > values.TAGS_MAX:
        id = session.memories_at([seq])[seq].id
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {values.TAGS_MAX} tags; remove "
            "some with `untag`",
            field="tags",
        )


def insert_tags_and_validity(
    session: CommonSession, seq: int, memory: values.MemoryRecord
) -> None:
    """Insert the tags and the expiry of a new memory, if it has any, by its row number."""
    if memory.valid_until:
        set_state(session, seq, "valid_until", memory.valid_until)
    if memory.tags:
        add_tags(session, seq, memory.tags)
