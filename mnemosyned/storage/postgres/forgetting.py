"""Forgetting: memories and learnings selected by a filter, deleted with all traces, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mnemosyned.memory.fields import NAMING_FIELDS, column_list
from mnemosyned.memory.forgetting import ForgetFilter, name_matcher
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.storage.common.forgetting import (
    DeletionStore,
    FoundMemory,
    GraceStore,
    chosen_conditions,
)
from mnemosyned.storage.common.index_words import term_matcher
from mnemosyned.storage.common.listing import tag_conditions
from mnemosyned.storage.common.session import BELOW, Row
from mnemosyned.storage.postgres import purge
from mnemosyned.storage.postgres.listing import (
    all_terms_condition,
    postgres_filter,
)
from mnemosyned.storage.postgres.memories import (
    insert_again,
    insert_new,
    leave_secrets,
    newest_number,
)
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import OF_IDS, PostgresSession, values_of

_MEMORIES = (
    "memory AS m LEFT JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
    "WHERE m.owner = %(owner)s"
)
_ORDER = "ORDER BY f.seq IS NULL, m.seq"
"""Working memory first."""
_DETAILS = (
    "(SELECT ARRAY[p.details, p.secrets] FROM placed AS p "
    "WHERE m.content = '' AND p.owner = %(owner)s AND p.seq = m.seq)"
)
"""What a pruned memory has left are its exact values."""
_EARLIER = (
    "(SELECT array_agg(ARRAY[coalesce(r.content, ''), r.fields] ORDER BY r.seq) "
    "FROM revision AS r WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
"""What a memory was before it was edited."""
_NAMED = f"{column_list(NAMING_FIELDS, 'm.')}, {_DETAILS}, {_EARLIER}"
"""All that may mention a person, besides the words and their speaker."""
_EARLIER_FIELDS = ("role", *(field.name for field in NAMING_FIELDS if field.editable))


def selected_memories(session: PostgresSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the memories that meet all conditions of a forget filter."""
    narrow = postgres_filter(
        [
            *chosen_conditions(
                choice, choice.newest.memory if choice.newest else None, "m.{}"
            ),
            *tag_conditions(choice.tags, row_by_row=False),
            *(
                [all_terms_condition(session.owner, choice.terms)]
                if choice.terms
                else []
            ),
        ]
    )
    is_meant = _text_checks(choice)
    if not is_meant:
        return session.column(
            f"SELECT m.id FROM {_MEMORIES}{narrow.where} {_ORDER}", **narrow.values
        )
    named = _NAMED if choice.person else "NULL"
    rows = session.stream(
        f"SELECT m.id, m.content, m.role, {named} FROM {_MEMORIES}{narrow.where} {_ORDER}",
        **narrow.values,
    )
    return [row[0] for row in rows if all(check(row) for check in is_meant)]


def _text_checks(choice: ForgetFilter) -> list[Callable[[Row], bool]]:
    """Return the conditions of a filter on texts, its terms and its person, as functions of a row."""
    checks: list[Callable[[Row], bool]] = []
    if choice.terms:
        holds = term_matcher(choice.terms)
        checks.append(lambda row: holds(row[1:3]))
    if choice.person:
        named = name_matcher(choice.person)
        checks.append(lambda row: any(map(named, _all_texts(row[1:]))))
    return checks


def _all_texts(row: Row) -> list[str]:
    """Return the texts of a memory and its earlier revisions in which a person may be named."""
    content, role, *naming, details, earlier = row
    values = " ".join(value for _, value in values_of(*details or (None, None)))
    texts = [content or values, role, *(text or "" for text in naming)]
    for text, fields in earlier or ():
        before: dict[str, Any] = msgspec.json.decode(fields)
        texts.append(
            " ".join([text, *(before.get(name) or "" for name in _EARLIER_FIELDS)])
        )
    return texts


class PostgresDeletion(PostgresPart, DeletionStore):
    """A `DeletionStore` of one owner in PostgreSQL."""

    _ids_below = (
        f"{BELOW} SELECT m.id FROM below "
        "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = below.seq "
        "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = p.seq ORDER BY m.seq"
    )
    _named = " UNION ".join(
        f"SELECT DISTINCT {{0}} FROM {table} "
        "WHERE owner = %(owner)s AND {0} = ANY(%(names)s::text[])"
        for table in ("memory", "episode")
    )
    _unless_named = (
        "WHERE NOT "
        "(EXISTS (SELECT 1 FROM memory AS m WHERE m.owner = %(owner)s AND m.{0} = n.name) "
        "OR EXISTS (SELECT 1 FROM episode AS e WHERE e.owner = %(owner)s AND e.{0} = n.name))"
    )
    """Joined by OR, as the planner turns two conditions into joins that read all memories."""
    _selected_memories = staticmethod(selected_memories)

    def _find(self, session: PostgresSession, ids: Sequence[str]) -> list[FoundMemory]:
        rows = session.execute(
            "SELECT m.seq, m.id, length(m.content), p.episode_seq, m.session_id, p.details, "
            "p.secrets "
            "FROM memory AS m LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} ORDER BY m.seq",
            ids=list(ids),
        )
        return [
            FoundMemory(
                seq,
                id,
                characters,
                episode,
                details=len(values_of(plain, secret)),
                session=named,
            )
            for seq, id, characters, episode, named, plain, secret in rows
        ]

    def _delete(self, session: PostgresSession, found: Sequence[FoundMemory]) -> None:
        episodes = {memory.seq: memory.episode for memory in found if memory.episode}
        for seq in session.select_column(
            "placed", "seq", "AND secrets IS NOT NULL", seq=episodes
        ):
            leave_secrets(session, seq, episodes[seq])
        session.delete("memory", seq=[memory.seq for memory in found])
        session.note_rewording()
        for tier in (Tier.WORKING, Tier.ARCHIVE):
            sizes = [
                memory.size
                for memory in found
                if (memory.episode is None) is (tier is Tier.WORKING)
            ]
            session.add_to_totals(tier, count=-len(sizes), characters=-sum(sizes))

    def purge_due(self) -> bool:
        return self._read(lambda session: session.scalar(purge.DUE)) is not None

    def purge_deleted(self) -> bool:
        return purge.purge_owner(self._pool, self._owner)

    def beyond_purge(self) -> tuple[str, ...]:
        return purge.BEYOND


class PostgresGrace(PostgresPart, GraceStore):
    """The `GraceStore` of one owner in PostgreSQL."""

    def _insert(
        self, session: PostgresSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        if seq is None:
            insert_new(session, [memory])
            return newest_number(session)
        insert_again(session, memory, seq)
        return seq
