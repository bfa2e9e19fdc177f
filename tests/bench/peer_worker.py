"""The peer behind a pipe: runs in the peer's own environment, one JSON request and answer a line.

It imports nothing of ours. Seconds are taken here, so that neither the pipe nor JSON counts
against the peer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

SLEEPS_MAX = 100


class Stopwatch:
    """Seconds and CPU seconds that a block took."""

    seconds = 0.0
    cpu = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    start, cpu = time.perf_counter(), time.process_time()
    yield watch
    watch.seconds, watch.cpu = time.perf_counter() - start, time.process_time() - cpu


class Worker:
    """What the bench may ask of the peer."""

    def __init__(self, database: Path) -> None:
        self._peer = import_module("mnemosyne.core.memory").Mnemosyne(db_path=database)

    def batch(self, entries: list[dict[str, str]]) -> int:
        """Fill by the peer's own batch call."""
        return len(self._peer.beam.remember_batch(entries))

    def remember(self, entries: list[dict[str, str]]) -> list[float]:
        """Remember one by one; the seconds of each."""
        seconds = []
        for entry in entries:
            with stopwatch() as watch:
                kept = self._peer.remember(entry["content"], source=entry["source"])
            if kept is None:
                raise ValueError("the peer refused an entry")
            seconds.append(watch.seconds)
        return seconds

    def recall(self, queries: list[str], limit: int) -> list[tuple[float, list[str]]]:
        """Seconds of each query, and the texts it shows."""
        answers = []
        for query in queries:
            with stopwatch() as watch:
                results = self._peer.recall(query, top_k=limit)
            answers.append((watch.seconds, [result["content"] for result in results]))
        return answers

    def count(self) -> int:
        (count,) = self._sql("SELECT count(*) FROM working_memory")
        return int(count)

    def age(self, hours_oldest: float, hours_newest: float) -> None:
        """Spread the working memory evenly over this past, in the order it was remembered.

        The peer stamps what it is given with the present, and deletes what is past its TTL at the
        next `remember`: so this comes right before `sleep`.
        """
        oldest = datetime.now() - timedelta(hours=hours_oldest)  # noqa: DTZ005 (as it stamps)
        step = timedelta(hours=hours_oldest - hours_newest) / max(self.count(), 1)
        connection = self._peer.beam.conn
        rows = connection.execute(
            "SELECT id FROM working_memory ORDER BY timestamp, rowid"
        )
        moments = [
            ((oldest + step * place).isoformat(), row[0])
            for place, row in enumerate(rows.fetchall())
        ]
        connection.executemany(
            "UPDATE working_memory SET timestamp = ? WHERE id = ?", moments
        )
        connection.commit()

    def sleep(self) -> tuple[float, float, int]:
        """Sleep until nothing is left, since a call takes 5,000; seconds, CPU, memories."""
        memories = 0
        with stopwatch() as watch:
            for _ in range(SLEEPS_MAX):
                result = self._peer.sleep()
                if result["status"] == "no_op":
                    break
                memories += result["items_consolidated"]
        return watch.seconds, watch.cpu, memories

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file, so that its size is the size."""
        self._sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def _sql(self, statement: str) -> tuple[Any, ...]:
        return tuple(self._peer.beam.conn.execute(statement).fetchone())


def serve(database: Path, requests: TextIO, answers: TextIO) -> None:
    worker = Worker(database)
    for line in requests:
        request = json.loads(line)
        result = getattr(worker, request["do"])(**request["with"])
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    # Whatever the peer prints must not mix with the answers.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)
        serve(Path(sys.argv[1]), sys.stdin, pipe)
