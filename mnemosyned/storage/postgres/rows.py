"""Rows and values: where columns meet the fields of memories; an owner's numbers and totals."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec

from mnemosyned.fairness import pause_for_other_owners
from mnemosyned.instants import in_zone
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.fields import ROW_FIELDS, column_list
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.common.rows import (
    column_values,
    episode_values,
    fields_from,
)
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres.fulltext import COLUMN_END, gram_hashes, word_hashes
from mnemosyned.text.details import DetailKind
from mnemosyned.text.terms import glued_words

MEMORY_FIELDS = (
    f"{column_list(prefix='m.')}, s.valid_until, s.superseded_at, s.pruned_at, "
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

MEMORIES_AT = (
    f"SELECT m.seq, {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
    "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)"
)
"""The memories with some numbers, each after its number."""
OF_IDS = (
    "m.seq = ANY(ARRAY(SELECT i.seq FROM unnest(%(ids)s::text[]) AS n (id) CROSS JOIN LATERAL "
    "(SELECT o.seq FROM memory AS o WHERE o.owner = %(owner)s AND o.id = n.id LIMIT 1) AS i))"
)
"""The same for the memories with some ids, each looked up by itself: hundreds would be taken for all."""


def utc(moment: datetime) -> datetime:
    """Return a time converted to UTC, as it is stored."""
    return in_zone(moment, UTC)


def storable(text: str) -> str:
    """Return a text with NUL replaced by U+FFFD, as PostgreSQL stores no NUL."""
    return text.replace("\0", "\ufffd")


def memory_values(memory: MemoryRecord | ExportedMemory, owner: int) -> dict[str, Any]:
    """Return the values of a memory's row by column, index terms included, without its number."""
    pause_for_other_owners()
    return {
        **column_values(memory),
        "content_hash": None,
        "words": word_hashes(
            owner, memory.content, memory.role, *glued_words(memory.content)
        ),
        "grams": gram_hashes(owner, memory.content),
    }


def memory_from(row: Row) -> MemoryRecord:
    """Return a memory from `MEMORY_FIELDS`."""
    values, beside = row[: len(ROW_FIELDS)], row[len(ROW_FIELDS) :]
    valid_until, superseded_at, pruned_at, superseded_by, tags, edited_at, episode = (
        beside
    )
    return MemoryRecord(
        **fields_from(values),
        tier=Tier.ARCHIVE if episode else Tier.WORKING,
        episode=episode,
        valid_until=valid_until,
        superseded_at=superseded_at,
        superseded_by=superseded_by,
        pruned_at=pruned_at,
        tags=tuple(tags or ()),
        edited_at=edited_at,
    )


def episode_row(
    episode: Episode, index_terms: str, owner: int, seq: int
) -> dict[str, Any]:
    """Return the values of a summary's row by column, index terms included."""
    return {
        "seq": seq,
        "grams": gram_hashes(owner, f"{episode.content}\n{index_terms}"),
        **episode_values(episode, index_terms),
        **episode_words(owner, episode.content, index_terms),
    }


def episode_words(owner: int, content: str, index_terms: str) -> dict[str, list[int]]:
    """Return a summary's hashed words, its repeated words and their counts, by column."""
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


_KINDS = tuple(DetailKind)
"""Stored as their numbers, from 1."""
KIND_NUMBERS = {str(kind): number for number, kind in enumerate(_KINDS, start=1)}
Values = dict[tuple[str, str], bool]
"""Whether each kind and value is a secret."""


def values_of(plain: str | None, secret: str | None) -> Values:
    """Return by kind and value whether each exact value of an original is a secret.

    `plain` and `secret` are the JSON of two columns.
    """
    found = dict.fromkeys(detail_pairs(plain), False)
    found |= dict.fromkeys(detail_pairs(secret), True)
    return dict(sorted(found.items()))


def detail_pairs(text: str | None) -> list[tuple[str, str]]:
    """Return the pairs of kind and value in the JSON of a column; none for None."""
    if text is None:
        return []
    numbers, values = (items := msgspec.json.decode(text))[::2], items[1::2]
    return [
        (str(_KINDS[number - 1]), value)
        for number, value in zip(numbers, values, strict=True)
    ]
