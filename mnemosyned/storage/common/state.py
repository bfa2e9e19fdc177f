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
from mnemosyned.storage.common.session import UNLESS_KNOWN, CommonSession, replace_by


def request_purge(session: CommonSession) -> None:
    """Record that deleted words wait for a purge, as a new number: an earlier purge does not settle it."""
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
    session.insert(
        "revision",
        seq=session.new_number(),
        memory_seq=seq,
        changed_at=changed_at,
        content=content,
        content_hash=content_hash,
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
        dropped = {"content": None, "fields": "{}"}
        session.update("revision", dropped, memory_seq=seq)
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
    rows = session.select(
        "revision", "changed_at, content, fields", "ORDER BY seq DESC", memory_seq=seq
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
    found = position and session.select_value(
        "revision",
        "1",
        "LIMIT 1",
        memory_seq=position[0],
        content_hash=content_hash(content),
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
    rows = [{"memory_seq": seq, "name": name} for name in names]
    added = session.insert_each("tag", rows, UNLESS_KNOWN)
    count = session.select_value("tag", "count(*)", memory_seq=seq)
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
    return session.delete("tag", memory_seq=seq, name=names).rowcount


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
    session.delete("tag", memory_seq=seq)
    add_tags(session, seq, names)
