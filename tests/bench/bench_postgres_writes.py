"""How fast memories are kept on PostgreSQL, against bare inserts into the same table.

    python tests/bench/bench_postgres_writes.py [--rounds 8]

Bare is the table of memories with all of its indexes in a database of its own, into which rows are
inserted that are ready: each insert is on disk when it returns, as what the store acknowledges. Both
take turns, one by one and in batches. Then so many clients as `CLIENTS` says write, each a process
with an owner of its own: bare, by stores, and over HTTP to one daemon and to several, which serve
many owners. SQLite's figures of the same texts stand beside. Bytes are those of the database with
its indexes, without the server's log, for each byte of text: of memories that come and sleep all at
once, and of the same ones that come in days, with a sleep and a VACUUM after each, as in a life.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from bench.corpus import FRESH_SPAN, Corpus, Entry
from bench.measure import as_request, say, timed
from bench.postgres_writers import (
    MIGRATIONS,
    BareTable,
    Drafts,
    Writer,
    running,
)
from bench.report import Report
from e2e import daemons as e2e
from support.endpoints import unused_port
from support.postgres import Server

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config.settings import Config
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.store import open_owners, open_store
from mnemosyned.storage.sqlite.store import open_store as open_file
from mnemosyned.verbs.memories import RememberMany
from mnemosyned.verbs.upkeep import Sleep

ROUNDS, SINGLES, BATCH = 8, 150, 1_000
CLIENTS, CALLS = 16, 60
DAEMONS, OWNERS = 4, 200
DAEMON_TURNS = 3
"""Rounds at daemons for each of the others: one varies by a third, and their bar is near."""
MEMORIES = 20_000
LIFE_DAYS = 10
BARS = {"single": 0.6, "batch": 0.2, "clients": 0.6, "daemons": 1.0}
BYTES_BEFORE, BYTES_AFTER = 6.0, 8.0

Rates = dict[str, list[float]]
"""Memories a second of every round, by what was measured."""


def one_by_one(server: Server, room: Path, rounds: int) -> Rates:
    """A store, the bare table and a file in turns, singly and in batches."""
    rates: Rates = defaultdict(list)
    drafts = Drafts(seed=3)
    dsn, bare_dsn = server.new_database(), server.new_database()
    with ExitStack() as stack:
        store = stack.enter_context(open_store(dsn, migrations=MIGRATIONS))
        stack.enter_context(open_store(bare_dsn, migrations=MIGRATIONS))
        bare = stack.enter_context(closing(BareTable(bare_dsn, 1)))
        file = stack.enter_context(
            open_file(room / "beside.db", migrations=shipped("migrations"))
        )
        for turn in range(rounds + 1):
            say(f"one by one, round {turn} of {rounds}")
            seconds = {"store": 0.0, "bare": 0.0, "SQLite": 0.0}
            for draft in drafts.take(SINGLES):
                seconds["store"] += timed(store.memories.remember, [draft])[0]
                rows = bare.rows([draft])
                seconds["bare"] += timed(bare.insert, rows)[0]
                seconds["SQLite"] += timed(file.memories.remember, [draft])[0]
            batch = drafts.take(BATCH)
            rows = bare.rows(batch)
            batches = {
                "store": timed(store.memories.remember, batch)[0],
                "bare": timed(bare.insert, rows)[0],
                "SQLite": timed(file.memories.remember, batch)[0],
            }
            if turn:  # the first warms up
                for name, taken in seconds.items():
                    rates[f"{name}, one by one"].append(SINGLES / taken)
                for name, taken in batches.items():
                    rates[f"{name}, in batches"].append(BATCH / taken)
    return rates


def many_clients(server: Server, rounds: int) -> Rates:
    """Clients on owners of their own: bare, and by stores."""
    rates: Rates = defaultdict(list)
    dsn, bare_dsn = server.new_database(), server.new_database()
    for each in (dsn, bare_dsn):
        with open_store(each, migrations=MIGRATIONS):
            pass
    groups = {
        "bare": [Writer("bare", bare_dsn, 10 + n, seed=20 + n) for n in range(CLIENTS)],
        "store": [Writer("store", dsn, 10 + n, seed=50 + n) for n in range(CLIENTS)],
    }
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(running(group)) for name, group in groups.items()
        }
        for turn in range(rounds + 1):
            say(f"{CLIENTS} clients, round {turn} of {rounds}")
            for name, group in writers.items():
                rate = group.write(CALLS)
                if turn:
                    rates[f"{name}, {CLIENTS} clients"].append(rate)
    return rates


@contextmanager
def serving(dsn: str, home: Path, count: int) -> Iterator[list[str]]:
    """So many daemons that serve the owners of a database; their URLs."""
    with ExitStack() as stack:
        urls = []
        for number in range(count):
            port = unused_port()
            folder = home / f"d{number}"
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(
                e2e.running(
                    folder,
                    *("--database", dsn),
                    anew=True,
                    MNEMOSYNE_LISTEN=f"127.0.0.1:{port}",
                    MNEMOSYNE_OWNERS_SERVE="true",
                )
            )
            urls.append(f"http://127.0.0.1:{port}")
        yield urls


def many_daemons(
    report: Report, server: Server, room: Path, owners: int, rounds: int
) -> Rates:
    """Clients of many owners over HTTP, at one daemon and at several, in turns."""
    rates: Rates = defaultdict(list)
    dsn = server.new_database()
    with open_owners(dsn, migrations=MIGRATIONS) as administered:
        tokens = [
            administered.issue(
                administered.add(f"owner-{n}").name, "bench", tuple(Scope)
            ).secret
            for n in range(owners)
        ]
    names = {1: "one daemon", DAEMONS: f"{DAEMONS} daemons"}
    errors = 0
    with serving(dsn, room, DAEMONS) as urls, ExitStack() as stack:
        groups = {
            count: stack.enter_context(
                running(
                    [
                        Writer(
                            "daemon",
                            served=[
                                (urls[n % count], token) for token in tokens[n::CLIENTS]
                            ],
                            seed=100 + n,
                        )
                        for n in range(CLIENTS)
                    ]
                )
            )
            for count in names
        }
        for turn in range(rounds + 1):
            say(f"{owners} owners at daemons, round {turn} of {rounds}")
            for count, name in names.items():
                rate = groups[count].write(CALLS)
                if turn:
                    rates[f"{CLIENTS} clients, {owners} owners, {name}"].append(rate)
        errors = sum(group.errors for group in groups.values())
    report.bar("requests refused", errors, "<=", 0)
    return rates


def sizes(report: Report, server: Server, memories: int) -> None:
    """Bytes of the database for each byte of text, before and after a sleep."""
    dsn = server.new_database()
    entries = asleep(memories, FRESH_SPAN)
    text = size_of_text(entries)
    with open_memory(Config(database=dsn, auto_sleep=False, wm_max=10**7)) as memory:
        empty = size_of(dsn)
        remember(memory, entries)
        before = report.figure("bytes before sleep", (size_of(dsn) - empty) / text)
        slept = memory.service.call(Sleep())
        say(f"slept over {slept.evicted:,} of {memories:,}")
        report.bar("share that slept", slept.evicted / memories, ">=", 1.0)
        after = report.figure("bytes after sleep", (size_of(dsn) - empty) / text)
    report.bar("bytes a byte of text, before sleep", before, "<=", BYTES_BEFORE)
    report.bar("bytes a byte of text, after sleep", after, "<=", BYTES_AFTER)


def sizes_of_a_life(report: Report, server: Server, memories: int) -> None:
    """The same memories in days, each followed by a sleep and by what autovacuum does."""
    dsn = server.new_database()
    entries = asleep(memories, timedelta(days=LIFE_DAYS))
    with open_memory(Config(database=dsn, auto_sleep=False, wm_max=10**7)) as memory:
        empty = size_of(dsn)
        for day in range(LIFE_DAYS):
            first, last = (memories * n // LIFE_DAYS for n in (day, day + 1))
            remember(memory, entries[first:last])
            memory.service.call(Sleep())
            kept = size_of(dsn) - empty
    life = report.figure("bytes after a life", kept / size_of_text(entries))
    name = f"bytes a byte of text, after {LIFE_DAYS} days with a sleep each"
    report.bar(name, life, "<=", BYTES_AFTER)


def asleep(memories: int, span: timedelta) -> Sequence[Entry]:
    """Memories over a span of time, all of them old enough to be consolidated."""
    newest = datetime.now(UTC) - timedelta(days=40)
    return list(Corpus(memories, newest=newest, span=span, seed=5))


def size_of_text(entries: Sequence[Entry]) -> int:
    """Bytes of what is said."""
    return sum(len(entry.content.encode()) for entry in entries)


def remember(memory: OpenMemory, entries: Sequence[Entry]) -> None:
    """Have memories remembered in batches."""
    for first in range(0, len(entries), BATCH):
        some = entries[first : first + BATCH]
        memory.service.call(RememberMany([as_request(entry) for entry in some]))


def size_of(dsn: str) -> int:
    """Bytes of a database once it is cleaned, as autovacuum does soon after."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM")
        row = connection.execute(
            "SELECT pg_database_size(current_database())"
        ).fetchone()
    return int(row[0]) if row else 0


def ratio(rates: Rates, name: str, base: str) -> float:
    """The median over the rounds of one rate to another, as both meet the same minute."""
    return statistics.median(
        a / b for a, b in zip(rates[name], rates[base], strict=True)
    )


def publish(report: Report, rates: Rates, owners: int) -> None:
    """Show all rates, and hold the bars."""
    rows: list[list[object]] = []
    for name, values in rates.items():
        median = report.figure(f"{name}/per_s", statistics.median(values))
        rows.append([name, median, min(values), max(values)])
    report.table("Memories a second", ["what", "median", "least", "most"], rows)
    served = f"{CLIENTS} clients, {owners} owners"
    for bar, name, base in (
        ("single", "store, one by one", "bare, one by one"),
        ("batch", "store, in batches", "bare, in batches"),
        ("clients", f"store, {CLIENTS} clients", f"bare, {CLIENTS} clients"),
        ("daemons", f"{served}, {DAEMONS} daemons", f"{served}, one daemon"),
    ):
        report.bar(f"{name} / {base}", ratio(rates, name, base), ">=", BARS[bar])
    for name in ("one by one", "in batches"):
        report.figure(
            f"store / SQLite, {name}",
            ratio(rates, f"store, {name}", f"SQLite, {name}"),
        )


def main(words: Sequence[str]) -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--owners", type=int, default=OWNERS)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    chosen = parser.parse_args(words)
    report = Report("bench-postgres-writes")
    server = Server()
    server.start()
    try:
        with tempfile.TemporaryDirectory(prefix="pg-writes-") as room:
            folder = Path(room)
            rates = one_by_one(server, folder, chosen.rounds)
            rates |= many_clients(server, chosen.rounds)
            turns = DAEMON_TURNS * chosen.rounds
            rates |= many_daemons(report, server, folder, chosen.owners, turns)
        sizes(report, server, chosen.memories)
        sizes_of_a_life(report, server, chosen.memories)
    finally:
        server.remove()
    publish(report, rates, chosen.owners)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
