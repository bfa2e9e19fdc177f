"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

from mnemosyned.memory.periods import distinct
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.storage.common.episodes import BELOW
from mnemosyned.storage.common.rows import EPISODE_COLUMNS, detail_from, episode_from
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    memory_from,
)
from mnemosyned.storage.postgres.session import OF_ID, Session, Statement
from mnemosyned.text.details import Detail, DetailKind

_KINDS = tuple(DetailKind)
"""Stored as their numbers, from 1."""
_NUMBERS = {str(kind): number for number, kind in enumerate(_KINDS, start=1)}
_HOLDING = (
    "SELECT p.seq, p.details, p.secrets, m.content FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND EXISTS "
    "(SELECT 1 FROM unnest(%(values)s::text[]) AS v (value) WHERE strpos(m.content, v.value) > 0)"
)
_Texts = tuple[str | None, str | None]
"""Plain and secret values as they are stored."""
Values = dict[tuple[str, str], bool]
"""Whether each kind and value is a secret."""


class Written(NamedTuple):
    """The values of originals as they are stored, in the order of these."""

    details: list[str | None]
    secrets: list[str | None]


def values_of(plain: str | None, secret: str | None) -> Values:
    """The exact values of an original, by kind and value."""
    found = dict.fromkeys(_pairs(plain), False)
    found |= dict.fromkeys(_pairs(secret), True)
    return dict(sorted(found.items()))


def written(originals: Iterable[Values]) -> Written:
    """The exact values of originals as columns."""
    texts = [_texts(values) for values in originals]
    return Written([plain for plain, _ in texts], [secret for _, secret in texts])


def by_memory(details: Iterable[Detail]) -> Mapping[str, Values]:
    """The exact values of each original, by its id."""
    found: dict[str, Values] = {}
    for detail in details:
        values = found.setdefault(detail.memory, {})
        values[str(detail.kind), detail.value] = detail.sensitive
    return found


def replace_details(
    session: Session,
    seq: int,
    episode: int,
    find: Callable[[Sequence[tuple[str, str]]], Iterable[Detail]],
) -> None:
    """Replace the exact values of an original by those found with the secrets of its episode."""
    others = session.execute(
        "SELECT p.secrets FROM placed AS p WHERE p.owner = %(owner)s "
        "AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND p.secrets IS NOT NULL",
        episode=episode,
        seq=seq,
    ).fetchall()
    secrets = [pair for (text,) in others for pair in _pairs(text)]
    values = {
        (str(detail.kind), detail.value): detail.sensitive for detail in find(secrets)
    }
    _write(session, seq, values)


def leave_secrets(session: Session, seq: int, episode: int) -> None:
    """Before an original leaves: what it shows to be secret stays so where others hold it too."""
    own = session.scalar(
        "SELECT secrets FROM placed WHERE owner = %(owner)s AND seq = %(seq)s", seq=seq
    )
    secrets = _pairs(own)
    if not secrets:
        return
    others = session.execute(
        _HOLDING, episode=episode, seq=seq, values=[value for _, value in secrets]
    ).fetchall()
    for other, plain, secret, content in others:
        held = {pair: True for pair in secrets if pair[1] in content}
        _write(session, other, values_of(plain, secret) | held)


def _write(session: Session, seq: int, values: Values) -> None:
    plain, secret = _texts(values)
    session.execute(
        "UPDATE placed SET details = %(details)s, secrets = %(secrets)s "
        "WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=seq,
        details=plain,
        secrets=secret,
    )


def _pairs(text: str | None) -> list[tuple[str, str]]:
    if text is None:
        return []
    numbers, values = (items := msgspec.json.decode(text))[::2], items[1::2]
    return [
        (str(_KINDS[number - 1]), value)
        for number, value in zip(numbers, values, strict=True)
    ]


def _texts(values: Values) -> _Texts:
    plain = _text(pair for pair, is_secret in values.items() if not is_secret)
    return plain, _text(pair for pair, is_secret in values.items() if is_secret)


def _text(pairs: Iterable[tuple[str, str]]) -> str | None:
    """Kinds and values as JSON, in order; None for none."""
    items = [item for kind, value in sorted(pairs) for item in (_NUMBERS[kind], value)]
    return msgspec.json.encode(items).decode() if items else None


_MEMORIES = (
    f"SELECT m.seq, {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
    "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)"
)
_EPISODES = (
    f"SELECT seq, {EPISODE_COLUMNS} FROM episode "
    "WHERE owner = %(owner)s AND seq = ANY(%(seqs)s)"
)
_ORIGINALS = (
    "SELECT p.episode_seq, m.id FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(seqs)s) "
    "ORDER BY m.created_at, m.seq"
)
_ROLLED_UP = (
    "SELECT e.seq, c.id FROM episode AS e "
    "JOIN episode AS c ON c.owner = e.owner AND c.parent_id = e.id "
    "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s) "
    "ORDER BY c.covers_from, c.seq"
)


def memory_with(session: Session, id: str) -> MemoryRecord | None:
    """The memory with an id, wherever it is."""
    row = session.execute(
        f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
        f"WHERE m.owner = %(owner)s AND {OF_ID}",
        id=id,
    ).fetchone()
    return memory_from(row) if row else None


def memories_at(session: Session, seqs: Collection[int]) -> dict[int, MemoryRecord]:
    """The memories of these rows, wherever each is."""
    sql, values = memories_statement(seqs)
    return memories_from(session.execute(sql, **values))


def memories_statement(seqs: Collection[int]) -> Statement:
    """Statement for the memories of these rows, whose answer `memories_from` takes."""
    return _MEMORIES, {"seqs": list(seqs)}


def memories_from(rows: Iterable[Row]) -> dict[int, MemoryRecord]:
    """Memories by the numbers of their rows."""
    return {row[0]: memory_from(row[1:]) for row in rows}


def episode_at(
    session: Session,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """One episode with its provenance, and on request the exact values of its originals."""
    row = session.execute(
        f"SELECT seq, {EPISODE_COLUMNS} FROM episode "
        f"WHERE owner = %(owner)s AND {key} = %(value)s",
        value=value,
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    return replace(
        episode,
        summary_of=_made_of(session, episode, row[0]),
        details=_details(session, episode) if details else (),
    )


def episodes_statements(seqs: Collection[int]) -> list[Statement]:
    """Statements for episodes and their provenance, whose answers `episodes_from` takes."""
    values = {"seqs": list(seqs)}
    return [(sql, values) for sql in (_EPISODES, _ORIGINALS, _ROLLED_UP)]


def episodes_from(answers: Sequence[Iterable[Row]]) -> dict[int, Episode]:
    """Episodes by the numbers of their rows; none where nothing was asked."""
    if not answers:
        return {}
    rows, *provenance = answers
    made_of: dict[int, list[str]] = defaultdict(list)
    for seq, id in chain.from_iterable(provenance):
        made_of[seq].append(id)
    return {
        row[0]: replace(episode_from(row[1:]), summary_of=tuple(made_of[row[0]]))
        for row in rows
    }


def _made_of(session: Session, episode: Episode, seq: int) -> tuple[str, ...]:
    """The ids of what a summary was made of, the oldest first."""
    if episode.level:
        rows = session.execute(
            "SELECT id FROM episode WHERE owner = %(owner)s AND parent_id = %(id)s "
            "ORDER BY covers_from, seq",
            id=episode.id,
        )
    else:
        rows = session.execute(
            "SELECT m.id FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = %(seq)s "
            "ORDER BY m.created_at, m.seq",
            seq=seq,
        )
    return tuple(id for (id,) in rows)


def _details(session: Session, episode: Episode) -> tuple[Detail, ...]:
    """The exact values of the originals under a summary; above an episode each once."""
    rows = session.execute(
        f"{BELOW} SELECT p.details, p.secrets, m.id, s.superseded_at IS NOT NULL "
        "FROM below "
        "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = below.seq "
        "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "LEFT JOIN memory_state AS s ON s.owner = p.owner AND s.memory_seq = p.seq "
        "WHERE coalesce(p.details, p.secrets) IS NOT NULL ORDER BY m.created_at, m.seq",
        summary=episode.id,
    )
    details = tuple(
        detail_from((*pair, is_secret, id, superseded))
        for plain, secret, id, superseded in rows
        for pair, is_secret in values_of(plain, secret).items()
    )
    return distinct(details) if episode.level else details
