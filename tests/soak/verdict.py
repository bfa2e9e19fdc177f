"""A verdict on the files that a soaked daemon leaves behind, read without the product."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from e2e.consistency import LEVELS_MAX, damage, dangling, depths, half_done
from soak.ledger import MARKER_END, SUFFIX_CHARS, Ledger, digest

CHUNK_BYTES = 1 << 22
SHOWN = 3
_MARKER = re.compile(
    rb"[0-9a-f]{%d}%s" % (SUFFIX_CHARS - len(MARKER_END), MARKER_END.encode())
)


def findings(database: Path, ledger: Ledger) -> list[str]:
    """Everything that is not as promised; empty when all is well. Nobody may have the file open."""
    return [
        *broken_file(database),
        *_memories(database, ledger),
        *_traces(database, ledger),
    ]


def broken_file(database: Path) -> list[str]:
    """What is damaged, half done or left over, whatever the store was asked."""
    # Rows of the log outlive episodes that were taken back, forgotten or restored from.
    half = half_done(database).items()
    broken = [f"{what}: {count}" for what, count in half if "the log" not in what]
    broken += [f"{what}: {count}" for what, count in dangling(database).items()]
    broken += damage(database)
    return broken + [
        f"{index} has {count} levels"
        for index, count in depths(database).items()
        if count > LEVELS_MAX
    ]


def _memories(database: Path, ledger: Ledger) -> Iterator[str]:
    """Whether each acknowledged memory is there once, unchanged and findable, and nothing else."""
    read_only = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    with closing(read_only) as connection:
        rows = connection.execute(
            "SELECT id, seq, content FROM working_memory "
            "UNION ALL SELECT id, seq, content FROM archive"
        ).fetchall()
        count = Counter(id for id, _, _ in rows)
        expected = set(ledger.expected())
        yield from _listed("acknowledged and lost", expected - count.keys())
        twice = {id for id in count if count[id] > 1}
        yield from _listed("there more than once", twice)
        returned = ledger.forgotten_ids & count.keys() - expected
        yield from _listed("forgotten and there", returned)
        changed, unfindable = set(), set()
        for id, seq, content in rows:
            entry = ledger.entries.get(id)
            if entry is None or (entry.prunable and not content):
                continue
            if digest(content) != entry.digest:
                changed.add(id)
            matches = connection.execute(
                "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?",
                (f'"{entry.marker}"',),
            ).fetchall()
            if matches != [(seq,)]:
                unfindable.add(id)
        yield from _listed("with other words", changed)
        yield from _listed("not found by its own word", unfindable)


def _traces(database: Path, ledger: Ledger) -> Iterator[str]:
    """Forgotten words that can still be read in a file."""
    forgotten = {
        entry.marker[-SUFFIX_CHARS:].encode(): entry.id for entry in ledger.forgotten
    }
    for path in sorted(database.parent.iterdir()):
        if path.is_file():
            traces = {forgotten[each] for each in forgotten.keys() & {*_markers(path)}}
            yield from _listed(f"forgotten and readable in {path.name}", traces)


def _markers(path: Path) -> Iterator[bytes]:
    """The ends of all markers in a file."""
    left = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            text = left + chunk
            yield from (match.group() for match in _MARKER.finditer(text))
            left = text[-SUFFIX_CHARS + 1 :]


def _listed(what: str, ids: set[str]) -> Iterator[str]:
    if ids:
        yield f"{what}: {len(ids)}, such as {', '.join(sorted(ids)[:SHOWN])}"
