"""Endings of statements: found, read for hits, undone and forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType

from mnemosyned.memory import listing, values
from mnemosyned.memory.endings import EndingRecord, join_ended_clauses
from mnemosyned.storage.common.rows import ENDINGS, stored_values
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    StorePart,
    as_method,
    reads,
    writes,
)
from mnemosyned.storage.common.state import invalidate, unpruned_episodes
from mnemosyned.text.dates.mentions import announced_start
from mnemosyned.text.endings.statements import sentence_at

INVOLVED = (
    "AND (older_id = ANY(%(ids)s::text[]) OR newer_id = ANY(%(ids)s::text[]) "
    "OR agreed_id = ANY(%(ids)s::text[]))"
)
_BY_NEWER = "AND newer_id = ANY(%(ids)s::text[])"
_key = attrgetter("older", "newer", "older_place", "older_start", "older_end")
ENDINGS_OF_MAX = 1_000
"""Endings read for one answer."""
EDITED_MAX = 1_000
"""Marks of edited memories read at once."""


def forget_endings(
    session: CommonSession, ids: Sequence[str], *, keeps_undone: bool = False
) -> None:
    """Delete the endings in which deleted or reworded memories are involved.

    With `keeps_undone`, endings that a person undid stay, so that they are not found again.
    """
    session.execute(
        f"DELETE FROM ending WHERE owner = %(owner)s {'AND NOT undone ' * keeps_undone}"
        f"{INVOLVED}",
        ids=list(ids),
    )


def episodes_of_older(session: CommonSession, ids: Sequence[str]) -> set[int]:
    """Return the row numbers of episodes, without pruned originals, whose statements end by these memories."""
    found = ENDINGS.find(session, f"AND NOT undone {INVOLVED}", ids=list(ids))
    return _episodes_of(session, [each.older for each in found]) if found else set()


def read_ended(
    session: CommonSession, ids: Sequence[str]
) -> dict[str, tuple[values.EndedStatement, ...]]:
    """Return {memory id: ended statements}, with the earliest ending of each; undone endings do not count."""
    endings = ENDINGS.find(
        session,
        "AND older_id = ANY(%(ids)s::text[]) AND NOT undone LIMIT %(most)s",
        ids=list(ids),
        most=ENDINGS_OF_MAX,
    )
    quoted = _quote_endings(session, endings).items()
    ended: dict[str, dict[tuple[int, int, int], values.EndedStatement]] = {}
    for ending, statement in sorted(quoted, key=lambda each: each[1].at, reverse=True):
        place = (ending.older_place, ending.older_start, ending.older_end)
        ended.setdefault(ending.older, {})[place] = statement
    return {id: join_ended_clauses([*each.values()]) for id, each in ended.items()}


def _quote_endings(
    session: CommonSession, endings: Sequence[EndingRecord]
) -> dict[EndingRecord, values.EndedStatement]:
    """Return {ending: ended statement with both sentences}.

    Endings with a missing memory are left out, and those of a clause beyond its sentence, as of an edited one.
    """
    involved = {id for each in endings for id in (each.older, each.newer)}
    memories = session.memories(list(involved)) if involved else {}
    return {
        ending: values.EndedStatement(
            at=announced_start(successor, memories[ending.newer].created_at),
            by=ending.newer,
            reason=ending.reason,
            sentence=sentence,
            successor=successor,
            clause=sentence[ending.older_start : ending.older_end],
        )
        for ending in endings
        if {ending.older, ending.newer} <= memories.keys()
        for sentence, successor in [
            (
                sentence_at(memories[ending.older].content, ending.older_place),
                sentence_at(memories[ending.newer].content, ending.newer_place),
            )
        ]
        if ending.older_end <= len(sentence) or not sentence
    }


def read_memories_after(
    session: CommonSession, position: int, *, limit: int, condition: str = ""
) -> dict[int, values.MemoryRecord]:
    """Return {row number: memory} of the first `limit` above row `position`; `condition` is SQL on `m`."""
    memories = session.memories_at(
        session.column(
            # Each part by its index, and no further than the limit.
            "SELECT seq FROM (SELECT m.seq FROM fresh AS m WHERE m.owner = %(owner)s "
            f"AND m.seq > %(read)s {condition} ORDER BY m.seq LIMIT %(most)s) AS working UNION ALL "
            "SELECT seq FROM (SELECT m.seq FROM placed AS m WHERE m.owner = %(owner)s "
            f"AND m.seq > %(read)s {condition} ORDER BY m.seq LIMIT %(most)s) AS promoted "
            "ORDER BY 1 LIMIT %(most)s",
            read=position,
            most=limit,
        )
    )
    return dict(sorted(memories.items()))


class EndingStore(StorePart):
    """Keeps endings, and how far memories were read for them."""

    @reads
    def unread(
        self,
        session: CommonSession,
        *,
        limit: int,
        after: int = 0,
        newest: int | None = None,
    ) -> dict[int, values.MemoryRecord]:
        """Return {row number: memory} of up to `limit` memories above row `after` not yet read for endings.

        With `newest`, only memories with the last `newest` row numbers are returned.
        """
        read = session.select_value("ending_progress", "position") or 0
        if newest is not None:
            after = max(after, session.newest_memory() - newest)
        return read_memories_after(session, max(read, after), limit=limit)

    @reads
    def unread_rows(self, session: CommonSession) -> int:
        """Return how far the highest row number of a memory is above the last one read for endings."""
        read: int = session.select_value("ending_progress", "position") or 0
        return session.newest_memory() - read

    @reads
    def edited(
        self,
        session: CommonSession,
        *,
        positions: Sequence[int] | None = None,
        limit: int = EDITED_MAX,
    ) -> dict[int, int]:
        """Return {mark: row number} of up to `limit` edited memories to be read again, the first edit first.

        With `positions`, only the memories with these row numbers are returned.
        """
        where = {} if positions is None else {"memory_seq": positions}
        rows = session.select(
            "edited_memory",
            "mark, memory_seq",
            f"ORDER BY mark LIMIT {limit:d}",
            **where,
        )
        return dict(rows.fetchall())

    @reads
    def memories_at(
        self, session: CommonSession, positions: Sequence[int]
    ) -> dict[int, values.MemoryRecord]:
        """Return {row number: memory} for these row numbers; missing memories are left out."""
        return session.memories_at(positions)

    def add(
        self,
        endings: Sequence[EndingRecord],
        *,
        texts: Mapping[str, str] = MappingProxyType({}),
        judged: Sequence[str] = (),
        read_at: datetime | None = None,
        read_up_to: int | None = None,
        read_again: Sequence[int] = (),
    ) -> int:
        """Add unknown endings, and withdraw refuted ones; return how many were added or withdrawn.

        An ending is left out if a memory is missing, if a person undid an ending between its memories, or if a
        memory no longer begins with its text in `texts` ({id: text}). Stored endings by the newer memories
        `judged` are deleted if they are not in `endings`, not undone, and not found after `read_at`, when the
        memories were read. Summaries of the older memories are emptied, to be rewritten. In the same
        transaction, all memories up to the row number `read_up_to` are marked as read, and the marks
        `read_again` of edited memories are deleted. With either, the call does not wait for the disk: after a
        crash, these memories are read again.
        """

        def change(session: CommonSession) -> int:
            if read_up_to is not None:
                session.delete("ending_progress")
                session.insert("ending_progress", position=read_up_to)
            if read_again:
                session.delete("edited_memory", mark=read_again)
            if not (endings or judged):  # as of most memories
                return 0
            withdrawn = _withdraw_endings(session, judged, endings, read_at)
            added = _find_new_endings(session, endings, texts) if endings else []
            rows = [stored_values(ENDINGS.columns, each) for each in added]
            session.insert_each(ENDINGS.name, rows, UNLESS_KNOWN)
            changed = [*withdrawn, *(each.older for each in added)]
            if changed:
                empty_summaries(session, changed)
            return len(changed)

        return self._engine.write(change, durable=read_up_to is None and not read_again)

    @writes
    def mark_all_unread(self, session: CommonSession) -> None:
        """Mark all memories as not read for endings; known endings stay."""
        session.delete("ending_progress")

    of = reads(as_method(read_ended))

    quote = reads(as_method(_quote_endings))

    @reads
    def find(
        self,
        session: CommonSession,
        *,
        limit: int,
        id: str | None = None,
        undone: bool | None = None,
        after: listing.Place | None = None,
    ) -> list[EndingRecord]:
        """Return up to `limit` endings, the newest first.

        `id` selects endings with this memory as the older or the newer one; `undone` selects undone endings
        (True) or others (False). `after` is where the previous page ended: the time of its last ending, and how
        many endings of that time were listed.
        """
        conditions = [
            (id, "AND (older_id = %(id)s OR newer_id = %(id)s) "),
            (undone, "AND undone = %(undone)s "),
            (after, "AND found_at <= %(moment)s "),
        ]
        condition = "".join(text for value, text in conditions if value is not None)
        return ENDINGS.find(
            session,
            f"{condition}ORDER BY found_at DESC, newer_id DESC, older_id DESC, older_place DESC, "
            "older_start DESC, older_end DESC LIMIT %(most)s OFFSET %(seen)s",
            id=id,
            undone=undone,
            moment=after and after.moment,
            most=limit,
            seen=after.seq if after else 0,
        )

    @writes
    def undo(self, session: CommonSession, id: str, *, undone: bool = True) -> int:
        """Mark all endings of a memory's statements as undone, or not undone; return how many changed.

        If any changed, the memory's episode is emptied, to be rewritten, unless it has pruned originals.
        """
        changed = session.execute(
            "UPDATE ending SET undone = %(undone)s WHERE owner = %(owner)s "
            "AND older_id = %(id)s AND undone != %(undone)s",
            id=id,
            undone=undone,
        ).rowcount
        if changed:
            empty_summaries(session, [id])
        return changed


def _find_new_endings(
    session: CommonSession, endings: Sequence[EndingRecord], texts: Mapping[str, str]
) -> list[EndingRecord]:
    """Return the endings not stored yet of stored memories that still begin with their text in `texts`.

    Endings are left out if a person undid another ending between the two memories.
    """
    known = ENDINGS.find(session, _BY_NEWER, ids=list({each.newer for each in endings}))
    undone = {(each.older, each.newer) for each in known if each.undone}
    now = session.memories(list(texts)) if texts else {}
    edited = {id for id in now if not now[id].content.startswith(texts[id])}
    involved = {id for each in endings for id in each.involved}
    usable = session.positions_of(list(involved)).keys() - edited
    new = dict[object, EndingRecord]()
    for each in endings:
        pair = (each.older, each.newer)
        if pair not in undone and usable >= each.involved:
            new.setdefault(_key(each), each)
    for each in known:
        new.pop(_key(each), None)
    return list(new.values())


def _withdraw_endings(
    session: CommonSession,
    judged: Sequence[str],
    endings: Sequence[EndingRecord],
    read_at: datetime | None,
) -> list[str]:
    """Delete endings by the newer memories `judged` that are not in `endings`; return the older memories' ids.

    Endings stay if they were undone or found after `read_at`, or if the older memory was pruned or
    superseded.
    """
    true = set(map(_key, endings))
    refuted = [
        each
        for each in ENDINGS.find(
            session,
            f"{_BY_NEWER} AND NOT undone",
            ids=list(judged),
        )
        if _key(each) not in true and (read_at is None or each.found_at <= read_at)
    ]
    memories = session.memories([each.older for each in refuted]) if refuted else {}
    withdrawn = []
    for each in refuted:
        older = memories.get(each.older)
        if older and not older.pruned_at and not older.superseded_at:
            session.delete(
                "ending",
                older_id=each.older,
                newer_id=each.newer,
                older_place=each.older_place,
                older_start=each.older_start,
                older_end=each.older_end,
            )
            withdrawn.append(each.older)
    return withdrawn


def empty_summaries(session: CommonSession, ids: Sequence[str]) -> None:
    """Empty the episodes of these memories, to be rewritten, except episodes with pruned originals."""
    invalidate(session, _episodes_of(session, ids))


def _episodes_of(session: CommonSession, ids: Sequence[str]) -> set[int]:
    """Return the row numbers of the episodes of these memories; leave out those with a pruned original."""
    positions = session.positions_of(list(ids)).values()
    return unpruned_episodes(session, [seq for seq, _ in positions])
