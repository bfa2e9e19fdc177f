"""State of memories in rows of their own: validity, supersession, tags, earlier versions, purges due."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.edit import HISTORY_MAX, REVISIONS_MAX, MemoryEdit
from mnemosyned.memory.intake import content_hash
from mnemosyned.memory.values import TAGS_MAX, MemoryRecord, Revision
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import CommonSession


def request_purge(session: CommonSession) -> None:
    """Record that deleted words wait for a purge, as a new number: an earlier purge does not settle it."""
    session.execute(
        "INSERT INTO scrub_due (owner, asked) VALUES (%(owner)s, %(asked)s)",
        asked=session.new_number(),
    )


def set_state(
    session: CommonSession,
    seq: int,
    field: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: datetime | int,
) -> None:
    """Set one field of the state of the memory at row number `seq`."""
    session.execute(
        f"INSERT INTO memory_state (owner, memory_seq, {field}) "
        "VALUES (%(owner)s, %(seq)s, %(value)s) "
        f"ON CONFLICT (owner, memory_seq) DO UPDATE SET {field} = excluded.{field}",
        seq=seq,
        value=value,
    )


def insert_revision(
    session: CommonSession,
    seq: int,
    *,
    changed_at: datetime,
    content: str | None,
    content_hash: int,
    fields: str,
) -> None:
    """Insert the newest revision of the memory at row number `seq`.

    `content` is the text before the edit of the time `changed_at`, None where the text stayed or
    was dropped; `content_hash` is the hash of that text, and `fields` the other changed fields with
    their earlier values, as JSON.
    """
    session.execute(
        "INSERT INTO revision "
        "(owner, seq, memory_seq, changed_at, content, content_hash, fields) VALUES "
        "(%(owner)s, %(number)s, %(seq)s, %(changed_at)s, %(content)s, %(hash)s, %(fields)s)",
        number=session.new_number(),
        seq=seq,
        changed_at=changed_at,
        content=content,
        hash=content_hash,
        fields=fields,
    )


def add_revision(
    session: CommonSession,
    seq: int,
    edit: MemoryEdit,
    *,
    changed_at: datetime,
    drop_history: bool,
) -> None:
    """Save the text and fields before an edit as a revision; keep the newest `REVISIONS_MAX`.

    With `drop_history` save only the time of the edit, and erase the texts of earlier revisions.
    """
    text, fields = edit.earlier_state(drop_history=drop_history)
    if drop_history:
        session.execute(
            "UPDATE revision SET content = NULL, fields = '{}' "
            "WHERE owner = %(owner)s AND memory_seq = %(seq)s",
            seq=seq,
        )
    insert_revision(
        session,
        seq,
        changed_at=changed_at,
        content=text,
        content_hash=content_hash(edit.before.content),
        fields=msgspec.json.encode(fields).decode(),
    )
    session.execute(
        "DELETE FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s AND seq <= ("
        "SELECT seq FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "ORDER BY seq DESC LIMIT 1 OFFSET %(most)s)",
        seq=seq,
        most=REVISIONS_MAX,
    )


def revisions_of(session: CommonSession, seq: int) -> list[Revision]:
    """Return the revisions of the memory at a row number, the latest first."""
    rows = session.execute(
        "SELECT changed_at, content, fields FROM revision "
        "WHERE owner = %(owner)s AND memory_seq = %(seq)s ORDER BY seq DESC",
        seq=seq,
    )
    return [
        Revision(
            changed_at=instant(changed_at),
            text=text,
            fields=msgspec.json.decode(fields),
        )
        for changed_at, text, fields in rows
    ]


def was_said(session: CommonSession, id: str, content: str) -> bool:
    """Return whether an earlier revision of the memory with this id had exactly this text."""
    position = session.position_of(id)
    found = position and session.scalar(
        "SELECT 1 FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "AND content_hash = %(hash)s LIMIT 1",
        seq=position[0],
        hash=content_hash(content),
    )
    return bool(found)


def supersede(
    session: CommonSession,
    *,
    old: str,
    new: str,
) -> None:
    """Mark the memory `old`, or the last in its chain of successors, as superseded by `new`.

    Both are ids. The episode of the superseded memory is emptied, to be summarized again without
    it. Raises `NotFound` for an unknown id, and `InvalidRequest` for a chain that is too long.
    """
    position, newer = session.position_of(old), session.position_of(new)
    if position is None:
        raise NotFound(f"no memory has the id {old!r}", field="supersedes")
    if newer is None:
        raise NotFound(f"no memory has the id {new!r}", field="id")
    new_seq = newer[0]
    for _ in range(HISTORY_MAX):
        seq, episode = position
        if seq == new_seq:  # the same call again
            return
        successor = session.successor_of(seq)
        if successor is None:
            break
        position = successor
    else:
        raise InvalidRequest(
            f"{old} was superseded over {HISTORY_MAX} times; forget it first",
            field="supersedes",
        )
    moment = session.memories_at([new_seq])[new_seq].created_at
    set_state(session, seq, "superseded_at", moment)
    set_state(session, seq, "superseded_by", new_seq)
    # With pruned originals, the summary is all that is left of their words: it stays.
    if episode is not None and not session.has_pruned(episode):
        invalidate(session, [episode])


def add_tags(session: CommonSession, seq: int, names: Iterable[str]) -> int:
    """Add tags to a memory; return how many are new. Raises `InvalidRequest` for too many."""
    added = session.execute_many(
        "INSERT INTO tag (owner, memory_seq, name) VALUES (%(owner)s, %(seq)s, %(name)s) "
        "ON CONFLICT DO NOTHING",
        [{"seq": seq, "name": name} for name in names],
    )
    count = session.scalar(
        "SELECT count(*) FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=seq,
    )
    if count > TAGS_MAX:
        id = session.memories_at([seq])[seq].id
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {TAGS_MAX} tags; remove "
            "some with `untag`",
            field="tags",
        )
    return added


def remove_tags(session: CommonSession, seq: int, names: Iterable[str]) -> int:
    """Remove tags from the memory at a row number; return the number of removed tags."""
    return session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "AND name = ANY(%(names)s)",
        seq=seq,
        names=list(names),
    ).rowcount


def insert_tags_and_validity(
    session: CommonSession, memories: Iterable[tuple[int, MemoryRecord]]
) -> None:
    """Insert the tags and the expiry of new memories, given with their row numbers."""
    for seq, memory in memories:
        if memory.valid_until:
            set_state(session, seq, "valid_until", memory.valid_until)
        if memory.tags:
            add_tags(session, seq, memory.tags)


def replace_tags(session: CommonSession, seq: int, names: Iterable[str]) -> None:
    """Replace all tags of the memory at a row number by these tags."""
    session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s", seq=seq
    )
    add_tags(session, seq, names)
