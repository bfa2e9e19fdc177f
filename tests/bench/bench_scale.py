"""What one memory costs a PostgreSQL server: the measured inputs of `scale.py`.

    python tests/bench/bench_scale.py [--memories 10000]

Processor time is that of processes, which hardly moves with other work on the machine. Bytes are
those of the tables with their indexes, after a VACUUM.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from bench.corpus import aged, ask_question
from bench.meaning_sets import wait_for_vectors
from bench.measure import as_request, say
from bench.report import Report
from msgspec import structs
from support.postgres import Server

from mnemosyned.assembly.build import open_memory
from mnemosyned.config.settings import Config, EmbeddingConfig
from mnemosyned.verbs.memories import Recall, RememberMany
from mnemosyned.verbs.upkeep import Sleep, Status

MEMORIES = 10_000
BATCH = 1_000
SINGLE = 1_000
TICKS = os.sysconf("SC_CLK_TCK")
TABLES = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
    "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
)
CHARACTERS = "SELECT avg(length(content)), avg(cardinality(words)) FROM memory"
LOG = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


class Machine:
    """A server of its own, and what it and this process have used."""

    def __init__(self) -> None:
        # Full-page images follow checkpoints: those of a server at work, not of a test.
        self.server = Server(max_wal_size="4GB")
        self.server.start()
        self.dsn = self.server.new_database()
        self._admin = psycopg.connect(self.dsn, autocommit=True)

    def asked(self, sql: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._admin.execute(sql.encode()).fetchone()
        assert row
        return row

    def bytes_kept(self, *, full: bool = False) -> int:
        self._admin.execute("VACUUM FULL" if full else "VACUUM")
        return int(self.asked(TABLES)[0])

    def log_written(self) -> int:
        return int(self.asked(LOG)[0])

    def seconds(self) -> tuple[float, float]:
        """Processor seconds of this process, and of the server with all that it started."""
        folder = Path(f"/proc/{self.server.process_id}")
        ticks = sum(_ticks(folder, children=True))
        for child in (folder / f"task/{folder.name}/children").read_text().split():
            ticks += sum(_ticks(Path("/proc") / child))
        return time.process_time(), ticks / TICKS

    def close(self) -> None:
        self._admin.close()
        self.server.remove()


def _ticks(process: Path, *, children: bool = False) -> list[int]:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return [int(ticks) for ticks in fields[11 : 15 if children else 13]]


class Spent:
    """Notes the processor time of so many calls, of the daemon and of the server."""

    def __init__(self, report: Report, machine: Machine) -> None:
        self._report = report
        self._machine = machine
        self._since = machine.seconds()

    def note(self, what: str, count: int) -> None:
        now = self._machine.seconds()
        for who, before, after in zip(
            ("daemon", "server"), self._since, now, strict=True
        ):
            milliseconds = (after - before) / count * 1e3
            self._report.figure(
                f"{what}: processor time of the {who}, ms", milliseconds
            )
        self._since = self._machine.seconds()


def measure(report: Report, machine: Machine, count: int) -> None:
    """Fill, write one by one, embed, ask and sleep."""
    corpus = aged(count + SINGLE)
    entries = iter(corpus)
    config = Config(database=machine.dsn, auto_sleep=False)
    # Without the encoder, so that its time is not that of the writes.
    alone = EmbeddingConfig(encoder="none")
    with open_memory(structs.replace(config, embedding=alone)) as memory:
        call = memory.service.call
        spent = Spent(report, machine)
        for size in [BATCH] * (count // BATCH):
            batch = islice(entries, size)
            call(RememberMany([as_request(entry) for entry in batch]))
        kept = machine.asked("SELECT count(*) FROM memory")[0]
        spent.note("remember in batches", kept)
        call_each = [as_request(entry) for entry in islice(entries, SINGLE)]
        for request in call_each:
            call(request)
        spent.note("remember", len(call_each))
        kept += len(call_each)
        log = machine.log_written()
        before = machine.bytes_kept()
        characters, words = machine.asked(CHARACTERS)
        report.figure("characters a memory", float(characters))
        report.figure("words a memory", float(words))
        report.figure("log written by remember, bytes a memory", log / kept)
        report.figure("bytes a memory before sleep", before / kept)
    with open_memory(config) as memory:
        call = memory.service.call
        say("embedding")
        spent = Spent(report, machine)
        wait_for_vectors(lambda: call(Status()))
        spent.note("embed", kept)
        embedded = machine.log_written() - log
        report.figure("log written by embed, bytes a memory", embedded / kept)
        say("asking")
        spent = Spent(report, machine)
        for number in range(SINGLE):
            call(Recall(ask_question(corpus, number * kept // SINGLE // 2).text))
        spent.note("recall", SINGLE)
        say("sleeping")
        log = machine.log_written()
        while call(Sleep()).promoted:
            pass
        spent.note("sleep", kept)
        asleep = machine.log_written() - log
        report.figure("log written by sleep, bytes a memory", asleep / kept)
        report.figure("bytes a memory after sleep", machine.bytes_kept() / kept)
        rewritten = machine.bytes_kept(full=True)
        report.figure("bytes a memory after sleep, written anew", rewritten / kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    count = parser.parse_args().memories
    report = Report("bench-scale")
    machine = Machine()
    try:
        measure(report, machine, count)
    finally:
        machine.close()
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
