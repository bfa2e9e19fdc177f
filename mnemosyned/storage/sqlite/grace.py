"""Memories forgotten with a grace period, put back in a file; and the form in which files kept them once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.grace import (
    CommonGrace,
    ForgottenCopy,
    ForgottenRevision,
    decode_copy,
)
from mnemosyned.storage.common.rows import learning_from
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.insert import insert_with_number
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_FORMER_ROW = (
    "seq", "id", "session", "source", "role", "content", "importance", "pinned", "metadata",
    "created_at", "content_hash",
)  # fmt: skip


class _FormerCopy(msgspec.Struct):
    """A copy as files kept it before its values had names: in the order of the columns."""

    row: list[Any] = msgspec.field(default_factory=list)
    state: list[Any] = msgspec.field(default_factory=list)
    supersedes: list[int] = msgspec.field(default_factory=list)
    tags: list[str] = msgspec.field(default_factory=list)
    revisions: list[ForgottenRevision] = msgspec.field(default_factory=list)
    learnings: list[dict[str, Any] | list[Any]] = msgspec.field(default_factory=list)


_decode_former = msgspec.json.Decoder(_FormerCopy).decode


def decode_any_copy(data: str) -> ForgottenCopy:
    """Return the copy of a forgotten memory from its stored form, also from the former one."""
    former = _decode_former(data)
    learnings = [each for each in former.learnings if isinstance(each, list)]
    if not former.row and not learnings:
        return decode_copy(data)
    copy = ForgottenCopy(
        supersedes=former.supersedes,
        revisions=former.revisions,
        learnings=list(map(learning_from, learnings)),
    )
    if former.row:
        memory = dict(zip(_FORMER_ROW, former.row, strict=True))
        copy.seq = memory.pop("seq")
        del memory["content_hash"]
        valid_until, superseded_at, copy.superseded_by = former.state or (None,) * 3
        copy.memory = memory | {
            "pinned": bool(memory["pinned"]),
            "metadata": msgspec.json.decode(memory["metadata"]),
            "tags": former.tags,
            "valid_until": valid_until,
            "superseded_at": superseded_at,
        }
    return copy


class SqliteGrace(SqlitePart, CommonGrace):
    """The `GraceStore` on one SQLite file."""

    _decode = staticmethod(decode_any_copy)

    def _insert(
        self, session: SqliteSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        return insert_with_number(session, memory, seq)

    def _index(
        self, session: SqliteSession, memories: Mapping[int, MemoryRecord]
    ) -> None:
        """Index the memories, after all rows as when they were remembered."""
        index_memories(
            session,
            [(seq, memory.content, memory.role) for seq, memory in memories.items()],
        )
