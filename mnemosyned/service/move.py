"""A move of a whole store into an empty one, and the comparison of both."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.exchange import (
    KIND_NAMES,
    AnyRecord,
    ExportedEpisode,
    ExportedMemory,
    KeptVector,
    RestoreReport,
)
from mnemosyned.memory.ports import SearchStore
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.service.reading import make_query
from mnemosyned.verbs.memories import Recall

if TYPE_CHECKING:
    from mnemosyned.storage.common.exchange import ExchangeStore

BATCH_RECORDS = 1_000
BATCH_CHARACTERS = 1_000_000
"""The bounds of a transaction; an episode is in one with all its originals."""
RECORD_CHARACTERS = 300
"""What a record counts for besides its words."""
SAMPLE_MAX = 5
"""Memories of the target for which both stores are searched."""
ADVANCED_EVERY = 100
_COUNTED = (ExportedMemory, ExportedEpisode)
_encode = msgspec.json.Encoder().encode
_NUL, _REPLACEMENT = b"\\u0000", "\ufffd".encode()

Advance = Callable[[int, int], object]
"""Called with the memories and summaries since the last call, and with those of all calls."""


@dataclass(slots=True)
class Compared:
    """The counts of both stores."""

    counts: Counter[str] = field(default_factory=Counter)
    """Records by kind."""
    sample: list[ExportedMemory] = field(default_factory=list)
    """Memories chosen at random, with words."""
    _digests: dict[str, Any] = field(default_factory=dict)
    _eligible: int = 0

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the records of each kind, in order."""
        return {kind: digest.hexdigest() for kind, digest in self._digests.items()}

    def add(self, record: AnyRecord, line: bytes) -> None:
        """Count and hash a record by its kind; each memory has the same chance to be in the sample."""
        kind = KIND_NAMES[type(record)]
        self.counts[kind] += 1
        self._digests.setdefault(kind, hashlib.sha256()).update(line + b"\n")
        if not isinstance(record, ExportedMemory) or not record.content:
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
        """Store all records of the source in the target, which may contain the first of them.

        `advance` is called now and then with the counts so far. Raises `InvalidRequest` if the
        target contains anything else.
        """
        progress = _MoveProgress(advance)
        with self.source.everything() as (_, records):
            self._skip_present(records, progress)
            for batch in _record_batches(records):
                restored = self.target.restore(batch)
                _check_stored(batch, restored)
                self.stored.update(restored.stored)
                progress.note(batch, moved=True)
        progress.end()

    def _skip_present(
        self, records: Iterator[AnyRecord], progress: _MoveProgress
    ) -> None:
        """Read past the records that the target has. Raises `InvalidRequest` if it has any other."""
        with self.target.everything() as (_, present):
            for there in present:
                here = next(records, None)
                if here is None or (
                    here != there
                    and _encode_comparable(here) != _encode_comparable(there)
                ):
                    raise InvalidRequest(
                        f"{_record_name(there)} is not of this memory: name a new database, or the one "
                        "that the same move began to fill; a memory that changed since then is "
                        "moved into a new one",
                        field="to",
                    )
                self.known[KIND_NAMES[type(there)]] += 1
                progress.note([there], moved=False)

    def compare(self, advance: Advance) -> Compared:
        """Compare source and target record by record; return counts, hashes and a sample.

        `advance` is called now and then with the counts so far. Raises `InvalidRequest` at the
        first difference.
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
    """Counts memories and summaries, and tells of them now and then."""

    advance: Advance
    _waiting: int = 0
    _moved: int = 0

    def note(self, records: Sequence[AnyRecord], *, moved: bool) -> None:
        """Count memories and summaries among records; `moved` tells them from those found there."""
        count = sum(isinstance(record, _COUNTED) for record in records)
        self._waiting += count
        self._moved += count * moved
        if self._waiting >= ADVANCED_EVERY:
            self.end()

    def end(self) -> None:
        """Report the counts since the last report."""
        self.advance(self._waiting, self._moved)
        self._waiting = 0


def _record_batches(records: Iterator[AnyRecord]) -> Iterator[list[AnyRecord]]:
    """Yield records to be stored together, within limits, an episode with its originals."""
    batch: list[AnyRecord] = []
    size = 0
    for record in records:
        group = [record]
        if isinstance(record, ExportedEpisode):
            group += islice(records, record.originals)
        weight = sum(
            RECORD_CHARACTERS
            + len(getattr(each, "content", ""))
            + (len(each.vector) if isinstance(each, KeptVector) else 0)
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


def _check_stored(batch: Sequence[AnyRecord], restored: RestoreReport) -> None:
    """Raise `InvalidRequest` if a record of a batch was not stored, by the report `restored`."""
    if restored.conflicts:
        conflict = restored.conflicts[0]
        raise InvalidRequest(
            f"the {conflict.kind} {conflict.id} was not moved: {conflict.reason}",
            field="to",
        )
    missing = len(batch) - sum(restored.stored.values())
    if missing:
        wanted = Counter(KIND_NAMES[type(record)] for record in batch)
        kinds = ", ".join(wanted - Counter(restored.stored))
        raise InvalidRequest(
            f"{missing:,} of {len(batch):,} records were not moved ({kinds}): something else "
            "writes to the target",
            field="to",
        )


def _encode_comparable(record: AnyRecord) -> bytes:
    """Return the bytes of a record to compare: exact values sorted, NUL characters replaced."""
    if isinstance(record, ExportedMemory) and record.details:
        record = replace(record, details=tuple(sorted(record.details)))
    kind = KIND_NAMES[type(record)].encode()
    return kind + b" " + _encode(record).replace(_NUL, _REPLACEMENT)


def _record_name(record: AnyRecord) -> str:
    """Return the kind and id of a record for a message: "the memory 01ARZ3…"."""
    name = next(
        (
            str(getattr(record, key))
            for key in ("id", "path", "session", "memory", "client")
            if hasattr(record, key)
        ),
        "",
    )
    kind = KIND_NAMES[type(record)].replace("_", " ")
    return f"the {kind} {name}".rstrip()


def _make_difference_error(record: AnyRecord) -> InvalidRequest:
    """Return the error that a record is not the same in the source and target of a move."""
    return InvalidRequest(
        f"{_record_name(record)} is not the same in both: one of them was changed while it was moved. "
        "Stop what uses them, and move into a new database",
        field="to",
    )


QUESTION_WORDS = 12


def compare_recalls(
    one: SearchStore,
    other: SearchStore,
    sample: Sequence[ExportedMemory],
    *,
    now: datetime,
) -> tuple[str, ...]:
    """Search in two stores, at the time `now`, for the first words of each sampled memory.

    Return the ids of the memories for which the hits or their order differ.
    """
    differing: list[str] = []
    for memory in sample:
        question = " ".join(memory.content.split()[:QUESTION_WORDS])
        if _recall_hit_ids(one, question, now) != _recall_hit_ids(other, question, now):
            differing.append(memory.id)
    return tuple(differing)


def _recall_hit_ids(store: SearchStore, question: str, now: datetime) -> list[str]:
    """Return the ids of the hits for a question, best first; no embedding model is asked."""
    query = make_query(Recall(question), now=now)
    candidates = store.candidates(query)
    places = rank(query, candidates)
    return [hit.id for hit in make_hits(query, places, store.documents(places))]
