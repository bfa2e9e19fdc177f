"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec

from mnemosyned.memory.exchange import ExportedEpisode
from mnemosyned.memory.periods import distinct
from mnemosyned.memory.rows import EPISODE_COLUMNS, detail_from, episode_from
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.postgres.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    OF_ID,
    add_to_totals,
    episode_values,
    memory_from,
    note_rewording,
    pass_number,
    take_numbers,
)
from mnemosyned.storage.postgres.session import Row, Session, Statement
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


BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episode WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq FROM below
        JOIN episode AS e ON e.owner = %(owner)s AND e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; `summary` is its id."""

ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episode
        WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episode AS e ON e.owner = %(owner)s AND e.id = above.parent_id
    )
"""
"""The same upwards: a summary, and those it went into."""

_NAME_AS_BELOW = (
    "UPDATE episode AS u SET session_id = b.session_id, source = b.source FROM ("
    "SELECT CASE WHEN min(e.session_id) = max(e.session_id) THEN min(e.session_id) "
    "ELSE '' END AS session_id, "
    "CASE WHEN min(coalesce(e.source, '')) = max(coalesce(e.source, '')) "
    "THEN min(e.source) END AS source "
    "FROM episode AS e WHERE e.owner = %(owner)s AND e.parent_id = %(id)s) AS b "
    "WHERE u.owner = %(owner)s AND u.id = %(id)s "
    "AND (u.session_id, u.source) IS DISTINCT FROM (b.session_id, b.source)"
)


def ancestors(session: Session, seqs: Iterable[int]) -> dict[int, int]:
    """Map these summaries, and those above them, to the roll-up that each went into.

    Both are the `seq` of a summary.
    """
    # Read as the recursion meets them: joined to them behind it, the planner would read every summary.
    rows = session.execute(
        "WITH RECURSIVE above (below, seq, parent_id) AS ("
        "SELECT NULL::bigint, e.seq, e.parent_id FROM episode AS e "
        "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s) "
        "UNION SELECT a.seq::bigint, p.seq, p.parent_id FROM above AS a "
        "JOIN episode AS p ON p.owner = %(owner)s AND p.id = a.parent_id) "
        "SELECT below, seq FROM above WHERE below IS NOT NULL",
        seqs=sorted(seqs),
    )
    return dict(rows.fetchall())


def name_rollup(session: Session, id: str) -> None:
    """Give a day, week or month the session and source that all below it have, if they agree."""
    session.execute(_NAME_AS_BELOW, id=id)


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
