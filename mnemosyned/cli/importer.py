"""A file of memories, one JSON object a line, handed to the daemon in batches."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from mnemosyned.domain.errors import MalformedJson, MnemosynedError
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import parse

BATCH = 500
PROBLEMS_SHOWN_MAX = 20
LINE_BYTES_MAX = 64 << 20


@dataclass(slots=True)
class ImportReport:
    """The outcome of an import, in lines."""

    stored: int = 0
    known: int = 0
    learned: int = 0
    """Learnings in force that came with the lines."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each bad line, with its number."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    size: int
    memory: Remember


def import_lines(
    file: BinaryIO,
    caller: Caller,
    *,
    check_only: bool,
    progress: Callable[[int], object],
) -> ImportReport:
    """Send the good lines in batches and report the bad ones.

    With `check_only` the daemon checks every line and stores none. A line without an id gets one
    from the hash of its text, so that a file can be imported again without duplicates. `progress`
    is called with the bytes done. Raises errors that are not the fault of a line.
    """
    report = ImportReport()
    batch: list[_Line] = []
    for line in _parsed(_lines(file), report, progress):
        batch.append(line)
        if len(batch) == BATCH:
            _send(batch, caller, report, check_only=check_only)
            progress(sum(line.size for line in batch))
            batch = []
    if batch:
        _send(batch, caller, report, check_only=check_only)
        progress(sum(line.size for line in batch))
    return report


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE_BYTES_MAX):
        yield line


def _parsed(
    lines: Iterable[bytes], report: ImportReport, progress: Callable[[int], object]
) -> Iterator[_Line]:
    seen: Counter[bytes] = Counter()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            progress(len(text))
            continue
        try:
            memory = parse(Remember, text)
        except MnemosynedError as error:
            reason = error.message.replace("the body", "the line")
            report.refused.append(f"line {number}: {reason} ({error.code})")
            progress(len(text))
            continue
        if isinstance(memory, Remember):
            digest = hashlib.sha256(text.strip()).digest()
            seen[digest] += 1
            id = memory.id or f"import-{digest.hex()[:24]}-{seen[digest]}"
            yield _Line(number, len(text), msgspec.structs.replace(memory, id=id))


def _after(report: ImportReport, error: MnemosynedError) -> MnemosynedError:
    """Add to an error how much earlier batches stored."""
    done = report.stored + report.known
    if not done:
        return error
    return type(error)(
        f"{done:,} memories of the file are stored; import it again for the rest, none is stored "
        f"twice. The next batch failed: {error.message}",
        field=error.field,
    )


def _send(
    batch: list[_Line], caller: Caller, report: ImportReport, *, check_only: bool
) -> None:
    """Send one batch; a line that the daemon refuses is set aside and the rest sent again."""
    remaining = list(batch)
    while remaining:
        request = RememberMany([line.memory for line in remaining], dry_run=check_only)
        try:
            done = caller.call(request)
        except MnemosynedError as error:
            place = re.match(r"memories\[(\d+)\]\.?", error.field or "")
            if isinstance(error, MalformedJson) or place is None:
                raise _after(report, error) from error
            line = remaining.pop(int(place[1]))
            reason = error.message.replace(place[0], "")
            report.refused.append(f"line {line.number}: {reason} ({error.code})")
        else:
            report.stored += sum(memory.stored for memory in done.memories)
            report.learned += done.learned
            report.known += sum(not memory.stored for memory in done.memories)
            return
