"""Everything that is kept, as lines from one moment, and such lines stored again."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mnemosyned.domain.errors import DaemonBusy, InvalidRequest, MnemosynedError
from mnemosyned.domain.exchange import ExportFilter, Restored
from mnemosyned.domain.ports.archive.exchange import ExchangeStore, Record
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.secrets.masking import SecretRule
from mnemosyned.fairness import give_way
from mnemosyned.logs import logger
from mnemosyned.service.exchange.checks import accepted
from mnemosyned.service.policies import About
from mnemosyned.verbs.streams.exchange import (
    FOOTER,
    HEADER,
    KIND_OF,
    CutOff,
    Export,
    Footer,
    Header,
    line_kind,
    parse_record,
    record_line,
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
class _Written:
    """The lines written so far."""

    digest: Any = field(default_factory=hashlib.sha256)
    counts: Counter[str] = field(default_factory=Counter)
    waiting: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, kind: str, line: bytes) -> None:
        """Add a line."""
        self.counts[kind] += 1
        self.waiting.append(line + b"\n")
        self.waiting_bytes += len(line) + 1

    def take(self) -> bytes:
        """Return the lines that wait, as one chunk."""
        chunk = b"".join(self.waiting)
        self.waiting, self.waiting_bytes = [], 0
        self.digest.update(chunk)
        return chunk

    def footer(self) -> bytes:
        """Return the last line."""
        footer = Footer(counts=dict(self.counts), sha256=self.digest.hexdigest())
        return msgspec.json.encode(footer) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclesMeanwhile:
    """Sleep cycles while parts are restored: put off before each part, and told after it.

    A cycle amid an import would summarize what the next lines have a summary of.
    """

    postpone: Callable[[float], object]
    """Takes seconds."""
    on_restored: Callable[[], object]


class ExchangeService:
    """Export, one at a time, and exact import."""

    def __init__(
        self,
        *,
        store: ExchangeStore,
        clock: Clock,
        about: About,
        cycles: CyclesMeanwhile,
        secrets: Callable[[], SecretRule] = lambda: SecretRule.KEEP,
        limits: ExportLimits | None = None,
    ) -> None:
        """Restore by `secrets`, the rule in force for what is stored."""
        self._store = store
        self._clock = clock
        self._about = about
        self._cycles = cycles
        self._secrets = secrets
        self._limits = limits or ExportLimits()
        self._exporting = threading.Lock()

    def export(self, request: Export) -> Iterator[bytes]:
        """Return the lines in chunks; closing the iterator ends the snapshot.

        Raises `DaemonBusy` while another export runs: each holds a snapshot; and `StorageFailed`.
        """
        chosen = request.chosen
        if not self._exporting.acquire(blocking=False):
            raise DaemonBusy("another export is running; try again when it is done")
        chunks = self._chunks(chosen)
        next(chunks)  # from here on, closing it frees the lock
        return chunks

    def _chunks(self, chosen: ExportFilter) -> Iterator[bytes]:
        written = _Written()
        try:
            with self._store.export(chosen) as (expected, records):
                yield b""
                written.add("header", self._header(chosen, expected))
                for reason in self._add_all(records, written):
                    yield written.take()
                    if reason:
                        log.warning("export_cut_off", reason=reason)
                        yield msgspec.json.encode(CutOff(reason=reason)) + b"\n"
                        return
            yield written.take()
            yield written.footer()
        finally:
            self._exporting.release()

    def _add_all(self, records: Iterator[Record], written: _Written) -> Iterator[str]:
        """Add all lines, and yield for each chunk: a reason, if the snapshot has to end."""
        ends = time.monotonic() + self._limits.duration_s
        log_bytes_max = self._log_bytes() + self._limits.log_bytes
        for record in records:
            give_way()
            written.add(KIND_OF[type(record)], record_line(record))
            if written.waiting_bytes < CHUNK_BYTES:
                continue
            if time.monotonic() > ends:
                yield f"it took longer than {self._limits.duration_s:g} s"
            elif self._log_bytes() > log_bytes_max:
                yield "the write-ahead log grew too long meanwhile"
            else:
                yield ""

    def _log_bytes(self) -> int:
        file = self._about.file
        if file is None:
            return 0
        try:
            return file.with_name(file.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def _header(self, chosen: ExportFilter, expected: dict[str, int]) -> bytes:
        header = Header(
            program=self._about.version,
            schema=self._about.schema_version,
            created_at=self._clock.now(),
            database=self._about.database,
            whole=chosen.is_whole,
            expected=expected,
        )
        return msgspec.json.encode(header)

    def restore(self, body: bytes | bytearray) -> Restored:
        """Store the records of these lines; one transaction. The footer lets cycles begin again.

        Raises `MalformedJson` and `InvalidRequest`, which name the line.
        """
        lines = [line for line in bytes(body).split(b"\n") if line.strip()]
        if len(lines) > LINES_MAX:
            raise InvalidRequest(
                f"{len(lines):,} lines in one request; send {LINES_MAX:,} at most"
            )
        is_first = bool(lines) and line_kind(lines[0]).record == HEADER
        is_last = bool(lines) and line_kind(lines[-1]).record == FOOTER
        records = _parsed(
            lines[: len(lines) - is_last], self._secrets(), start=is_first
        )
        self._cycles.postpone(0.0 if is_last else POSTPONED_S)
        restored = self._store.restore(records) if records else Restored()
        self._cycles.on_restored()
        return restored


def _parsed(lines: list[bytes], rule: SecretRule, *, start: int) -> list[Record]:
    """Read the records from a line on. Raises the error that names the line at fault."""
    records: list[Record] = []
    for number, line in enumerate(lines[start:], start):
        give_way()
        try:
            records.append(accepted(parse_record(line), rule))
        except MnemosynedError as error:
            raise type(error)(error.message, field=f"lines[{number}]") from error
    return records
