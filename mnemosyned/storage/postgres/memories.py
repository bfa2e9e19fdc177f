"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mnemosyned.storage.postgres.rows import (
    KIND_NUMBERS,
    Values,
    detail_pairs,
    values_of,
)
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.text.details import Detail

_HOLDING = (
    "SELECT p.seq, p.details, p.secrets, m.content FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND EXISTS "
    "(SELECT 1 FROM unnest(%(values)s::text[]) AS v (value) WHERE strpos(m.content, v.value) > 0)"
)
_DetailTexts = tuple[str | None, str | None]
"""Plain and secret values as they are stored."""


class DetailColumns(NamedTuple):
    """The values of originals as they are stored, in the order of these."""

    details: list[str | None]
    secrets: list[str | None]


def detail_columns(originals: Iterable[Values]) -> DetailColumns:
    """Return the exact values of originals as two columns of texts: plain values and secrets."""
    texts = [_detail_texts(values) for values in originals]
    return DetailColumns([plain for plain, _ in texts], [secret for _, secret in texts])


def details_by_memory(details: Iterable[Detail]) -> Mapping[str, Values]:
    """Return the exact values of originals by memory id."""
    found: dict[str, Values] = {}
    for detail in details:
        values = found.setdefault(detail.memory, {})
        values[str(detail.kind), detail.value] = detail.sensitive
    return found


def replace_details(
    session: PostgresSession,
    seq: int,
    episode: int,
    find: Callable[[Sequence[tuple[str, str]]], Iterable[Detail]],
) -> None:
    """Replace an original's exact values by those that `find` returns.

    `find` gets kind and value of the secrets in the other originals of the episode.
    """
    others = session.execute(
        "SELECT p.secrets FROM placed AS p WHERE p.owner = %(owner)s "
        "AND p.episode_seq = %(episode)s AND p.seq != %(seq)s AND p.secrets IS NOT NULL",
        episode=episode,
        seq=seq,
    ).fetchall()
    secrets = [pair for (text,) in others for pair in detail_pairs(text)]
    values = {
        (str(detail.kind), detail.value): detail.sensitive for detail in find(secrets)
    }
    _write_details(session, seq, values)


def leave_secrets(session: PostgresSession, seq: int, episode: int) -> None:
    """Mark an original's secrets as secret in the other originals of its episode.

    Call it before the original leaves the episode.
    """
    own = session.scalar(
        "SELECT secrets FROM placed WHERE owner = %(owner)s AND seq = %(seq)s", seq=seq
    )
    secrets = detail_pairs(own)
    if not secrets:
        return
    others = session.execute(
        _HOLDING, episode=episode, seq=seq, values=[value for _, value in secrets]
    ).fetchall()
    for other, plain, secret, content in others:
        held = {pair: True for pair in secrets if pair[1] in content}
        _write_details(session, other, values_of(plain, secret) | held)


def _write_details(session: PostgresSession, seq: int, values: Values) -> None:
    """Store the exact values of an original in place of its former ones."""
    plain, secret = _detail_texts(values)
    session.execute(
        "UPDATE placed SET details = %(details)s, secrets = %(secrets)s "
        "WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=seq,
        details=plain,
        secrets=secret,
    )


def _detail_texts(values: Values) -> _DetailTexts:
    """Return the texts of the plain values and of the secrets, each as stored JSON or None."""
    plain = _detail_text(pair for pair, is_secret in values.items() if not is_secret)
    return plain, _detail_text(pair for pair, is_secret in values.items() if is_secret)


def _detail_text(pairs: Iterable[tuple[str, str]]) -> str | None:
    """Return pairs of kind and value as the JSON of a column, or None without any."""
    items = [
        item for kind, value in sorted(pairs) for item in (KIND_NUMBERS[kind], value)
    ]
    return msgspec.json.encode(items).decode() if items else None
