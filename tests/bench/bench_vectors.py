"""The nearest vectors by codes against exact search over all of them, as memories grow.

The vectors are made: topics within a space whose directions count as unequally as MiniLM's do on
LoCoMo. What real ones lose is measured with `make bench-locomo`, holding few of them exactly.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.databases import MIGRATIONS
from bench.measure import say, timed
from bench.report import OUTPUT, Report

from mnemosyned.search.vectors.index import VectorIndex
from mnemosyned.search.vectors.packing import unpack
from mnemosyned.storage.common.search import VectorStore
from mnemosyned.storage.sqlite.store import open_store

WIDTH, OF_A_TOPIC = 384, 10
"""Topics grow in number as memories do."""
PAGE = 5_000
QUESTIONS, NEAREST, ASKED_FOR = 100, 10, 200
FOUND_BAR, MEMORY_BAR = 0.99, 0.25
LARGE, TIME_BAR = 1_000_000, 0.5


class ExactVectors:
    """All vectors in single precision, each compared with a question."""

    def __init__(self, size: int) -> None:
        self._rows: Any = np.zeros((size, WIDTH), np.float32)

    def put(self, vectors: Mapping[int, bytes]) -> None:
        """Store vectors of positions from one on."""
        self._rows[np.array(list(vectors)) - 1] = unpack(list(vectors.values()))

    def nearest(self, question: bytes, count: int) -> dict[int, float]:
        """The nearest positions with their cosines, nearest first."""
        near = np.einsum("ij,j->i", self._rows, unpack([question])[0])
        first = np.argpartition(-near, count - 1)[:count]
        first = first[np.argsort(-near[first])]
        return dict(zip((first + 1).tolist(), near[first].tolist(), strict=True))


class Space:
    """Makes vectors near topics, the same in every run."""

    def __init__(self, size: int) -> None:
        self._chance = np.random.default_rng(4)
        self._scale = np.float32(1) / np.arange(26, 26 + WIDTH, dtype=np.float32)
        self._turn = np.linalg.qr(self._chance.standard_normal((WIDTH, WIDTH)))[0]
        self._topics = self._any(size // OF_A_TOPIC)
        self._mean = self._any(1) * 0.6

    def vectors(self, count: int) -> list[bytes]:
        """So many vectors, each as near its topic as it is far from it."""
        which = self._chance.integers(0, len(self._topics), count)
        near = self._mean + self._topics[which] + self._any(count)
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        return [row.tobytes() for row in near.astype("<f2")]

    def _any(self, count: int) -> Any:  # noqa: ANN401 numpy is loaded late
        plain = (
            self._chance.standard_normal((count, WIDTH), dtype=np.float32) * self._scale
        )
        return plain @ self._turn.astype(np.float32)


def write(database: Path, space: Space, size: int) -> int:
    """A database with vectors and no memories, which this bench does not ask for."""
    with open_store(database, migrations=MIGRATIONS) as store:
        model = store.vectors.register_model("made", "made")
    with closing(sqlite3.connect(database)) as connection:
        for first in range(1, size + 1, PAGE):
            made = enumerate(space.vectors(min(PAGE, size + 1 - first)), first)
            rows = ((position, model, vector) for position, vector in made)
            connection.executemany("INSERT INTO embedding VALUES (?, ?, ?)", rows)
        connection.commit()
    return model


def pages(store: VectorStore, model: int, size: int) -> Iterator[dict[int, bytes]]:
    """All vectors, the newest first, as a start reads them."""
    before = size + 1
    while page := store.vectors(model, before=before, limit=PAGE):
        yield page
        before = min(page)


def load(
    holder: ExactVectors | VectorIndex, store: VectorStore, model: int, size: int
) -> None:
    for page in pages(store, model, size):
        holder.put(page)


def megabytes(work: Callable[[], None]) -> float:
    """What it leaves behind in memory."""
    tracemalloc.start()
    work()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / 1_000_000


def compare(report: Report, size: int) -> list[object]:
    """Both ways at one size, in turns; a row of the table."""
    with tempfile.TemporaryDirectory(dir=OUTPUT, prefix="vectors-") as room:
        database = Path(room, "memory.db")
        space = Space(size)
        say(f"writing {size:,}")
        model = write(database, space, size)
        with open_store(database, migrations=MIGRATIONS) as opened:
            store = opened.vectors
            index, again = (
                VectorIndex(read=partial(store.vectors_of, model)) for _ in range(2)
            )
            exact = ExactVectors(size)
            say("loading")
            load_s, _ = timed(load, again, store, model, size)
            index_mb = megabytes(partial(load, index, store, model, size))
            exact_mb = megabytes(partial(load, exact, store, model, size))
            say("asking")
            times: dict[str, list[float]] = {"codes": [], "exact": []}
            found, tenth = [], []
            for question in space.vectors(QUESTIONS):
                took, some = timed(index.nearest, question, ASKED_FOR, least=-1.0)
                times["codes"].append(took)
                took, right = timed(exact.nearest, question, ASKED_FOR)
                times["exact"].append(took)
                ten = list(right)[:NEAREST]
                found.append(len(set(list(some)[:NEAREST]) & set(ten)) / NEAREST)
                tenth.append(right[ten[-1]])
    middle = {way: statistics.median(seconds) * 1_000 for way, seconds in times.items()}
    share, ratio = statistics.fmean(found), middle["codes"] / middle["exact"]
    for name, value in {
        "load_s": load_s,
        "share_found": share,
        "tenth_cosine": statistics.fmean(tenth),
        "codes_p50_ms": middle["codes"],
        "exact_p50_ms": middle["exact"],
        "time_per_exact": ratio,
        "codes_mb": index_mb,
        "exact_mb": exact_mb,
    }.items():
        report.figure(f"{size}/{name}", value)
    report.bar(f"share of the exact ten found at {size:,}", share, ">=", FOUND_BAR)
    report.bar(
        f"memory against exact search at {size:,}",
        index_mb / exact_mb,
        "<=",
        MEMORY_BAR,
    )
    if size >= LARGE:
        report.bar(f"time against exact search at {size:,}", ratio, "<=", TIME_BAR)
    return [
        size,
        share,
        middle["codes"],
        middle["exact"],
        ratio,
        index_mb,
        exact_mb,
        load_s,
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000", help="separated by commas")
    options = parser.parse_args()
    report = Report("bench-vectors")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    headers = [
        "vectors",
        "found",
        "ms",
        "exact, ms",
        "ratio",
        "MB",
        "exact, MB",
        "load, s",
    ]
    rows = [compare(report, int(size)) for size in options.sizes.split(",")]
    report.table("By codes, and exactly", headers, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
