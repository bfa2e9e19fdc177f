"""Episodes as rows: inserted, and written anew."""

from __future__ import annotations

from typing import Any

from mnemosyned.domain.exchange import ExportedEpisode
from mnemosyned.domain.memory import Episode, Tier
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import (
    add_to_totals,
    note_rewording,
    pass_number,
    take_numbers,
)
from mnemosyned.storage.postgres.tables.rows import episode_values

_INDEXED = ("index_terms", "words", "grams", "repeated", "repeats")
_COLUMNS = (*EPISODE_COLUMNS.split(", "), *_INDEXED)
_INSERT = (
    f"INSERT INTO episode (owner, seq, {', '.join(_COLUMNS)}) "
    f"VALUES (%(owner)s, %(seq)s, {', '.join(f'%({name})s' for name in _COLUMNS)})"
)
_KEPT = ("id", "level", "period_from", "parent_id")
_REPLACE = (
    "UPDATE episode SET stale = false, "
    + ", ".join(f"{name} = %({name})s" for name in _COLUMNS if name not in _KEPT)
    + " WHERE owner = %(owner)s AND seq = %(seq)s"
)
_REWRITE = (
    f"UPDATE episode SET {', '.join(f'{name} = %({name})s' for name in _COLUMNS)} "
    "WHERE owner = %(owner)s AND seq = %(seq)s"
)


def insert_episode(session: Session, episode: Episode, index_terms: str) -> int:
    """Insert a summary; its number."""
    (seq,) = take_numbers(session, "record", 1)
    session.execute(_INSERT, **episode_values(episode, index_terms, session.owner, seq))
    add_to_totals(session, Tier.EPISODIC, count=1, characters=len(episode.content))
    return seq


def restore_episode(session: Session, episode: ExportedEpisode) -> int:
    """Insert a summary as it was; its number is the one it had, unless another has that now."""
    taken = session.scalar(
        "SELECT 1 FROM episode WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=episode.seq,
    )
    if taken:
        (seq,) = take_numbers(session, "record", 1)
    else:
        seq = episode.seq
        pass_number(session, "record", seq)
    record = Episode(
        id=episode.id,
        session=episode.session,
        source=episode.source,
        level=episode.level,
        content=episode.content,
        item_count=episode.item_count,
        covers_from=episode.covers_from,
        covers_until=episode.covers_until,
        summarizer=episode.summarizer,
        created_at=episode.created_at,
        period_from=episode.period_from,
    )
    session.execute(
        _INSERT, **episode_values(record, episode.index_terms, session.owner, seq)
    )
    add_to_totals(session, Tier.EPISODIC, count=1, characters=len(episode.content))
    if episode.stale:
        session.execute(
            "UPDATE episode SET stale = true WHERE owner = %(owner)s AND seq = %(seq)s",
            seq=seq,
        )
    return seq


def replace_rollup(
    session: Session, seq: int, episode: Episode, index_terms: str
) -> None:
    """Give the summary of a period its present text; its place in the hierarchy stays."""
    _update(session, _REPLACE, episode_values(episode, index_terms, session.owner, seq))


def rewrite_episode(
    session: Session, seq: int, episode: Episode, index_terms: str
) -> None:
    """Give a summary all values of another."""
    _update(session, _REWRITE, episode_values(episode, index_terms, session.owner, seq))


def _update(session: Session, statement: str, values: dict[str, Any]) -> None:
    before: int = session.scalar(
        "SELECT length(content) FROM episode WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=values["seq"],
    )
    session.execute(statement, **values)
    note_rewording(session)
    characters = len(values["content"]) - before
    add_to_totals(session, Tier.EPISODIC, characters=characters)
