"""Export of all memories from one snapshot as lines, import of such lines, and the move of a whole store.

Each line is checked before it is stored: a file can be edited, or made up.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mnemosyned.errors import DaemonBusy, InvalidRequest, MnemosynedError
from mnemosyned.fairness import pause_for_other_owners
from mnemosyned.logs import logger
from mnemosyned.memory import exchange, periods, values
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.consolidation import GroupStatus, LogEntry
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.ports import SearchStore
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.service import backups, intake, reading
from mnemosyned.text.details import SECRET_KINDS, DetailKind
from mnemosyned.text.secrets.masking import mask_metadata, mask_secrets
from mnemosyned.verbs import exchange as verbs, memories
from mnemosyned.verbs.request import TEXT_MAX, check_text
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.storage.common.exchange import ExchangeStore

NUMBER_MAX = 1 << 53
"""Upper limit of numbers in an export, far above real ones: the next number must fit in SQLite, too."""
SEQ_MAX = 1 << 30
"""Upper limit of row numbers, as PostgreSQL keeps them in four bytes, and later rows get higher ones."""
HASHES = range(-1 << 63, 1 << 63)
NAMES = frozenset({"episode", "memory"}).union(
    field.name
    for field in values.ROW_FIELDS
    if field.kind is values.FieldKind.TEXT and field.name != "content"
)
"""Fields whose text has the maximum length of a name."""
_FIELDS: Mapping[type[object], tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in verbs.KINDS.values()
}
_REVISION_FIELDS = tuple(field.name for field in fields(exchange.ExportedRevision))
_LOGGED = frozenset({GroupStatus.PROMOTED, GroupStatus.VERBATIM, GroupStatus.FAILED})
_DETAIL_KINDS = frozenset(DetailKind)


def accept_record(record: exchange.Record, rule: SecretRule) -> exchange.Record:
    """Check a record, and return it; unless `rule` is "keep", mask the secrets of a memory or summary.

    Raises `InvalidRequest`, `InvalidText` and `ContentTooLarge`.
    """
    kind: type[object] = type(record)
    _check_fields(record, _FIELDS[kind])
    if isinstance(record, exchange.ExportedMemory):
        if not record.content and not record.pruned_at:
            _refuse_field("content", "is empty, and the memory was not pruned")
        if not 0 <= record.importance <= 1:
            _refuse_field("importance", "must be between 0 and 1")
        for detail_kind, value, _ in record.details:
            if detail_kind not in _DETAIL_KINDS:
                _refuse_field("details", f"has an unknown kind {detail_kind!r}")
            check_text(value, field="details")
        intake.check_metadata(record.metadata, field="metadata")
        for revision in record.revisions:
            _check_fields(revision, _REVISION_FIELDS)
        if record.tags:
            record = replace(record, tags=values.tag_names(record.tags))
    elif isinstance(record, exchange.ExportedEpisode):
        if record.level not in set(periods.Level):
            _refuse_field("level", "must be between 0 and 3")
        if record.item_count < 1:
            _refuse_field("item_count", "must be positive")
        if record.originals not in (0, record.item_count):
            _refuse_field("item_count", "is not the number of its originals")
    elif isinstance(record, LogEntry) and record.status not in _LOGGED:
        _refuse_field("status", "is none that a log has")
    if rule != "keep" and isinstance(record, exchange.ExportedMemory):
        return _mask_exported_memory(record)
    if rule != "keep" and isinstance(record, exchange.ExportedEpisode):
        terms = mask_secrets(record.index_terms)
        return replace(record, content=mask_secrets(record.content), index_terms=terms)
    return record


def _check_fields(record: object, names: Iterable[str]) -> None:
    """Check the text, range or time zone of these fields. Raises `InvalidRequest` and `InvalidText`."""
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


def _refuse_field(name: str, reason: str) -> None:
    """Raise `InvalidRequest` about the field `name`; the message is `name`, then `reason`."""
    raise InvalidRequest(f"{name} {reason}", field=name)


def _mask_exported_memory(memory: exchange.ExportedMemory) -> exchange.ExportedMemory:
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
"""Seconds after the restore of a part of an export in which no background cycle begins."""

log = logger()


DURATION_S = 600.0
"""Time limit of a snapshot: while it is read, the write-ahead log cannot be checkpointed."""
LOG_GROWTH_MAX = 1 << 30
"""Bytes by which the write-ahead log may grow in that time."""


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
        footer = verbs.Footer(counts=dict(self.counts), sha256=self.digest.hexdigest())
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

    def __post_init__(self) -> None:
        self._exporting = threading.Lock()

    def export(self, request: verbs.Export) -> Iterator[bytes]:
        """Return an iterator over the bytes of an export, in chunks of whole lines.

        Closing it ends the snapshot. Raises `DaemonBusy` while another export runs, as each keeps a
        snapshot open, and `StorageFailed`.
        """
        # Which may be refused: before the lock is taken.
        chosen = values.MemoryFilter(**reading.read_filters(request))
        if not self._exporting.acquire(blocking=False):
            raise DaemonBusy("another export is running; try again when it is done")
        chunks = self._read_chunks(chosen)
        next(chunks)  # from here on, closing it frees the lock
        return chunks

    def _read_chunks(self, chosen: values.MemoryFilter) -> Iterator[bytes]:
        """Yield an empty chunk once the snapshot is open, then the selected records' lines in chunks.

        If the snapshot has to end early, the last line says why. At the end, allow another export.
        """
        written = _ExportLines()
        try:
            with self.store.export(chosen) as (expected, records):
                yield b""
                header = verbs.Header(
                    program=__version__,
                    schema=self.schema_version,
                    created_at=self.clock.now(),
                    database=self.database,
                    whole=not chosen.is_set,
                    expected=expected,
                )
                written.add("header", msgspec.json.encode(header))
                ends = time.monotonic() + DURATION_S
                log_bytes_max = self._wal_bytes() + LOG_GROWTH_MAX
                for record in records:
                    pause_for_other_owners()
                    written.add(
                        exchange.KIND_NAMES[type(record)], verbs.encode_record(record)
                    )
                    if written.waiting_bytes < CHUNK_BYTES:
                        continue
                    reason = ""
                    if time.monotonic() > ends:
                        reason = f"it took longer than {DURATION_S:g} s"
                    elif self._wal_bytes() > log_bytes_max:
                        reason = "the write-ahead log grew too long meanwhile"
                    yield written.take()
                    if reason:
                        log.warning("export_cut_off", reason=reason)
                        yield msgspec.json.encode(verbs.CutOff(reason=reason)) + b"\n"
                        return
            yield written.take()
            yield written.footer()
        finally:
            self._exporting.release()

    def _wal_bytes(self) -> int:
        """Return the size in bytes of the database's write-ahead log; 0 for a database on a server."""
        file = self.file
        return backups.file_bytes(file.with_name(f"{file.name}-wal")) if file else 0

    def restore(
        self, body: bytes | bytearray, action: values.Action | None = None
    ) -> exchange.RestoreReport:
        """Store the records in lines of an export in one transaction, undoable as `action`; return counts.

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
        is_first = (
            bool(lines) and verbs.parse_line_kind(lines[0]).record == verbs.HEADER
        )
        is_last = (
            bool(lines) and verbs.parse_line_kind(lines[-1]).record == verbs.FOOTER
        )
        records: list[exchange.Record] = []
        rule = self.secrets()
        for number in range(is_first, len(lines) - is_last):
            pause_for_other_owners()
            try:
                records.append(accept_record(verbs.parse_record(lines[number]), rule))
            except MnemosynedError as error:
                raise type(error)(error.message, field=f"lines[{number}]") from error
        self.postpone_cycles(0.0 if is_last else POSTPONED_S)
        restored = exchange.RestoreReport()
        if records:
            restored = self.store.restore(records, action=action)
        self.on_restored()
        return restored


BATCH_RECORDS = 1_000
BATCH_CHARACTERS = 1_000_000
"""Limits of a transaction; an episode is in one transaction with all its originals."""
RECORD_CHARACTERS = 300
"""Number of characters that a record counts for in addition to its text."""
SAMPLE_MAX = 5
"""Memories of the target for which both stores are searched."""
ADVANCED_EVERY = 100
_COUNTED = (exchange.ExportedMemory, exchange.ExportedEpisode)
_encode = msgspec.json.Encoder().encode
_NUL, _REPLACEMENT = b"\\u0000", "\ufffd".encode()

Advance = Callable[[int, int], object]
"""Function called with the number of memories and summaries since the last call, and with the total."""


@dataclass(slots=True)
class Compared:
    """Result of a comparison of two stores: the counts and hashes of their records, and a sample."""

    counts: Counter[str] = field(default_factory=Counter)
    """Records by kind."""
    sample: list[exchange.ExportedMemory] = field(default_factory=list)
    """Memories chosen at random, with words."""
    _digests: dict[str, Any] = field(default_factory=dict)
    _eligible: int = 0

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the records of each kind, in order."""
        return {kind: digest.hexdigest() for kind, digest in self._digests.items()}

    def add(self, record: exchange.AnyRecord, line: bytes) -> None:
        """Count and hash a record by its kind; each memory has the same chance to be in the sample."""
        kind = exchange.KIND_NAMES[type(record)]
        self.counts[kind] += 1
        self._digests.setdefault(kind, hashlib.sha256()).update(line + b"\n")
        if not isinstance(record, exchange.ExportedMemory) or not record.content:
            return
        self._eligible += 1
        if len(self.sample) < SAMPLE_MAX:
            self.sample.append(record)
        elif (place := random.randrange(self._eligible)) < SAMPLE_MAX:  # noqa: S311 a sample
            self.sample[place] = record


def count_stored(store: ExchangeStore) -> int | None:
    """Return the number of memories and summaries in a store; None if it has no record at all."""
    with store.everything() as (expected, records):
        return None if next(records, None) is None else sum(expected.values())


@dataclass(eq=False)
class Moving:
    """The move of one store's records into another."""

    source: ExchangeStore
    target: ExchangeStore
    stored: Counter[str] = field(default_factory=Counter, init=False)
    """Records that were stored in the target, by kind."""
    known: Counter[str] = field(default_factory=Counter, init=False)
    """Records that were there already."""

    def deliver(self, advance: Advance) -> None:
        """Store all records of the source in the target, which may contain the first records already.

        Calls `advance` now and then. Raises `InvalidRequest` if the target contains anything else.
        """
        progress = _MoveProgress(advance)
        with self.source.everything() as (_, records):
            with self.target.everything() as (_, present):
                for there in present:
                    here = next(records, None)
                    if here is None or (
                        here != there
                        and _encode_comparable(here) != _encode_comparable(there)
                    ):
                        raise InvalidRequest(
                            f"{_record_name(there)} in the new database is not as in the old one: "
                            "name an empty database, or one that only this move has filled, of a "
                            "memory that did not change since then",
                            field="to",
                        )
                    self.known[exchange.KIND_NAMES[type(there)]] += 1
                    progress.note([there], moved=False)
            for batch in _batch_records(records):
                restored = self.target.restore(batch)
                if restored.conflicts:
                    conflict = restored.conflicts[0]
                    raise InvalidRequest(
                        f"the {conflict.kind} {conflict.id} was not moved: {conflict.reason}",
                        field="to",
                    )
                missing = len(batch) - sum(restored.stored.values())
                if missing:
                    wanted = Counter(
                        exchange.KIND_NAMES[type(record)] for record in batch
                    )
                    kinds = ", ".join(wanted - Counter(restored.stored))
                    raise InvalidRequest(
                        f"{missing:,} of {len(batch):,} records were not moved ({kinds}): something "
                        "else writes to the target",
                        field="to",
                    )
                self.stored.update(restored.stored)
                progress.note(batch, moved=True)
        progress.end()

    def compare(self, advance: Advance) -> Compared:
        """Compare source and target record by record; return counts, hashes and a sample.

        Calls `advance` now and then. Raises `InvalidRequest` at the first difference.
        """
        progress = _MoveProgress(advance)
        seen = Compared()
        with (
            self.source.everything() as (_, records),
            self.target.everything() as (_, present),
        ):
            for here in records:
                there = next(present, None)
                line = _encode_comparable(here)
                if there is None or line != _encode_comparable(there):
                    raise _make_difference_error(here)
                seen.add(here, line)
                progress.note([here], moved=True)
            if more := next(present, None):
                raise _make_difference_error(more)
        progress.end()
        return seen


@dataclass(slots=True)
class _MoveProgress:
    """Counts memories and summaries of a move, and reports them to `advance` now and then."""

    advance: Advance
    _waiting: int = 0
    _moved: int = 0

    def note(self, records: Sequence[exchange.AnyRecord], *, moved: bool) -> None:
        """Count memories and summaries; set `moved` to False for records that the target had before."""
        count = sum(isinstance(record, _COUNTED) for record in records)
        self._waiting += count
        self._moved += count * moved
        if self._waiting >= ADVANCED_EVERY:
            self.end()

    def end(self) -> None:
        """Call `advance` with the counts since the last call."""
        self.advance(self._waiting, self._moved)
        self._waiting = 0


def _batch_records(
    records: Iterator[exchange.AnyRecord],
) -> Iterator[list[exchange.AnyRecord]]:
    """Group records into batches within limits; an episode and its originals stay together."""
    batch: list[exchange.AnyRecord] = []
    size = 0
    for record in records:
        group = [record]
        if isinstance(record, exchange.ExportedEpisode):
            group += islice(records, record.originals)
        weight = sum(
            RECORD_CHARACTERS
            + len(getattr(each, "content", ""))
            + (len(each.vector) if isinstance(each, exchange.KeptVector) else 0)
            for each in group
        )
        is_full = len(batch) + len(group) > BATCH_RECORDS
        if batch and (is_full or size + weight > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch += group
        size += weight
    if batch:
        yield batch


def _encode_comparable(record: exchange.AnyRecord) -> bytes:
    """Return the bytes of a record to compare: exact values sorted, NUL characters replaced."""
    if isinstance(record, exchange.ExportedMemory) and record.details:
        record = replace(record, details=tuple(sorted(record.details)))
    kind = exchange.KIND_NAMES[type(record)].encode()
    return kind + b" " + _encode(record).replace(_NUL, _REPLACEMENT)


def _record_name(record: exchange.AnyRecord) -> str:
    """Return the words that name a record in an error, such as its kind and id."""
    name = next(
        (
            str(getattr(record, key))
            for key in ("id", "path", "session", "memory", "client")
            if hasattr(record, key)
        ),
        "",
    )
    kind = exchange.KIND_NAMES[type(record)].replace("_", " ")
    return f"the {kind} {name}".rstrip()


def _make_difference_error(record: exchange.AnyRecord) -> InvalidRequest:
    """Return the error for a record that differs between the source and the target of a move."""
    return InvalidRequest(
        f"{_record_name(record)} is not the same in both: one of them was changed while it was moved. "
        "Stop what uses them, and move into a new database",
        field="to",
    )


def compare_recalls(
    one: SearchStore,
    other: SearchStore,
    sample: Sequence[exchange.ExportedMemory],
    *,
    now: datetime,
) -> tuple[str, ...]:
    """Search both stores for the first words of the sampled memories; return the ids with differing hits."""
    differing: list[str] = []
    for memory in sample:
        question = " ".join(memory.content.split()[:12])
        if _recall_hit_ids(one, question, now) != _recall_hit_ids(other, question, now):
            differing.append(memory.id)
    return tuple(differing)


def _recall_hit_ids(store: SearchStore, question: str, now: datetime) -> list[str]:
    """Return the ids of the hits for a question, best first; no embedding model is asked."""
    query = reading.make_query(memories.Recall(question), now=now)
    candidates = store.candidates(query)
    places = rank(query, candidates)
    return [hit.id for hit in make_hits(query, places, store.documents(places))]
