"""How fast memories are kept, against bare SQLite and against the same server with nothing to do.

Bare is one table with an FTS5 index over it, kept in step by a trigger as SQLite's manual shows;
the same text and tokenizer, flushed to the disk as the product does, in turns with it. Without a
trigger, the program naming each row twice ("by hand"), FTS5 gathers a batch before it writes: that
is several times as fast, and shown beside the bars. The empty verb is `get` of an id that is not
there, the cheapest that crosses the whole server. Growth is measured at the largest size of which
`make bench-recall` left a file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.clients import Clients, clients
from bench.corpus import Corpus, Entry
from bench.daemon import embedded, running
from bench.databases import UNTOUCHED, filled, kept_sizes
from bench.measure import Memories, as_request, say, timed
from bench.plot import Series, bars, short
from bench.report import OUTPUT, Report

from mnemosyned.verbs.memories import Get, RememberMany

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
BARE_TRIGGER = """
CREATE TRIGGER note_inserted AFTER INSERT ON note BEGIN
    INSERT INTO note_fts (rowid, content) VALUES (new.id, new.content);
END;
"""

Rates = dict[str, list[float]]
"""Memories (or calls) per second of every round, by what was measured."""


class Bare:
    """One table and its index."""

    def __init__(self, database: Path, *, by_hand: bool) -> None:
        self._by_hand = by_hand
        self._connection = sqlite3.connect(database, isolation_level=None)
        self._connection.executescript(
            BARE_SETUP if by_hand else BARE_SETUP + BARE_TRIGGER
        )

    def insert(self, entries: Sequence[Entry]) -> None:
        """All of them in one transaction, on disk when this returns."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for entry in entries:
            row = execute(
                "INSERT INTO note (content) VALUES (?)", (entry.content,)
            ).lastrowid
            if self._by_hand:
                execute(
                    "INSERT INTO note_fts (rowid, content) VALUES (?, ?)",
                    (row, entry.content),
                )
        execute("COMMIT")

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

    def __init__(
        self, texts: Texts, bare: Mapping[str, Bare], stores: Mapping[str, Memories]
    ) -> None:
        self._texts = texts
        self._bare = bare
        self._stores = stores
        self.rates: Rates = defaultdict(list)

    def round(self, many: Clients) -> None:
        self._singles()
        self._batches()
        self._concurrent(many)

    def _singles(self) -> None:
        """One by one: each entry to everyone before the next, as the disk's mood changes fast."""
        seconds = dict.fromkeys([*self._stores, *self._bare], 0.0)
        for entry in self._texts.take(SINGLES):
            for name, memories in self._stores.items():
                seconds[name] += timed(memories.call, as_request(entry))[0]
            for name, bare in self._bare.items():
                seconds[name] += timed(bare.insert, [entry])[0]
        for name, taken in seconds.items():
            self._note(f"{name}, one by one", SINGLES, taken)

    def _batches(self) -> None:
        """A batch: the same entries to everyone."""
        entries = self._texts.take(BATCH)
        for name, memories in self._stores.items():
            self._note(
                f"{name}, in batches",
                BATCH,
                timed(remember_batch, memories, entries)[0],
            )
        for name, bare in self._bare.items():
            self._note(f"{name}, in batches", BATCH, timed(bare.insert, entries)[0])

    def _concurrent(self, many: Clients) -> None:
        """All clients at once: the empty verb, then `remember`."""
        calls = CLIENTS * CALLS
        self._note(
            "empty verb, 16 clients", calls, many.call([[MISSING] * CALLS] * CLIENTS)
        )
        requests = [
            [as_request(one) for one in self._texts.take(CALLS)] for _ in range(CLIENTS)
        ]
        self._note("socket, 16 clients", calls, many.call(requests))

    def _note(self, name: str, count: int, seconds: float) -> None:
        self.rates[name].append(count / seconds)


def measure(room: Path, sizes: Sequence[int]) -> Rates:
    """All stores are open all the time; the first round warms up."""
    texts = Texts()
    start = texts.take(SMALL)
    with ExitStack() as stack:
        bare = {
            "bare": stack.enter_context(closing(Bare(room / "bare.db", by_hand=False))),
            "bare by hand": stack.enter_context(
                closing(Bare(room / "hand.db", by_hand=True))
            ),
        }
        for one in bare.values():
            one.insert(start)
        stores: dict[str, Memories] = {
            f"embedded at {short(size)}": stack.enter_context(
                embedded(copied(size, room, "own"))
            )
            for size in sizes
        }
        daemon = stack.enter_context(running(copied(SMALL, room, "served"), UNTOUCHED))
        stores["socket"] = stack.enter_context(daemon.client())
        many = stack.enter_context(clients(CLIENTS, daemon.socket))
        os.sync()  # or the disk is busy with the copies while it is measured
        rounds = Rounds(texts, bare, stores)
        for turn in range(ROUNDS + 1):
            say(f"round {turn} of {ROUNDS}")
            rounds.round(many)
    return {name: rates[1:] for name, rates in rounds.rates.items()}


def copied(size: int, room: Path, name: str) -> Path:
    """A copy of the kept file, as what is written must not stay in it."""
    database = room / f"{name}-{size}.db"
    shutil.copy(filled(size), database)
    return database


# --------------------------------------------------------------------- report


def ratio(rates: Rates, name: str, base: str) -> float:
    """The median over the rounds of one rate to another, as both meet the same minute."""
    return statistics.median(
        a / b for a, b in zip(rates[name], rates[base], strict=True)
    )


def publish(report: Report, rates: Rates, largest: int) -> None:
    rows: list[list[object]] = []
    for name, values in rates.items():
        median = report.figure(f"{name}/per_s", statistics.median(values))
        rows.append([name, median, min(values), max(values)])
    report.table(
        "Per second, over the rounds", ["what", "median", "least", "most"], rows
    )
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
        (f"{small}, in batches", "bare by hand, in batches"),
        ("socket, in batches", "bare by hand, in batches"),
        (f"{small}, one by one", "bare by hand, one by one"),
        ("socket, one by one", "bare, one by one"),
        ("socket, 16 clients", "bare, one by one"),
    ]:
        report.figure(f"{name} / {base}", ratio(rates, name, base))


def picture(rates: Rates, largest: int) -> str:
    groups = ["one by one", "16 clients", "in batches"]
    sizes = dict.fromkeys((SMALL, largest))
    names = {
        "bare": "bare SQLite, index by trigger",
        "bare by hand": "bare SQLite, index by hand",
        **{
            f"embedded at {short(size)}": f"embedded at {short(size)}" for size in sizes
        },
        "socket": f"over the socket at {short(SMALL)}",
        "empty verb": "over the socket, an empty verb",
    }
    series = [
        Series(
            label,
            [
                statistics.median(values)
                if (values := rates.get(f"{name}, {group}"))
                else None
                for group in groups
            ],
        )
        for name, label in names.items()
    ]
    title = "Remember, every memory on disk when it is acknowledged"
    return bars(
        title, y_label="per second", groups=groups, series=series, logarithmic=True
    )


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
