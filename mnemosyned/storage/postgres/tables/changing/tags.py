"""Tags of memories as rows."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.tags import TAGS_MAX
from mnemosyned.storage.postgres.database.session import Session


def add_tags(session: Session, seq: int, names: Iterable[str]) -> int:
    """Give a memory tags; returns how many it did not have. Raises `InvalidRequest` for too many."""
    added = session.execute(
        "INSERT INTO tag (owner, memory_seq, name) "
        "SELECT o.owner, %(seq)s, r.name FROM owner AS o "
        "CROSS JOIN unnest(%(names)s::text[]) AS r (name) WHERE o.owner = %(owner)s "
        "ON CONFLICT DO NOTHING",
        seq=seq,
        names=list(names),
    ).rowcount
    count = session.scalar(
        "SELECT count(*) FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=seq,
    )
    if count > TAGS_MAX:
        id = session.scalar(
            "SELECT id FROM memory WHERE owner = %(owner)s AND seq = %(seq)s", seq=seq
        )
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {TAGS_MAX} tags; remove some "
            "with `untag`",
            field="tags",
        )
    return added


def remove_tags(session: Session, seq: int, names: Iterable[str]) -> int:
    """Take tags from a memory; returns how many it had."""
    return session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "AND name = ANY(%(names)s)",
        seq=seq,
        names=list(names),
    ).rowcount


def replace_tags(session: Session, seq: int, names: Iterable[str]) -> None:
    """Give a memory these tags and no others."""
    session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s", seq=seq
    )
    add_tags(session, seq, names)
