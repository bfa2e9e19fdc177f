"""Rows and values: where columns meet the fields of memories; an owner's numbers and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from mnemosyned.fairness import give_way
from mnemosyned.instants import in_zone
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.engine_ports import LOCAL_NAME, LOCAL_OWNER
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.postgres.fulltext import COLUMN_END, gram_hashes, word_hashes
from mnemosyned.storage.postgres.session import Row, Session
from mnemosyned.text.terms import glued_words

MEMORY_FIELDS = (
    "m.id, m.session_id, m.source, m.role, m.content, m.importance, m.pinned, m.metadata, "
    "m.created_at, s.valid_until, s.superseded_at, s.pruned_at, "
    "(SELECT n.id FROM memory AS n WHERE n.owner = %(owner)s AND n.seq = s.superseded_by), "
    "(SELECT array_agg(t.name ORDER BY t.name) FROM tag AS t "
    "WHERE t.owner = %(owner)s AND t.memory_seq = m.seq), "
    "(SELECT max(r.changed_at) FROM revision AS r "
    "WHERE r.owner = %(owner)s AND r.memory_seq = m.seq), e.id"
)
"""Columns of `MEMORY_TABLES`, for `memory_from`."""
MEMORY_TABLES = (
    "memory AS m "
    "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
    "LEFT JOIN episode AS e ON e.owner = p.owner AND e.seq = p.episode_seq "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq"
)
"""A memory wherever it is: in working memory there is no `p`, and no `e`."""

WORKING_TABLES = (
    "memory AS m JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
    "LEFT JOIN (SELECT NULL::text AS id) AS e ON false"
)
"""The same in working memory, where no memory has an episode."""
OF_ID = (
    "m.seq = (SELECT i.seq FROM memory AS i "
    "WHERE i.owner = %(owner)s AND i.id = %(id)s::text)"
)
"""Condition for the memory with an id, where other tables are read or written beside it.

The server keeps no statistics of ids. It would take an id for that of one memory in two hundred,
and twenty ids for those of a tenth of all, and read the other tables from end to end; of numbers it
knows that they are few.
"""
OF_IDS = (
    "m.seq = ANY(ARRAY(SELECT i.seq FROM unnest(%(ids)s::text[]) AS n (id) CROSS JOIN LATERAL "
    "(SELECT o.seq FROM memory AS o WHERE o.owner = %(owner)s AND o.id = n.id LIMIT 1) AS i))"
)
"""The same for the memories with some ids, each looked up by itself: hundreds would be taken for all."""


def utc(moment: datetime) -> datetime:
    """The instant as it is stored: in UTC."""
    return in_zone(moment, UTC)


def storable(text: str) -> str:
    """A text that no rule has admitted: PostgreSQL keeps no NUL."""
    return text.replace("\0", "\ufffd")


def memory_values(memory: MemoryRecord, owner: int) -> dict[str, Any]:
    """The values of a row of `memory` but for its number, by column."""
    give_way()
    metadata = (
        msgspec.json.encode(memory.metadata).decode() if memory.metadata else "{}"
    )
    return {
        "id": memory.id,
        "session_id": memory.session,
        "source": memory.source,
        "role": memory.role,
        "content": memory.content,
        "importance": memory.importance,
        "pinned": memory.pinned,
        "metadata": metadata,
        "created_at": utc(memory.created_at),
        "content_hash": None,
        "words": word_hashes(
            owner, memory.content, memory.role, *glued_words(memory.content)
        ),
        "grams": gram_hashes(owner, memory.content),
    }


def memory_from(row: Row) -> MemoryRecord:
    """A memory from `MEMORY_FIELDS`."""
    (
        id,
        session,
        source,
        role,
        content,
        importance,
        pinned,
        metadata,
        created_at,
        valid_until,
        superseded_at,
        pruned_at,
        superseded_by,
        tags,
        edited_at,
        episode,
    ) = row
    return MemoryRecord(
        id=id,
        session=session,
        source=source,
        role=role,
        content=content,
        importance=importance,
        pinned=pinned,
        metadata={} if metadata == "{}" else msgspec.json.decode(metadata),
        created_at=created_at,
        tier=Tier.ARCHIVE if episode else Tier.WORKING,
        episode=episode,
        valid_until=valid_until,
        superseded_at=superseded_at,
        superseded_by=superseded_by,
        pruned_at=pruned_at,
        tags=tuple(tags or ()),
        edited_at=edited_at,
    )


def episode_values(
    episode: Episode, index_terms: str, owner: int, seq: int
) -> dict[str, Any]:
    """The values of a row of `episode`, by column."""
    return {
        "seq": seq,
        "id": episode.id,
        "session_id": episode.session,
        "source": episode.source,
        "level": int(episode.level),
        "content": episode.content,
        "index_terms": index_terms,
        "item_count": episode.item_count,
        "covers_from": utc(episode.covers_from),
        "covers_until": utc(episode.covers_until),
        "period_from": utc(episode.period_from) if episode.period_from else None,
        "summarizer": episode.summarizer,
        "parent_id": episode.parent,
        "created_at": utc(episode.created_at),
        "grams": gram_hashes(owner, f"{episode.content}\n{index_terms}"),
        **episode_words(owner, episode.content, index_terms),
    }


def episode_words(owner: int, content: str, index_terms: str) -> dict[str, list[int]]:
    """The words of a row of `episode` and those that it repeats, by column."""
    glued = glued_words(f"{content}\n{index_terms}")
    words = word_hashes(owner, content, index_terms, *glued)
    repeats = {
        term: count
        for term, count in Counter(words).items()
        if count > 1 and term != COLUMN_END
    }
    return {
        "words": words,
        "repeated": list(repeats),
        "repeats": list(repeats.values()),
    }


def log_values(entry: LogEntry) -> Mapping[str, Any]:
    """The values of `LOG_COLUMNS`, by column."""
    return {
        "session_id": entry.session,
        "items_consolidated": entry.items_consolidated,
        "summary_preview": entry.summary_preview,
        "created_at": utc(entry.created_at),
        "cycle_id": entry.cycle,
        "source": entry.source,
        "episode_id": entry.episode,
        "trigger": str(entry.trigger),
        "summarizer": entry.summarizer,
        "status": str(entry.status),
        "error": entry.error,
        "duration_s": entry.duration_s,
        "chars_before": entry.chars_before,
        "chars_after": entry.chars_after,
        "fallback_reason": entry.fallback_reason,
        "level": int(entry.level),
        "model_share": entry.model_share,
    }


def ensure_owner(session: Session) -> None:
    """Add the owner's row if there is none."""
    name = LOCAL_NAME if session.owner == LOCAL_OWNER else f"owner-{session.owner}"
    session.execute(
        "INSERT INTO owner (owner, name) VALUES (%(owner)s, %(name)s) "
        "ON CONFLICT DO NOTHING",
        name=name,
    )


def take_numbers(
    session: Session, kind: Literal["memory", "log", "record"], count: int
) -> range:
    """Take the next numbers, of memories, of log rows or of all other records; ascending."""
    last: int = session.scalar(
        f"UPDATE owner SET last_{kind} = last_{kind} + %(count)s "
        f"WHERE owner = %(owner)s RETURNING last_{kind}",
        count=count,
    )
    return range(last - count + 1, last + 1)


def pass_number(
    session: Session, kind: Literal["memory", "log", "record"], number: int
) -> None:
    """Give out none up to this one any more: it was brought from elsewhere."""
    session.execute(
        f"UPDATE owner SET last_{kind} = greatest(last_{kind}, %(number)s) "
        "WHERE owner = %(owner)s",
        number=number,
    )


def note_rewording(session: Session) -> None:
    """Count a change of words that were there.

    Memories or summaries were written anew, went, or came back with the numbers they had.
    """
    session.execute(
        "UPDATE owner SET rewordings = rewordings + 1 WHERE owner = %(owner)s"
    )


def add_to_totals(
    session: Session, tier: Tier, *, count: int = 0, characters: int = 0
) -> None:
    """Count in what a tier gained or lost."""
    if count or characters:
        session.execute(
            f"UPDATE owner SET {tier.value}_count = {tier.value}_count + %(count)s, "
            f"{tier.value}_characters = {tier.value}_characters + %(characters)s "
            "WHERE owner = %(owner)s",
            count=count,
            characters=characters,
        )


def totals(session: Session) -> dict[Tier, tuple[int, int]]:
    """Entries and characters of each tier."""
    row = session.execute(
        "SELECT working_count, working_characters, episodic_count, episodic_characters, "
        "archive_count, archive_characters FROM owner WHERE owner = %(owner)s"
    ).fetchone()
    values = row or (0,) * 6
    tiers = (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
    return {
        tier: (values[2 * place], values[2 * place + 1])
        for place, tier in enumerate(tiers)
    }
