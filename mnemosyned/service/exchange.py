"""Export of all memories from one snapshot as lines, and import of such lines.

Each line is checked before it is stored: a file can be edited, or made up.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mnemosyned.errors import DaemonBusy, InvalidRequest, MnemosynedError
from mnemosyned.fairness import pause_for_other_owners
from mnemosyned.logs import logger
from mnemosyned.memory.actions import Action
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.consolidation import GroupStatus, LogEntry
from mnemosyned.memory.exchange import (
    KIND_NAMES,
    ExportedEpisode,
    ExportedMemory,
    ExportedRevision,
    Record,
    RestoreReport,
)
from mnemosyned.memory.fields import ROW_FIELDS, FieldKind, MemoryFilter
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import tag_names
from mnemosyned.service.backup_files import file_bytes
from mnemosyned.service.intake import check_metadata
from mnemosyned.service.reading import read_filters
from mnemosyned.text.details import SECRET_KINDS, DetailKind
from mnemosyned.text.secrets.masking import mask_metadata, mask_secrets
from mnemosyned.verbs.exchange import (
    FOOTER,
    HEADER,
    KINDS,
    CutOff,
    Export,
    Footer,
    Header,
    encode_record,
    parse_line_kind,
    parse_record,
)
from mnemosyned.verbs.request import TEXT_MAX, check_text
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.storage.common.exchange import ExchangeStore

NUMBER_MAX = 1 << 53
"""No place or count comes near it; the place after a higher one could be none that SQLite has."""
SEQ_MAX = 1 << 30
"""PostgreSQL keeps places in four bytes, and what comes after an import is numbered above it."""
HASHES = range(-1 << 63, 1 << 63)
NAMES = frozenset({"episode", "memory"}).union(
    field.name
    for field in ROW_FIELDS
    if field.kind is FieldKind.TEXT and field.name != "content"
)
"""Fields that are as long as a name may be."""
_FIELDS: Mapping[type[object], tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in KINDS.values()
}
_REVISION_FIELDS = tuple(field.name for field in fields(ExportedRevision))
_LOGGED = frozenset({GroupStatus.PROMOTED, GroupStatus.VERBATIM, GroupStatus.FAILED})
_DETAIL_KINDS = frozenset(DetailKind)


def accept_record(record: Record, rule: SecretRule) -> Record:
    """Check a record; mask secrets unless `rule` keeps them. Raises `InvalidRequest` and `InvalidText`."""
    kind: type[object] = type(record)
    _check_fields(record, _FIELDS[kind])
    if isinstance(record, ExportedMemory):
        _check_memory(record)
    elif isinstance(record, ExportedEpisode):
        if record.level not in set(Level):
            _refuse_field("level", "must be between 0 and 3")
        if record.item_count < 1:
            _refuse_field("item_count", "must be positive")
        if record.originals not in (0, record.item_count):
            _refuse_field("item_count", "is not the number of its originals")
    elif isinstance(record, LogEntry) and record.status not in _LOGGED:
        _refuse_field("status", "is none that a log has")
    if isinstance(record, ExportedMemory) and record.tags:
        record = replace(record, tags=tag_names(record.tags))
    if rule != "keep" and isinstance(record, ExportedMemory):
        return _mask_exported_memory(record)
    if rule != "keep" and isinstance(record, ExportedEpisode):
        terms = mask_secrets(record.index_terms)
        return replace(record, content=mask_secrets(record.content), index_terms=terms)
    return record


def _check_fields(record: object, names: Iterable[str]) -> None:
    """Check these fields of a record. Raises `InvalidRequest` and `InvalidText`."""
    for name in names:
        value = getattr(record, name)
        kind = type(value)
        if kind is str:
            check_text(value, field=name)
            if name in NAMES and len(value) > TEXT_MAX:
                _refuse_field(name, f"must have at most {TEXT_MAX} characters")
        elif kind is int and name.endswith("_hash"):
            if value not in HASHES:
                _refuse_field(name, "has more than 64 bits")
        elif kind is int:
            most = SEQ_MAX if name == "seq" else NUMBER_MAX
            if not 0 <= value <= most:
                _refuse_field(name, f"must be between 0 and {most:,}")
        elif kind is datetime and value.tzinfo is None:
            _refuse_field(name, "names no zone")
        elif kind is tuple:
            for member in value:
                if isinstance(member, str):
                    check_text(member, field=name)


def _check_memory(memory: ExportedMemory) -> None:
    """Check an imported memory. Raises `InvalidRequest`, `InvalidText` and `ContentTooLarge`."""
    if not memory.content and not memory.pruned_at:
        _refuse_field("content", "is empty, and the memory was not pruned")
    if not 0 <= memory.importance <= 1:
        _refuse_field("importance", "must be between 0 and 1")
    for kind, value, _ in memory.details:
        if kind not in _DETAIL_KINDS:
            _refuse_field("details", f"has an unknown kind {kind!r}")
        check_text(value, field="details")
    check_metadata(memory.metadata, field="metadata")
    for revision in memory.revisions:
        _check_fields(revision, _REVISION_FIELDS)


def _refuse_field(name: str, reason: str) -> None:
    """Raise `InvalidRequest` for the field `name`, with `reason` as the end of its sentence."""
    raise InvalidRequest(f"{name} {reason}", field=name)


def _mask_exported_memory(memory: ExportedMemory) -> ExportedMemory:
    """Return the memory with secrets masked in all its texts, and secret exact values left out."""
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


CHUNK_BYTES = 64 * 1024
LINES_MAX = 20_000
POSTPONED_S = 60.0
"""How long no cycle begins by itself after a part of an export was restored."""

log = logger()


@dataclass(frozen=True, slots=True)
class ExportLimits:
    """Bounds of a snapshot: while it is read, the write-ahead log cannot be checkpointed."""

    duration_s: float = 600.0
    log_bytes: int = 1 << 30
    """How much the write-ahead log may grow meanwhile."""


@dataclass(slots=True)
class _ExportLines:
    """The lines written so far."""

    digest: Any = field(default_factory=hashlib.sha256)
    counts: Counter[str] = field(default_factory=Counter)
    waiting: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, kind: str, line: bytes) -> None:
        """Add the line of a record, and count it by its kind."""
        self.counts[kind] += 1
        self.waiting.append(line + b"\n")
        self.waiting_bytes += len(line) + 1

    def take(self) -> bytes:
        """Return the lines added since the last call as one piece, and include it in the digest."""
        chunk = b"".join(self.waiting)
        self.waiting, self.waiting_bytes = [], 0
        self.digest.update(chunk)
        return chunk

    def footer(self) -> bytes:
        """Return the last line of the export: the counts by kind and the digest."""
        footer = Footer(counts=dict(self.counts), sha256=self.digest.hexdigest())
        return msgspec.json.encode(footer) + b"\n"


@dataclass(eq=False, kw_only=True)
class ExchangeService:
    """Export, one at a time, and exact import."""

    store: ExchangeStore
    clock: Clock
    database: str
    """Names the memory in the header."""
    file: Path | None
    """None if the memory is on a server."""
    schema_version: int
    postpone_cycles: Callable[[float], object]
    """Puts cycles off for seconds: one amid an import would summarize what later lines summarize."""
    on_restored: Callable[[], object]
    """Called after each part."""
    secrets: Callable[[], SecretRule] = lambda: "keep"
    """The rule for secrets in restored texts."""
    limits: ExportLimits = ExportLimits()

    def __post_init__(self) -> None:
        self._exporting = threading.Lock()

    def export(self, request: Export) -> Iterator[bytes]:
        """Return an iterator over the bytes of an export, in chunks of whole lines.

        Closing it ends the snapshot. Raises `DaemonBusy` while another export runs, as each keeps a
        snapshot open, and `StorageFailed`.
        """
        # Which may be refused: before the lock is taken.
        chosen = MemoryFilter(**read_filters(request))
        if not self._exporting.acquire(blocking=False):
            raise DaemonBusy("another export is running; try again when it is done")
        chunks = self._read_chunks(chosen)
        next(chunks)  # from here on, closing it frees the lock
        return chunks

    def _read_chunks(self, chosen: MemoryFilter) -> Iterator[bytes]:
        """Yield an empty chunk once the snapshot is open, then the export in chunks of lines.

        Records of the memories that the filter `chosen` selects are in it. If the snapshot has to
        end early, the last line says why.
        """
        written = _ExportLines()
        try:
            with self.store.export(chosen) as (expected, records):
                yield b""
                header = Header(
                    program=__version__,
                    schema=self.schema_version,
                    created_at=self.clock.now(),
                    database=self.database,
                    whole=not chosen.is_set,
                    expected=expected,
                )
                written.add("header", msgspec.json.encode(header))
                for reason in self._add_records(records, written):
                    yield written.take()
                    if reason:
                        log.warning("export_cut_off", reason=reason)
                        yield msgspec.json.encode(CutOff(reason=reason)) + b"\n"
                        return
            yield written.take()
            yield written.footer()
        finally:
            self._exporting.release()

    def _add_records(
        self, records: Iterator[Record], written: _ExportLines
    ) -> Iterator[str]:
        """Add the lines of all records to `written`; yield whenever there is enough for a chunk.

        The yielded text says why the export has to end early, as it takes too long or the
        write-ahead log grew; it is empty while the export may go on.
        """
        ends = time.monotonic() + self.limits.duration_s
        log_bytes_max = self._wal_bytes() + self.limits.log_bytes
        for record in records:
            pause_for_other_owners()
            written.add(KIND_NAMES[type(record)], encode_record(record))
            if written.waiting_bytes < CHUNK_BYTES:
                continue
            if time.monotonic() > ends:
                yield f"it took longer than {self.limits.duration_s:g} s"
            elif self._wal_bytes() > log_bytes_max:
                yield "the write-ahead log grew too long meanwhile"
            else:
                yield ""

    def _wal_bytes(self) -> int:
        """Return the size of the write-ahead log in bytes; 0 if there is none."""
        file = self.file
        return file_bytes(file.with_name(f"{file.name}-wal")) if file else 0

    def restore(
        self, body: bytes | bytearray, action: Action | None = None
    ) -> RestoreReport:
        """Store the records in lines of an export, in one transaction; return counts by outcome.

        Each call postpones sleep cycles for `POSTPONED_S` seconds; a call whose last line is the
        footer ends the delay. Raises `InvalidRequest` for more than `LINES_MAX` lines, and
        `MalformedJson`, `InvalidRequest` or `InvalidText` for the first invalid record. All name
        the line, except `MalformedJson` for the first or the last line.
        """
        lines = [line for line in bytes(body).split(b"\n") if line.strip()]
        if len(lines) > LINES_MAX:
            raise InvalidRequest(
                f"{len(lines):,} lines in one request; send {LINES_MAX:,} at most"
            )
        is_first = bool(lines) and parse_line_kind(lines[0]).record == HEADER
        is_last = bool(lines) and parse_line_kind(lines[-1]).record == FOOTER
        records = _parse_records(
            lines[: len(lines) - is_last], self.secrets(), start=is_first
        )
        self.postpone_cycles(0.0 if is_last else POSTPONED_S)
        restored = RestoreReport()
        if records:
            restored = self.store.restore(records, action=action)
        self.on_restored()
        return restored


def _parse_records(lines: list[bytes], rule: SecretRule, *, start: int) -> list[Record]:
    """Return the checked records in the lines from `start` on; the first error names its line."""
    records: list[Record] = []
    for number, line in enumerate(lines[start:], start):
        pause_for_other_owners()
        try:
            records.append(accept_record(parse_record(line), rule))
        except MnemosynedError as error:
            raise type(error)(error.message, field=f"lines[{number}]") from error
    return records
