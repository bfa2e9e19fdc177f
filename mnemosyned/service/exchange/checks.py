"""Checks of a line of an export before it is stored: a file can be edited, or made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.exchange import ExportedEpisode, ExportedMemory, ExportedRevision
from mnemosyned.domain.memory import DetailKind
from mnemosyned.domain.ports.archive.exchange import Record
from mnemosyned.domain.secrets.masking import (
    SECRET_KINDS,
    SecretRule,
    mask_metadata,
    mask_secrets,
)
from mnemosyned.domain.sleep.cycles import GroupStatus, LogEntry
from mnemosyned.domain.sleep.rollup import Level
from mnemosyned.domain.tags import tag_names
from mnemosyned.service.intake import check_metadata, check_text
from mnemosyned.verbs.request import TEXT_MAX
from mnemosyned.verbs.streams.exchange import KINDS

NUMBER_MAX = 1 << 53
"""No place or count comes near it; the place after a higher one could be none that SQLite has."""
SEQ_MAX = 1 << 30
"""PostgreSQL keeps places in four bytes, and what comes after an import is numbered above it."""
HASHES = range(-1 << 63, 1 << 63)
NAMES = frozenset({"id", "session", "source", "role", "episode", "memory"})
"""Fields that are as long as a name may be."""
_FIELDS: Mapping[type[object], tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in KINDS.values()
}
_REVISION_FIELDS = tuple(field.name for field in fields(ExportedRevision))
_LOGGED = frozenset({GroupStatus.PROMOTED, GroupStatus.VERBATIM, GroupStatus.FAILED})
_DETAIL_KINDS = frozenset(DetailKind)


def accepted(record: Record, rule: SecretRule) -> Record:
    """Return a record as it may be stored. Raises `InvalidRequest` and `InvalidText`.

    Its secrets are stored as they were, unless secrets are not to be stored: then they are masked.
    """
    kind: type[object] = type(record)
    _check_fields(record, _FIELDS[kind])
    if check := _CHECKS.get(kind):
        check(record)
    if isinstance(record, ExportedMemory) and record.tags:
        record = replace(record, tags=tag_names(record.tags))
    if rule is not SecretRule.KEEP and isinstance(record, ExportedMemory):
        return _masked_memory(record)
    if rule is not SecretRule.KEEP and isinstance(record, ExportedEpisode):
        terms = mask_secrets(record.index_terms)
        return replace(record, content=mask_secrets(record.content), index_terms=terms)
    return record


def _check_fields(record: object, names: Iterable[str]) -> None:
    """Check what all values of a type have in common."""
    for name in names:
        value = getattr(record, name)
        if check := _VALUE_CHECKS.get(type(value)):
            check(name, value)


def _check_string(name: str, value: str) -> None:
    check_text(value, field=name)
    if name in NAMES and len(value) > TEXT_MAX:
        _refuse(name, f"must have at most {TEXT_MAX} characters")


def _check_number(name: str, value: int) -> None:
    if name.endswith("_hash"):
        if value not in HASHES:
            _refuse(name, "has more than 64 bits")
        return
    most = SEQ_MAX if name == "seq" else NUMBER_MAX
    if not 0 <= value <= most:
        _refuse(name, f"must be between 0 and {most:,}")


def _check_instant(name: str, value: datetime) -> None:
    if value.tzinfo is None:
        _refuse(name, "names no zone")


def _check_members(name: str, value: tuple[object, ...]) -> None:
    for member in value:
        if isinstance(member, str):
            check_text(member, field=name)


_VALUE_CHECKS: Mapping[type[Any], Callable[[str, Any], None]] = {
    str: _check_string,
    int: _check_number,
    datetime: _check_instant,
    tuple: _check_members,
}


def _check_memory(memory: ExportedMemory) -> None:
    if not memory.content and not memory.pruned_at:
        _refuse("content", "is empty, and the memory was not pruned")
    if not 0 <= memory.importance <= 1:
        _refuse("importance", "must be between 0 and 1")
    for kind, value, _ in memory.details:
        if kind not in _DETAIL_KINDS:
            _refuse("details", f"has an unknown kind {kind!r}")
        check_text(value, field="details")
    check_metadata(memory.metadata, field="metadata")
    for revision in memory.revisions:
        _check_fields(revision, _REVISION_FIELDS)


def _check_episode(episode: ExportedEpisode) -> None:
    if episode.level not in set(Level):
        _refuse("level", "must be between 0 and 3")
    if episode.item_count < 1:
        _refuse("item_count", "must be positive")
    if episode.originals not in (0, episode.item_count):
        _refuse("item_count", "is not the number of its originals")


def _check_log_entry(entry: LogEntry) -> None:
    if entry.status not in _LOGGED:
        _refuse("status", "is none that a log has")


_CHECKS: Mapping[type[Any], Callable[[Any], None]] = {
    ExportedMemory: _check_memory,
    ExportedEpisode: _check_episode,
    LogEntry: _check_log_entry,
}


def _refuse(name: str, reason: str) -> None:
    raise InvalidRequest(f"{name} {reason}", field=name)


def _masked_memory(memory: ExportedMemory) -> ExportedMemory:
    """Return a memory without its secrets."""
    return replace(
        memory,
        content=mask_secrets(memory.content),
        metadata=mask_metadata(memory.metadata),
        details=tuple(
            detail for detail in memory.details if detail[0] not in SECRET_KINDS
        ),
        revisions=tuple(
            replace(
                revision,
                content=revision.content and mask_secrets(revision.content),
                fields=mask_metadata(revision.fields),
            )
            for revision in memory.revisions
        ),
    )
