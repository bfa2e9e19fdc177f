"""Rows of memories as they were before they were edited."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.memory import Revision
from mnemosyned.domain.revisions import REVISIONS_MAX, MemoryEdit
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import take_numbers
from mnemosyned.storage.postgres.tables.rows import OF_ID, utc


def keep_revision(
    session: Session, seq: int, edit: MemoryEdit, *, moment: datetime, drop: bool
) -> None:
    """Keep what a memory was; with `drop` only that it was, and of what was kept before no words."""
    text, fields = edit.earlier_state(drop=drop)
    if drop:
        session.execute(
            "UPDATE revision SET content = NULL, fields = '{}' "
            "WHERE owner = %(owner)s AND memory_seq = %(seq)s",
            seq=seq,
        )
    (number,) = take_numbers(session, "record", 1)
    session.execute(
        "INSERT INTO revision (owner, seq, memory_seq, changed_at, content, content_hash, fields) "
        "VALUES (%(owner)s, %(number)s, %(seq)s, %(moment)s, %(text)s, %(hash)s, %(fields)s)",
        number=number,
        seq=seq,
        moment=utc(moment),
        text=text,
        hash=content_hash(edit.before.content),
        fields=msgspec.json.encode(fields).decode(),
    )
    session.execute(
        "DELETE FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s AND seq <= ("
        "SELECT seq FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "ORDER BY seq DESC LIMIT 1 OFFSET %(most)s)",
        seq=seq,
        most=REVISIONS_MAX,
    )


def revisions_of(session: Session, seq: int) -> list[Revision]:
    """The revisions of a memory, the latest first."""
    rows = session.execute(
        "SELECT changed_at, content, fields FROM revision "
        "WHERE owner = %(owner)s AND memory_seq = %(seq)s ORDER BY seq DESC",
        seq=seq,
    )
    return [
        Revision(changed_at=moment, text=text, fields=msgspec.json.decode(fields))
        for moment, text, fields in rows
    ]


def was_said(session: Session, id: str, content: str) -> bool:
    """Whether a memory had these words before it was edited."""
    found = session.scalar(
        "SELECT 1 FROM memory AS m JOIN revision AS r "
        "ON r.owner = m.owner AND r.memory_seq = m.seq "
        f"WHERE m.owner = %(owner)s AND {OF_ID} AND r.content_hash = %(hash)s LIMIT 1",
        id=id,
        hash=content_hash(content),
    )
    return found is not None
