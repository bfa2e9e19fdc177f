"""Exact values of originals as rows."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.domain.memory import Detail
from mnemosyned.storage.postgres.database.session import Session


def insert_details(
    session: Session, details: Sequence[Detail], episode_seq: int
) -> None:
    """Insert the details of an episode's originals."""
    if not details:
        return
    rows = session.execute(
        "SELECT m.id, m.seq FROM placed AS p "
        "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s",
        episode=episode_seq,
    )
    seqs: dict[str, int] = dict(rows)
    session.execute(
        "INSERT INTO detail (owner, memory_seq, kind, value, sensitive) "
        "SELECT o.owner, r.* FROM owner AS o "
        "CROSS JOIN unnest(%(seqs)s::bigint[], %(kinds)s::text[], %(values)s::text[], "
        "%(sensitive)s::bool[]) AS r WHERE o.owner = %(owner)s",
        seqs=[seqs[detail.memory] for detail in details],
        kinds=[str(detail.kind) for detail in details],
        values=[detail.value for detail in details],
        sensitive=[bool(detail.sensitive) for detail in details],
    )


def sensitive_details(session: Session, episode_seq: int) -> list[tuple[str, str]]:
    """Kinds and values of the secrets that an episode's originals hold."""
    rows = session.execute(
        "SELECT d.kind, d.value FROM placed AS p "
        "JOIN detail AS d ON d.owner = p.owner AND d.memory_seq = p.seq "
        "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND d.sensitive",
        episode=episode_seq,
    )
    return [(kind, value) for kind, value in rows]
