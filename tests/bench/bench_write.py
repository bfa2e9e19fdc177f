"""How fast memories are kept, against bare SQLite and against the same server with nothing to do.

Bare is one table with an FTS5 index over it, the same text and tokenizer, flushed to the disk as
the product does, asked in turns with it: what is compared was measured in the same minute. The
empty verb is `get` of an id that is not there, the cheapest that crosses the whole server. Growth
is measured at the largest size of which `make bench-recall` left a file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.clients import Clients, clients
from bench.corpus import Corpus, Entry
from bench.daemon import embedded, running
from bench.databases import UNTOUCHED, filled, kept_sizes
from bench.measure import Memories, as_request, remember_each, say, timed
from bench.plot import Series, bars, short
from bench.report import OUTPUT, Report

from mnemosyned.verbs import Get, RememberMany

SMALL = 10_000
ROUNDS, SINGLES, BATCH = 12, 100, 1_000
CLIENTS, CALLS = 16, 40
MISSING = Get("no-such-memory")
BARS = {"batch": 0.5, "concurrent": 0.5, "single": 0.6, "growth": 0.8}

# As the product sets its own writer.
BARE_SETUP = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -16000;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA temp_store = MEMORY;
CREATE TABLE note (id INTEGER PRIMARY KEY, content TEXT NOT NULL);
CREATE VIRTUAL TABLE note_fts USING fts5 (
    content, content = 'note', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
"""

Rates = dict[str, list[float]]
"""Memories (or calls) per second of every round, by what was measured."""


class Bare:
    """One table and its index."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(database, isolation_level=None)
        self._connection.executescript(BARE_SETUP)

    def insert(self, entries: Sequence[Entry]) -> None:
        """All of them in one transaction, on disk when this returns."""
        self._connection.execute("BEGIN IMMEDIATE")
        for entry in entries:
            row = self._connection.execute(
                "INSERT INTO note (content) VALUES (?)", (entry.content,)
            )
            self._connection.execute(
                "INSERT INTO note_fts (rowid, content) VALUES (?, ?)",
                (row.lastrowid, entry.content),
            )
        self._connection.execute("COMMIT")

    def insert_each(self, entries: Sequence[Entry]) -> None:
        """Each in a transaction of its own."""
        for entry in entries:
            self.insert([entry])

    def close(self) -> None:
        self._connection.close()


class Texts:
    """New entries, as many as are asked for; none is given twice."""

    def __init__(self) -> None:
        newest = datetime.now(UTC) - timedelta(minutes=5)
        count = 1_000_000  # more than any run takes
        self._rest: Iterator[Entry] = iter(Corpus(count, newest=newest, seed=11))

    def take(self, count: int) -> list[Entry]:
        return list(islice(self._rest, count))


def remember_batch(memories: Memories, entries: Sequence[Entry]) -> None:
    memories.call(RememberMany([as_request(entry) for entry in entries]))


# -------------------------------------------------------------------- rounds


class Rounds:
    """Measures one thing after the other, many times over."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.rates: Rates = defaultdict(list)

    def singles(self, stores: dict[str, Memories], bare: Bare) -> None:
        """One by one: the same entries to everyone."""
        entries = self._texts.take(SINGLES)
        for name, memories in stores.items():
            self.rates[f"{name}, one by one"].append(
                SINGLES / sum(remember_each(memories, entries))
            )
        self._time("bare, one by one", SINGLES, bare.insert_each, entries)

    def batches(self, stores: dict[str, Memories], bare: Bare) -> None:
        """A batch: the same entries to everyone."""
        entries = self._texts.take(BATCH)
        for name, memories in stores.items():
            seconds, _ = timed(remember_batch, memories, entries)
            self.rates[f"{name}, in batches"].append(BATCH / seconds)
        self._time("bare, in batches", BATCH, bare.insert, entries)

    def concurrent(self, many: Clients) -> None:
        """All clients at once: the empty verb, then `remember`."""
        seconds = many.call([[MISSING] * CALLS] * CLIENTS)
        self.rates["empty verb, 16 clients"].append(CLIENTS * CALLS / seconds)
        entries = [self._texts.take(CALLS) for _ in range(CLIENTS)]
        seconds = many.call([[as_request(entry) for entry in own] for own in entries])
        self.rates["socket, 16 clients"].append(CLIENTS * CALLS / seconds)

    def _time(
        self, name: str, count: int, insert: Callable[[Sequence[Entry]], None], entries: list[Entry]
    ) -> None:
        seconds, _ = timed(insert, entries)
        self.rates[name].append(count / seconds)


def measure(room: Path, sizes: Sequence[int]) -> Rates:
    """Every store is open all the time, except where the daemon needs the file for itself."""
    rounds = Rounds(Texts())
    with ExitStack() as stack:
        bare = stack.enter_context(closing(Bare(room / "bare.db")))
        bare.insert(Texts().take(SMALL))
        stores: dict[str, Memories] = {
            f"embedded at {short(size)}": stack.enter_context(embedded(copied(size, room, "own")))
            for size in sizes
        }
        daemon = stack.enter_context(running(copied(SMALL, room, "served"), UNTOUCHED))
        stores["socket"] = stack.enter_context(daemon.client())
        many = stack.enter_context(clients(CLIENTS, daemon.socket))
        os.sync()  # or the disk is busy with the copies while it is measured
        for turn in range(1, ROUNDS + 1):
            say(f"round {turn} of {ROUNDS}")
            rounds.singles(stores, bare)
            rounds.batches(stores, bare)
            rounds.concurrent(many)
    return rounds.rates


def copied(size: int, room: Path, name: str) -> Path:
    """A copy of the kept file, as what is written must not stay in it."""
    database = room / f"{name}-{size}.db"
    shutil.copy(filled(size), database)
    return database


# --------------------------------------------------------------------- report


def ratio(rates: Rates, name: str, base: str) -> float:
    """The median over the rounds of one rate to another, as both meet the same minute."""
    return statistics.median(a / b for a, b in zip(rates[name], rates[base], strict=True))


def publish(report: Report, rates: Rates, largest: int) -> None:
    rows: list[list[object]] = []
    for name, values in rates.items():
        median = report.figure(f"{name}/per_s", statistics.median(values))
        rows.append([name, median, min(values), max(values)])
    report.table("Per second, over the rounds", ["what", "median", "least", "most"], rows)
    small = f"embedded at {short(SMALL)}"
    held = [
        ("batch", "socket, in batches", "bare, in batches"),
        ("concurrent", "socket, 16 clients", "empty verb, 16 clients"),
        ("single", f"{small}, one by one", "bare, one by one"),
    ]
    if largest > SMALL:
        large = f"embedded at {short(largest)}"
        held += [
            ("growth", f"{large}, one by one", f"{small}, one by one"),
            ("growth", f"{large}, in batches", f"{small}, in batches"),
        ]
    for bar, name, base in held:
        report.bar(f"{name} / {base}", ratio(rates, name, base), ">=", BARS[bar])
    for name, base in [
        (f"{small}, in batches", "bare, in batches"),
        ("socket, one by one", "bare, one by one"),
        ("socket, 16 clients", "bare, one by one"),
    ]:
        report.figure(f"{name} / {base}", ratio(rates, name, base))


def picture(rates: Rates, largest: int) -> str:
    groups = ["one by one", "16 clients", "in batches"]
    sizes = dict.fromkeys((SMALL, largest))
    names = {
        "bare": "bare SQLite and FTS5",
        **{f"embedded at {short(size)}": f"embedded at {short(size)}" for size in sizes},
        "socket": f"over the socket at {short(SMALL)}",
        "empty verb": "over the socket, an empty verb",
    }
    series = [
        Series(
            label,
            [
                statistics.median(values) if (values := rates.get(f"{name}, {group}")) else None
                for group in groups
            ],
        )
        for name, label in names.items()
    ]
    title = "Remember, every memory on disk when it is acknowledged"
    return bars(title, y_label="per second", groups=groups, series=series)


def main() -> int:
    report = Report("bench-write")
    filled(SMALL)
    largest = kept_sizes()[-1]
    with tempfile.TemporaryDirectory(prefix="writing-", dir=OUTPUT) as room:
        rates = measure(Path(room), sorted({SMALL, largest}))
    publish(report, rates, largest)
    report.picture("write", picture(rates, largest))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
