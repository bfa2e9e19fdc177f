"""What the built-in sentence encoder costs: processor, memory, disk, and time of other work.

The vectors of the larger files are those of a few thousand memories, each with some noise, since to
embed 100,000 takes minutes and their number alone decides here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path

# Read when numpy is loaded: one core is measured, as the daemon uses one.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.bench_recall import added_ms, ask, in_turns
from bench.corpus import Entry, ask_question
from bench.daemon import Daemon, resident_mb, running
from bench.databases import UNTOUCHED, filled, year
from bench.measure import as_request, asking, latency, rate, say, timed
from bench.report import OUTPUT, Report

from mnemosyned import Client
from mnemosyned.memory.values import EmbedderState
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.scoring import embedding_text
from mnemosyned.search.vectors.packing import pack_four_bits

SIZES_USUAL = (10_000, 100_000)
DISTINCT, NOISE, PAGE = 2_000, 0.03, 5_000
BATCH, QUESTIONS = 32, 200
WRITES, ROUNDS = 300, 6
BACKLOG = 20_000
READY_WITHIN_S, IDLE_S = 120.0, 65.0
ON = {**UNTOUCHED, "MNEMOSYNE_EMBEDDING_ENCODER": "builtin"}
OFF = {**UNTOUCHED, "MNEMOSYNE_EMBEDDING_ENCODER": "none"}
P50_BAR_MS, P95_BAR_MS, RESIDENT_BAR_MB, IDLE_BAR_MB = 3.0, 8.0, 150.0, 90.0
READY_BAR_S, WRITE_BAR = 0.5, 0.95


def texts_of(entries: Sequence[Entry]) -> list[str]:
    return [embedding_text(entry.role, entry.content) for entry in entries]


def speed(report: Report, encoder: SentenceEncoder) -> list[str]:
    """Texts a second and milliseconds of a question, on one core; returns the texts."""
    texts = texts_of(list(islice(year(DISTINCT), DISTINCT)))
    encoder.embed(texts[:BATCH])
    began = time.process_time()
    for start in range(0, DISTINCT, BATCH):
        encoder.embed(texts[start : start + BATCH])
    report.figure("texts a second", DISTINCT / (time.process_time() - began))
    report.figure("characters of a text", statistics.fmean(map(len, texts)))
    corpus = year(DISTINCT)
    questions = [ask_question(corpus, number).text for number in range(0, QUESTIONS, 2)]
    times = latency([timed(encoder.embed_question, text)[0] for text in questions])
    report.figure("a question, p50 ms", times.p50_ms)
    report.figure("a question, p95 ms", times.p95_ms)
    return texts


def plant_vectors(database: Path, encoder: SentenceEncoder, texts: list[str]) -> int:
    """Give every memory of a file a vector; returns how many bytes the file grew."""
    before = database.stat().st_size
    made = encoder.encode(texts[:DISTINCT])
    chance = np.random.default_rng(1)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO embedding_model (name, digest) VALUES (?, ?)",
            (encoder.name, encoder.identity()),
        )
        (model,) = connection.execute(
            "SELECT max(number) FROM embedding_model"
        ).fetchone()
        seqs = [seq for (seq,) in connection.execute("SELECT seq FROM working_memory")]
        for start in range(0, len(seqs), PAGE):
            page = seqs[start : start + PAGE]
            noise = chance.normal(scale=NOISE, size=(len(page), made.shape[1]))
            vectors = pack_four_bits(made[np.array(page) % DISTINCT] + noise)
            rows = (
                (seq, model, vector) for seq, vector in zip(page, vectors, strict=True)
            )
            connection.executemany("INSERT INTO embedding VALUES (?, ?, ?)", rows)
        # Memories that were not learned from would keep the encoder in use for an hour.
        for table in "ending_progress", "learned":
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} VALUES (?)", (max(seqs),))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database.stat().st_size - before


def wait_ready(client: Client, count: int) -> None:
    """Wait until the daemon's index has this many vectors."""
    until = time.monotonic() + READY_WITHIN_S
    while True:
        status = client.status().embedder
        if status.state is EmbedderState.READY and status.embedded >= count:
            return
        if time.monotonic() > until:
            raise TimeoutError(f"the encoder is not ready: {status}")
        time.sleep(0.1)


@contextmanager
def both(database: Path) -> Iterator[dict[str, tuple[Daemon, Client]]]:
    """Two daemons on copies of a file: one with the encoder, one without."""
    with ExitStack() as stack:
        room = stack.enter_context(tempfile.TemporaryDirectory(dir=OUTPUT))
        opened = {}
        for name, env in (("with", ON), ("without", OFF)):
            served = Path(shutil.copy(database, Path(room, f"{name}.db")))
            daemon = stack.enter_context(running(served, env))
            opened[name] = daemon, stack.enter_context(daemon.client())
        yield opened


def recall_times(
    report: Report, size: int, encoder: SentenceEncoder, texts: list[str]
) -> None:
    """What vectors add to recall at one size, and what the daemon holds in memory."""
    corpus = year(size)
    asked = [ask_question(corpus, number) for number in range(0, 2 * QUESTIONS, 2)]
    with tempfile.TemporaryDirectory(dir=OUTPUT, prefix="encoder-") as room:
        database = Path(shutil.copy(filled(size), room))
        grown = plant_vectors(database, encoder, texts)
        report.figure(f"{size:,}/bytes on disk for a memory", grown / size)
        with both(database) as opened:
            (daemon, client), (_, without) = opened["with"], opened["without"]
            wait_ready(client, size)
            taken = in_turns(
                {
                    name: lambda questions, of=of: ask(asking(of), questions)  # type: ignore[misc]
                    for name, of in (("with", client), ("without", without))
                },
                asked,
            )
            resident = resident_mb(daemon.pid)[0]
            say("idle")
            time.sleep(IDLE_S)
            idle = resident_mb(daemon.pid)[0]
            bare = resident_mb(opened["without"][0].pid)[0]
            ready_s = {name: one.ready_s for name, (one, _) in opened.items()}
    pairs = zip(taken["with"].seconds, taken["without"].seconds, strict=True)
    added = latency([max(0.0, one - other) for one, other in pairs])
    report.figure(f"{size:,}/p50 ms without", taken["without"].latency.p50_ms)
    report.figure(f"{size:,}/p95 ms without", taken["without"].latency.p95_ms)
    report.figure(f"{size:,}/ready s without", ready_s["without"])
    report.figure(f"{size:,}/resident MB without", bare)
    median = added_ms(taken["with"], taken["without"])
    report.bar(f"{size:,}/added at p50, ms", median, "<=", P50_BAR_MS)
    report.bar(f"{size:,}/added at p95, ms", added.p95_ms, "<=", P95_BAR_MS)
    report.bar(f"{size:,}/ready s", ready_s["with"], "<=", READY_BAR_S)
    report.bar(f"{size:,}/resident MB in use", resident, "<=", RESIDENT_BAR_MB)
    report.bar(f"{size:,}/resident MB a minute after", idle, "<=", IDLE_BAR_MB)


def write_rates(report: Report) -> None:
    """Remember one by one, in turns, while the encoder works off a file without vectors."""
    corpus = iter(year(BACKLOG + 10 * WRITES * ROUNDS))
    rates: dict[str, list[float]] = {"with": [], "without": []}
    with both(filled(BACKLOG)) as opened:
        time.sleep(2.0)
        for _ in range(ROUNDS):
            for name, (_, client) in opened.items():
                (other,) = (one for key, (one, _) in opened.items() if key != name)
                os.kill(other.pid, signal.SIGSTOP)  # its encoder would take its turn
                requests = map(as_request, islice(corpus, WRITES))
                rates[name].append(
                    rate([timed(client.call, request)[0] for request in requests])
                )
                os.kill(other.pid, signal.SIGCONT)
        client = opened["with"][1]
        embedded = client.status().embedder.embedded
        report.figure("embedded while written to", embedded)
    without, with_ = (statistics.median(rates[name]) for name in ("without", "with"))
    report.figure("writes a second without", without)
    report.bar("writes a second, per those without", with_ / without, ">=", WRITE_BAR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES_USUAL)))
    options = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    report = Report("encoder")
    encoder = SentenceEncoder()
    say("encoding")
    texts = speed(report, encoder)
    for size in map(int, options.sizes.split(",")):
        say(f"asking {size:,}")
        recall_times(report, size, encoder, texts)
    say("writing")
    write_rates(report)
    encoder.close()
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
