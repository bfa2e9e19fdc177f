"""Audit log: sender, verb and ids of each request, in chains of hashes that reveal missing lines.

Each process that writes has a chain of its own, so that none waits for another: it numbers its
lines, and the hash of a line covers the hash of the line before. Its first line, and one each
minute, has the heads of other chains, which shows where the end of one was cut off. No line has a
text of a memory or a question.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import msgspec

from mnemosyned.errors import MnemosynedError, StorageFailed
from mnemosyned.ids import new_id
from mnemosyned.logs import log_failure
from mnemosyned.service.backups import append_lines
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.request import Request, names

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.audit import AuditRow, AuditTable

R = TypeVar("R")
Head = tuple[int, str]
"""Number and hash of the last line of a chain."""
Heads = dict[str, Head]
NO_HEAD: Head = (0, "")
UNLOGGED = frozenset({"status"})
"""Verbs that are called every second and show nothing of a memory but counts."""
FORGOTTEN, PUT_BACK = "forgotten", "put_back"
HEADS, PRUNED, STOPPED = "heads", "pruned", "stopped"
IDS_MAX = 20
"""Maximum ids in the line of a request; lines about forgotten memories contain all ids."""
ID_FIELDS = frozenset({"id", "recalled", "learnings", "expand", "archived"})
"""Fields of results that are an id or a list of ids."""


class AuditEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line of the log without its hash; `docs/audit.md` describes the fields."""

    writer: str = ""
    """A ULID of the process that wrote it: chains sort by their beginning."""
    seq: int = 0
    at: datetime
    verb: str
    outcome: str = ""
    owner: int = 0
    name: str = ""
    token: str = ""
    via: str = ""
    address: str = ""
    about: int = 0
    groups: Sequence[int] = ()
    ids: Sequence[str] = ()
    count: int = 0
    heads: Heads = {}
    """Last lines of other chains as they were then; in `pruned`, the last that were deleted."""


_decoder = msgspec.json.Decoder(AuditEntry)
_encode = msgspec.json.Encoder().encode
_BEFORE_HASH = ',"hash":"'
_END = 64 + len('"}')


def parse_line(line: str | bytes) -> AuditEntry | None:
    """Return the entry of a line; None if it was cut off or is no line of an audit log."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class ChainVerifier:
    """Check of the log's lines, given in the order of each chain; it collects the faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.heads: Heads = {}
        self.open: set[str] = set()
        """Chains without a stop: their writers run, were killed, or the end was cut off."""
        self.lines = self.unreadable = 0
        self.seen: Heads = {}
        """The newest lines that others saw."""
        self.pruned: Heads = {}

    def note_heads(self, lines: Iterable[str]) -> None:
        """Collect the last number and hash of each chain that the lines record; call this before `check`."""
        for entry in filter(None, map(parse_line, lines)):
            known = self.pruned if entry.verb == PRUNED else self.seen
            for writer, head in entry.heads.items():
                known[writer] = max(head, known.get(writer, NO_HEAD))

    def check(self, line: str) -> AuditEntry | None:
        """Check the next line, add any fault to `faults`, and return its entry; None if unreadable."""
        self.lines += 1
        entry = parse_line(line)
        if entry is None:
            self.unreadable += 1
            return None
        writer, seq, digest = entry.writer, entry.seq, line[-_END:-2]
        last, former = self.heads.get(writer) or self.pruned.get(writer, NO_HEAD)
        seen, seen_digest = self.seen.get(writer, NO_HEAD)
        fault = ""
        if seq <= last and writer in self.heads:
            fault = "stands after a later one"
        elif seq > last + 1:
            fault = f"follows line {last}: what was between is missing"
        elif seen == seq and seen_digest != digest:
            fault = "differs from the one that a second chain saw"
        elif seq in (1, last + 1):
            former = former if seq > 1 else ""
            body = f"{former}{line[: -_END - len(_BEFORE_HASH)]}}}"
            if hashlib.sha256(body.encode()).hexdigest() != digest:
                fault = "was changed, or the line before it"
        if fault:
            place = f"chain {writer}, line {seq} of {entry.at:%Y-%m-%d %H:%M:%S}"
            self.faults.append(f"{place} {fault}")
        self.heads[writer] = (seq, digest)
        (self.open.discard if entry.verb == STOPPED else self.open.add)(writer)
        return entry

    def finish(self, *, whole: bool) -> None:
        """Add a fault for each chain whose last lines are missing, or if the log is `whole`, all lines."""
        for writer, (seq, _) in sorted(self.seen.items()):
            last, _ = max(
                each.get(writer, NO_HEAD) for each in (self.heads, self.pruned)
            )
            if last < seq and (whole or writer in self.heads):
                self.faults.append(
                    f"chain {writer}: lines {last + 1} to {seq} are missing at its end"
                )


class AuditFile:
    """The lines of this machine's writers in files, one for each month; safe from any process."""

    TAIL_BYTES = 256 * 1024

    def __init__(self, path: Path) -> None:
        """Write next to `path`: `audit.jsonl` stands for `audit-2026-11.jsonl` and others."""
        self._path = path

    def files(self) -> list[Path]:
        """Return the files of all months, the oldest first."""
        names = f"{self._path.stem}-????-??{self._path.suffix}"
        return sorted(self._path.parent.glob(names))

    def append(self, lines: Sequence[str]) -> None:
        """Append lines to this month's file, all of them or none. Raises `OSError`."""
        name = f"{self._path.stem}-{datetime.now(UTC):%Y-%m}{self._path.suffix}"
        append_lines(self._path.with_name(name), map(str.encode, lines))

    def last_lines(self) -> list[str]:
        """Return the lines in the last `TAIL_BYTES` of the newest file. Raises `OSError`."""
        for path in self.files()[-1:]:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - self.TAIL_BYTES))
                return file.read().decode(errors="replace").split("\n")
        return []


def rows_of(lines: Iterable[str]) -> Iterator[AuditRow]:
    """Yield a row of the log's table for each line; skip unreadable lines."""
    for line in lines:
        if entry := parse_line(line):
            yield entry.writer, entry.seq, entry.at, line


def read_lines(files: Iterable[Path]) -> Iterator[str]:
    """Yield the lines of files. Raises `OSError`."""
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from (line.rstrip("\n") for line in file if line != "\n")


class Requester(NamedTuple):
    """The sender of a request; `about` is the owner of the memory, `groups` are further owners."""

    owner: int = 0
    token: str = ""
    via: str = ""
    address: str = ""
    about: int = 0
    name: str = ""
    groups: tuple[int, ...] = ()


_NOBODY = Requester()
REQUESTER: ContextVar[Requester] = ContextVar("requester", default=_NOBODY)
"""Who sent the request that this thread answers."""

QUEUE_MAX = 20_000
"""Lines that may wait to be written; while the queue is full, more lines are counted as lost."""
BATCH_MAX = 1_000
GATHER_S = 0.2
"""Seconds in which lines are collected to be written together, unless a request waits for one."""
MINUTE_S = 60.0
WAIT_S = 5.0
"""How long a request waits for its line."""
RETRY_S = 1.0
RECENT_MAX = 200
HEADS_MAX = 200
ADDRESSES_MAX = 1_000
"""Number of addresses whose failed logins are counted separately within a minute."""


class AuditLog:
    """A process's writer of the log: one thread writes all lines, to the table, then the file.

    Therefore the file has no line that the table lacks, unless the database was restored from a backup.
    """

    def __init__(
        self, table: AuditTable, file: AuditFile | None = None, *, strict: bool = False
    ) -> None:
        """Write to `table` and `file`; `strict` refuses requests that cannot be logged."""
        self._table, self._file, self._strict = table, file, strict
        self._writer = new_id(datetime.now(UTC))
        self._head: Head = NO_HEAD
        self._at = datetime.min.replace(tzinfo=UTC)
        self._queue: deque[AuditEntry] = deque()
        self._sealed: list[AuditRow] = []
        """Numbered lines with their times, which the table lacks."""
        self._unfiled: list[str] = []
        """Lines that the file lacks."""
        self._recent: deque[AuditRow] = deque(maxlen=RECENT_MAX)
        """Lines written last: on a new connection to it, the table is asked for them."""
        self._connections = 0
        self.loss = ""
        """What to do if a standby or backup that lacks lines took the database's place; empty if not."""
        self._changing = threading.Condition()
        self._noted = self._written = self._lost = 0
        self._failure = ""
        self._logins: Counter[tuple[str, int]] = Counter()
        self._names: dict[int, str] = {}
        self._seen: Heads = {}
        self._minute_ends = time.monotonic() + MINUTE_S
        self._work, self._urgent = threading.Event(), threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def __enter__(self) -> Self:
        """Start to write. Raises `StorageFailed` if the table lacks lines of the file: it was restored."""
        try:
            last = self._file.last_lines() if self._file else []
        except OSError as error:
            self._note_failure(error)
        else:
            if count := len(self._table.find_lacking(list(rows_of(last)))):
                raise StorageFailed(self._describe_loss(count))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing = True
        self._urgent.set()
        self._work.set()
        self._thread.join(WAIT_S)

    def _describe_loss(self, count: int) -> str:
        """Return the words for a database that lacks `count` lines of the log, and what to do."""
        files = self._file.files() if self._file else ()
        step = f"mnem db replay {' '.join(map(str, files))}"
        if not files:
            step = "no file has these lines (audit.file), so look for them by hand"
        return (
            f"the database is older than the audit log, of which it lacks {count} lines or more: "
            "memories, owners and tokens deleted since its backup, or on a primary that failed, may be "
            f"back. Before it is served, run with the login that owns the tables: {step}"
        )

    def note(
        self,
        verb: str,
        *,
        ids: Sequence[str] = (),
        whole: bool = False,
        **fields: Any,  # noqa: ANN401
    ) -> None:
        """Queue an entry about the request of this thread; the log's thread writes it.

        `fields` are further fields of the entry; `whole` gives it all ids, not just `IDS_MAX`. With
        `whole`, or in a strict log, wait up to `WAIT_S` seconds until it is on disk; a strict log
        then raises `StorageFailed` if it is not.
        """
        who = REQUESTER.get()
        given = {"count": len(ids), **who._asdict(), **fields}
        if given["about"] == who.owner:
            given["about"] = 0
        ids = ids if whole else ids[:IDS_MAX]
        entry = AuditEntry(at=datetime.now(UTC), verb=verb, ids=ids, **given)
        place = self._put(entry)
        if whole or self._strict:
            self._urgent.set()
            with self._changing:
                self._changing.wait_for(
                    lambda: self._written >= place or self._failure, WAIT_S
                )
                is_written = self._written >= place
            if not is_written:
                self.check(self._failure or "it is not written in time")

    def check(self, failure: str = "") -> None:
        """Raise `StorageFailed` if the log is strict, and has failed by `failure` or in its last write."""
        reason = failure or self._failure
        if self._strict and reason:
            raise StorageFailed(
                f"the audit log cannot be written, and audit.strict refuses what is not logged; what "
                f"this request changed stays: {reason}",
                reason=reason,
            )

    def wrap(self, caller: Caller, *, owner: int = 0) -> Caller:
        """Return a caller that logs calls as requests of `owner`; 0 stands for the sender in `REQUESTER`."""
        return AuditedCaller(caller, self, owner=owner)

    def note_change(self, verb: str, owner: int, ids: Sequence[str] = ()) -> None:
        """Note a change of an owner or its tokens, and wait as `note` does until the line is on disk."""
        self.note(verb, about=owner, ids=ids, whole=True)

    def note_failed_login(self, address: str, owner: int = 0) -> None:
        """Count a failed login, to be logged within a minute; `owner` is the number in the token."""
        with self._changing:
            is_known = (address, owner) in self._logins
            has_room = is_known or len(self._logins) < ADDRESSES_MAX
            self._logins[(address, owner) if has_room else ("", 0)] += 1

    def _put(self, entry: AuditEntry, *, is_last: bool = False) -> float:
        """Queue an entry and return its number; infinity if the queue is full, unless `is_last`."""
        with self._changing:
            if len(self._queue) >= QUEUE_MAX and not is_last:
                self._lost += 1
                return float("inf")
            self._queue.append(entry)
            self._noted += 1
            place = self._noted
        self._work.set()
        return place

    def _run(self) -> None:
        """Write queued entries, each minute failed logins and heads, until the log closes; retry on errors."""
        is_last = False
        while not is_last:
            self._work.wait(max(0.0, self._minute_ends - time.monotonic()))
            self._urgent.wait(GATHER_S)
            self._work.clear()
            self._urgent.clear()
            is_last = self._is_closing
            try:
                if is_last or time.monotonic() >= self._minute_ends:
                    self._minute_ends = time.monotonic() + MINUTE_S
                    self._names.clear()
                    now = datetime.now(UTC)
                    with self._changing:
                        logins, self._logins = self._logins, Counter()
                    for (address, owner), count in logins.items():
                        entry = AuditEntry(at=now, verb="login", outcome="unauthorized")
                        entry.address, entry.about, entry.count = address, owner, count
                        self._put(entry)
                    if self._noted and (moved := self._take_changed_heads()):
                        self._put(AuditEntry(at=now, verb=HEADS, heads=moved))
                    if self._noted and self._is_closing:
                        self._put(AuditEntry(at=now, verb=STOPPED), is_last=True)
                while self._queue or self._sealed or self._unfiled:
                    self._write_batch()
            except Exception as error:  # noqa: BLE001 the thread must go on
                self._note_failure(error)
                time.sleep(0 if is_last else RETRY_S)
                self._work.set()

    def _note_failure(self, error: Exception) -> None:
        """Save the reason for a failed write, log it once, and wake the waiting threads."""
        if not self._failure:
            log_failure("audit_not_written", error)
        with self._changing:
            self._failure = str(error) or repr(error)
            self._changing.notify_all()

    def _take_changed_heads(self) -> Heads:
        """Return the newest lines of other processes' chains that changed since the last call."""
        heads = self._table.heads(HEADS_MAX)
        heads.pop(self._writer, None)
        moved = {w: head for w, head in heads.items() if self._seen.get(w) != head}
        self._seen = heads
        return moved

    def _write_batch(self) -> None:
        """Write lines to the table, then the file; if another process wrote to the chain, begin a new one."""
        if not self._sealed:
            self._seal_next()
        sealed = [line for *_, line in self._sealed]
        if taken := self._table.append(self._sealed):
            reason = (
                f"{taken} lines of chain {self._writer} are another's in the database: who has the "
                "login of this daemon? The lines follow in a new chain"
            )
            log_failure("audit_chain_taken", StorageFailed(reason))
            with self._changing:
                again = map(parse_line, reversed(sealed))
                self._queue.extendleft(filter(None, again))
            self._sealed, self._head = [], NO_HEAD
            self._writer = new_id(datetime.now(UTC))
            return
        if self._connections != self._table.connections:
            self._connections = self._table.connections
            if count := len(self._table.find_lacking(list(self._recent))):
                self.loss = self._describe_loss(count)
                log_failure("audit_lines_missing", StorageFailed(self.loss))
        self._recent.extend(self._sealed)
        self._unfiled += sealed if self._file else []
        self._sealed = []
        is_filed = False
        try:
            if self._file:
                self._file.append(self._unfiled)
            self._unfiled, self._failure, is_filed = [], "", True
        finally:  # without the file the table goes on
            del self._unfiled[:-QUEUE_MAX]
            with self._changing:
                if is_filed or not self._strict:
                    self._written = self._noted - len(self._queue)
                self._changing.notify_all()

    def _seal_next(self) -> None:
        """Move entries from the queue to `_sealed`, each with its number, owner's name and hash."""
        now = datetime.now(UTC)
        entries = list(islice(self._queue, BATCH_MAX))
        taken = len(entries)
        if self._head == NO_HEAD:
            heads = self._take_changed_heads()
            entries.insert(0, AuditEntry(at=now, verb="started", heads=heads))
        if lost := self._lost:
            entries.append(AuditEntry(at=now, verb="lost", count=lost))
        if unnamed := {each.owner for each in entries} - self._names.keys() - {0}:
            self._names |= self._table.names(sorted(unnamed))
        with self._changing:
            for _ in range(taken):
                self._queue.popleft()
            self._lost -= lost
        for entry in entries:
            entry.writer, entry.seq = self._writer, self._head[0] + 1
            entry.at = self._at = max(entry.at, self._at)
            entry.name = entry.name or self._names.get(entry.owner, "")
            body = _encode(entry)
            digest = hashlib.sha256(self._head[1].encode() + body).hexdigest()
            line = f'{body[:-1].decode()}{_BEFORE_HASH}{digest}"}}'
            self._head = (entry.seq, digest)
            self._sealed.append((self._writer, entry.seq, entry.at, line))


class AuditedForgets:
    """Log of forgotten ids, written before the deletion, so that a restored database can repeat it."""

    def __init__(self, audit: Callable[[], AuditLog | None], owner: int) -> None:
        self._audit, self._owner = audit, owner

    def note(self, ids: Sequence[str], verb: str = FORGOTTEN) -> None:
        """Log `verb` about memories or learnings before the deletion; wait up to `WAIT_S` s for the disk."""
        if (audit := self._audit()) and ids:
            audit.note(verb, about=self._owner, ids=ids, whole=True)

    def withdraw(self, ids: Sequence[str]) -> None:
        """Log memories as not forgotten after all: restored, or impossible to forget."""
        self.note(ids, PUT_BACK)


class AuditedCaller(Caller):
    """Caller of verbs that notes each call in the audit log."""

    def __init__(self, caller: Caller, audit: AuditLog, *, owner: int = 0) -> None:
        """Pass requests on to `caller`; they are of `owner` over the socket, if it is not 0."""
        self._caller, self._audit, self._owner = caller, audit, owner

    def call(self, request: Request[R], /) -> R:
        """Carry out a request, log it with ids or error unless in `UNLOGGED`, and return the result."""
        verb, asked = request.verb_name(), names(getattr(request, "id", None))
        if verb in UNLOGGED:
            return self._caller.call(request)
        if self._owner:
            REQUESTER.set(Requester(self._owner, via="socket"))
        self._audit.check()
        try:
            result = self._caller.call(request)
        except Exception as error:
            code = getattr(error, "code", MnemosynedError.code)
            self._audit.note(verb, ids=asked, outcome=code)
            raise
        is_preview = request.is_preview
        ids = ids_in(result) or asked
        count = getattr(result, "memories", None)
        self._audit.note(
            verb,
            ids=ids,
            count=count if isinstance(count, int) else len(ids),
            outcome="preview" if is_preview else "",
            whole=request.deletes and not is_preview,
        )
        return result


def ids_in(result: Any) -> list[str]:  # noqa: ANN401
    """Return the ids in a verb's result, and in the records of its lists."""
    kind = type(result)
    fields = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__slots__", ())
    ids: list[str] = []
    for field in fields:
        value = getattr(result, field)
        for each in value if isinstance(value, list | tuple) else (value,):
            id = each if field in ID_FIELDS else getattr(each, "id", None)
            ids += [id] if isinstance(id, str) and id else []
    return ids
