"""What the daemon takes of memory and disk, and how long cold commands take.

    python tests/bench/bench_footprint.py [--memories 100000] [--data FOLDER]

Three forced cycles consolidate all memories: after each of the first two, `undo` brings them back.
Disk is all files of the database, counted while the daemon runs and nobody writes. With `--data`,
a folder with `locomo/locomo10.json` and `lifebench`, it is counted for their texts as well.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import bench_locomo, lifebench
from bench.corpus import Corpus
from bench.daemon import BIN, Daemon, embedded, resident_mb, running
from bench.locomo import Conversation
from bench.measure import bytes_on_disk, fill, say, timed
from bench.report import Report

from mnemosyned import Client, Memory

MEMORIES = 20_000
YEAR = timedelta(days=365)
CYCLES = 3
QUESTIONS = 50
IDLE_S = 60
LOG_CUT_S = 25.0
"""Two heartbeats of the daemon, after which a long write-ahead log is cut."""
RUNS = 10
PEAK_S = 0.05
ROWS_SHOWN = 16
BARS = {"memory_mb": 90, "cold_s": 0.15, "disk": 4.0}
COLD = {
    "bare Python": [sys.executable, "-c", "pass"],
    "mnem --help": [str(BIN / "mnem"), "--help"],
    "mnem recall": [str(BIN / "mnem"), "recall", "who sold the hammock"],
    "mnem list": [str(BIN / "mnem"), "list"],
}
SPACE = """
SELECT name, sum(pgsize), sum(payload), sum(unused)
FROM dbstat GROUP BY name ORDER BY 2 DESC
"""
TEXT = """
SELECT sum(length(CAST(content AS BLOB))), count(*)
FROM (SELECT content FROM working_memory UNION ALL SELECT content FROM archive)
"""


# --------------------------------------------------------------------- memory


@contextmanager
def highest(pid: int) -> Iterator[list[float]]:
    """The highest resident memory in megabytes while the block runs: the list's only value."""
    over = threading.Event()
    peak = [0.0]

    def watch() -> None:
        while not over.wait(PEAK_S):
            peak[0] = max(peak[0], resident_mb(pid)[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def sleep_often(client: Client) -> None:
    """Run the remaining forced cycles, each over all memories again."""
    for _ in range(CYCLES - 1):
        client.undo()
        client.sleep(force=True)


def ask(client: Client, corpus: Corpus) -> None:
    """Warm the caches of recall."""
    for questions in corpus.questions(QUESTIONS).values():
        for question in questions:
            client.recall(question.text)


def life(report: Report, daemon: Daemon, corpus: Corpus) -> None:
    """Fill, sleep and idle, and note memory and disk on the way."""
    memory = {"at the start": resident_mb(daemon.pid)[0]}
    with daemon.client() as client, highest(daemon.pid) as peak:
        say(f"remembering {corpus.count:,}")
        text = fill(client, corpus)
        memory["filled"] = resident_mb(daemon.pid)[0]
        time.sleep(LOG_CUT_S)
        before = bytes_on_disk(daemon.database) / text
        say("sleeping")
        client.sleep(force=True)
        time.sleep(LOG_CUT_S)
        after = bytes_on_disk(daemon.database) / text
        space(report, daemon.database, text)
        say("sleeping again")
        ask(client, corpus)
        sleep_often(client)
        ask(client, corpus)
        memory[f"after {CYCLES} cycles"] = resident_mb(daemon.pid)[0]
        memory["highest"] = peak[0]
    say(f"idling {IDLE_S} s")
    time.sleep(IDLE_S)
    idle = memory["a minute later"] = resident_mb(daemon.pid)[0]
    report.figure("bytes of text of a memory", text / corpus.count)
    for name, megabytes in memory.items():
        report.figure(f"resident, MB: {name}", megabytes)
    report.figure("bytes on disk for each byte of text: before sleep", before)
    report.bar("resident memory a minute after, MB", idle, "<", BARS["memory_mb"])
    report.bar(
        "bytes on disk for each byte of text after sleep", after, "<=", BARS["disk"]
    )


# ----------------------------------------------------------------------- disk


def space(report: Report, database: Path, text: int) -> None:
    """Show what takes the space, for each byte of text; nothing where SQLite lacks dbstat."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            stored = connection.execute(SPACE).fetchall()
        except sqlite3.OperationalError as error:
            say(f"no table of the space: {error}")
            return
    rows: list[list[object]] = [
        [name, *(size / text for size in sizes)] for name, *sizes in stored[:ROWS_SHOWN]
    ]
    small = [sizes for _, *sizes in stored[ROWS_SHOWN:]]
    others = [sum(column) / text for column in zip(*small, strict=True)]
    rows.append(["all others", *others])
    report.table(
        "On disk after sleep, bytes for each byte of text",
        ["table or index", "pages", "payload", "unused"],
        rows,
    )


def real_texts(report: Report, data: Path) -> None:
    """The same for the texts of others."""
    with tempfile.TemporaryDirectory(prefix="footprint-") as room:
        for name in ("locomo", "lifebench"):
            say(name)
            database = Path(room, f"{name}.db")
            with embedded(database) as memory:
                fill_real(memory, data / name)
                memory.sleep(force=True)
            with closing(sqlite3.connect(database)) as connection:
                text, count = connection.execute(TEXT).fetchone()
            report.figure(f"bytes of text of a memory: {name}", text / count)
            report.figure(
                f"bytes on disk for each byte of text after sleep: {name}",
                bytes_on_disk(database) / text,
            )


def fill_real(memory: Memory, folder: Path) -> None:
    """Remember a data set."""
    talks = folder / "locomo10.json"
    if talks.exists():
        conversations = msgspec.json.decode(talks.read_bytes(), type=list[Conversation])
        bench_locomo.remember_all(memory, conversations)
    else:
        lifebench.fill(memory, lifebench.life_records(folder))


# ----------------------------------------------------------------------- cold


def cold(report: Report, daemon: Daemon) -> None:
    """How long each command takes, from its start to its end, in a process of its own."""
    seconds: dict[str, list[float]] = {name: [] for name in COLD}
    environment = {"MNEMOSYNE_SOCKET": str(daemon.socket), "PATH": "/usr/bin:/bin"}
    for _ in range(RUNS + 1):
        for name, command in COLD.items():
            taken, _ = timed(
                subprocess.run,
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            seconds[name].append(taken)
    rows: list[list[object]] = []
    for name, (_, *runs) in seconds.items():  # the first run warms the disk's cache
        median = report.figure(f"{name}, s", statistics.median(runs))
        rows.append([name, min(runs), median])
        if name != "bare Python":
            report.bar(f"{name}, s", median, "<=", BARS["cold_s"])
    report.table("A cold command, seconds", ["command", "best", "median"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all of it on one daemon; exit 1 if a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--memories", type=int, default=MEMORIES)
    options.add_argument("--data", type=Path)
    chosen = options.parse_args(arguments)
    report = Report("bench-footprint")
    newest = datetime.now(UTC) - timedelta(minutes=5)
    corpus = Corpus(chosen.memories, newest=newest, span=YEAR)
    with (
        tempfile.TemporaryDirectory(prefix="footprint-") as room,
        running(Path(room, "memory.db")) as daemon,
    ):
        life(report, daemon, corpus)
        say("cold commands")
        cold(report, daemon)
    if chosen.data:
        real_texts(report, chosen.data)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
