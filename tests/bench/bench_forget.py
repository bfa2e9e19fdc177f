"""Forgetting in peace and under load, held to what its receipts say: `make bench-forget`."""

from __future__ import annotations

import argparse
import random
import string
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Corpus, aged, fresh
from bench.daemon import Daemon, embedded, running
from bench.measure import as_request, latency, say, timed
from bench.report import Report
from e2e.consistency import damage, depths
from msgspec.structs import replace

from mnemosyned import Client, Remember
from mnemosyned.verbs.memories import BATCH_MAX

MEMORIES, FORGETS, PEACE = 100_000, 2_000, 5_000
WRITERS, READERS = 4, 2
WRITER_PAUSE_S, READER_PAUSE_S = 0.02, 0.01
"""Agents at work, not a flood."""
IDLE_S = 10.0
DEPTH_MAX = 50
PURGED_WITHIN_S = 300.0
MARK_LETTERS = 14
SHARED_LETTERS = 5
"""An index keeps the beginning of a word only once for all that share it, so the rest is sought."""
CHECKED_EVERY = 100
"""Every so many receipts that say `complete`, the files are searched at once."""


@dataclass(slots=True)
class Run:
    """What was seen while one client forgot."""

    forgot_s: list[float] = field(default_factory=list)
    recalled_s: list[float] = field(default_factory=list)
    remembered_s: list[float] = field(default_factory=list)
    deepest: int = 0
    complete: int = 0
    untrue: list[str] = field(default_factory=list)


def main() -> int:
    """Run both parts; exit 1 if a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--memories", type=int, default=MEMORIES)
    options.add_argument("--forgets", type=int, default=FORGETS)
    options.add_argument("--peace", type=int, default=PEACE)
    chosen = options.parse_args()
    report = Report("bench-forget")
    with tempfile.TemporaryDirectory(prefix="bench-") as room:
        in_peace(Path(room), chosen.peace, report)
    with tempfile.TemporaryDirectory(prefix="bench-") as room:
        under_load(Path(room), chosen.memories, chosen.forgets, report)
    return report.finish()


def marks(count: int) -> list[str]:
    """Words that occur nowhere else, with hardly a beginning in common."""
    draw = random.Random(11)
    return [
        "".join(draw.choices(string.ascii_lowercase, k=MARK_LETTERS))
        for _ in range(count)
    ]


def in_peace(room: Path, count: int, report: Report, *, left: int = 0) -> None:
    """One client forgets one memory after another, and nobody else asks for anything.

    Further memories are left, for an index of that size.
    """
    database = room / "memory.db"
    said = marks(count + left)
    words = said[:count]
    with embedded(database) as memory:
        for start in range(0, count + left, BATCH_MAX):
            memory.remember_many(
                [
                    Remember(
                        f"memory {number} of the ledger says {said[number]}",
                        id=f"m{number}",
                    )
                    for number in range(start, min(count + left, start + BATCH_MAX))
                ]
            )
    run = Run()
    with running(database) as daemon, daemon.client() as client:
        for number, word in enumerate(words):
            forget(client, daemon, number, word, run)
            if number % 500 == 0:
                say(f"in peace: {number:,} of {count:,} forgotten")
        recall_s, _ = timed(client.recall, "ledger")
    conclude("in peace", database, words, run, report)
    report.bar("in peace: receipts that say complete", run.complete / count, ">=", 1)
    report.figure("in_peace.forget_p50_ms", latency(run.forgot_s).p50_ms)
    report.figure("in_peace.recall_after_ms", recall_s * 1_000)


def under_load(
    room: Path, memories: int, forgets: int, report: Report, *, idle_s: float = IDLE_S
) -> None:
    """One client forgets while four write and two ask, over memories of which half have slept."""
    database = room / "memory.db"
    words = marks(forgets)
    corpus = aged(memories)
    step = memories // forgets
    say(f"under load: filling {memories:,}, half of them slept")
    with embedded(database) as memory:
        half = memories // 2
        for start in range(0, memories, BATCH_MAX):
            if start == half - half % BATCH_MAX:
                memory.sleep(force=True)
            memory.remember_many(
                [
                    marked(corpus, number, step, words)
                    for number in range(start, min(memories, start + BATCH_MAX))
                ]
            )
    idle, beside, run = Run(), Run(), Run()
    with running(database) as daemon, daemon.client() as client:
        talk(daemon, corpus, idle, writers=0, until=lambda: time.sleep(idle_s))
        talk(daemon, corpus, beside, writers=WRITERS, until=lambda: time.sleep(idle_s))

        def forgetting() -> None:
            for number, word in enumerate(words):
                forget(client, daemon, number, word, run)
                if number % 100 == 0:
                    say(f"under load: {number:,} of {forgets:,} forgotten")

        began = time.monotonic()
        talk(daemon, corpus, run, writers=WRITERS, until=forgetting)
        took_s = time.monotonic() - began
        wait_until_purged(client)
    conclude("under load", database, words, run, report)
    p95 = {
        name: latency(seen.recalled_s).p95_ms
        for name, seen in (("idle", idle), ("w", beside))
    }
    during = latency(run.recalled_s).p95_ms
    report.bar("under load: p95 of recall to idle", during / p95["idle"], "<=", 2)
    report.figure(
        "under_load.recall_p95_to_the_same_without_forgets", during / p95["w"]
    )
    report.figure("under_load.recall_p95_ms", during)
    report.figure("under_load.remember_p95_ms", latency(run.remembered_s).p95_ms)
    report.figure(
        "under_load.remember_p95_ms_without_forgets",
        latency(beside.remembered_s).p95_ms,
    )
    report.figure("under_load.forgets_per_s", forgets / took_s)
    report.figure("under_load.complete_at_once", run.complete / forgets)


def marked(corpus: Corpus, number: int, step: int, words: Sequence[str]) -> Remember:
    """An entry of the corpus; one in `step` says a word that is to be forgotten."""
    request = as_request(corpus.entry(number))
    place, further = divmod(number, step)
    if further or place >= len(words):
        return request
    return replace(request, id=f"m{place}", content=f"{request.content} {words[place]}")


def forget(client: Client, daemon: Daemon, number: int, word: str, run: Run) -> None:
    """Forget one memory and hold the receipt to what can be seen."""
    seconds, receipt = timed(client.forget, f"m{number}")
    run.forgot_s.append(seconds)
    run.deepest = max(run.deepest, *depths(daemon.database).values())
    run.complete += receipt.complete
    if receipt.memories != 1:
        run.untrue.append(f"m{number}: {receipt.memories} memories")
    if (
        receipt.complete
        and number % CHECKED_EVERY == 0
        and traces(daemon.database, [word])
    ):
        run.untrue.append(f"m{number}: complete, but the word is in the file")
    if not receipt.complete and receipt.purge_in_s is None:
        run.untrue.append(f"m{number}: not complete, and no purge is planned")
    if number % CHECKED_EVERY == 0 and client.recall(word).hits:
        run.untrue.append(f"m{number}: recalled after it was forgotten")


def talk(
    daemon: Daemon,
    corpus: Corpus,
    run: Run,
    *,
    writers: int,
    until: Callable[[], object],
) -> None:
    """Have agents write and ask until a call returns; their errors are raised."""
    over = threading.Event()
    failures: list[Exception] = []
    new = fresh(1_000_000)

    def agent(
        work: Callable[[Client, int], float], seen: list[float], pause_s: float
    ) -> None:
        try:
            with daemon.client() as client:
                number = 0
                while not over.is_set():
                    seen.append(work(client, number))
                    number += 1
                    time.sleep(pause_s)
        except Exception as error:  # noqa: BLE001 handed on below
            failures.append(error)

    questions = cycle(
        [ask.text for kind in corpus.questions(50).values() for ask in kind]
    )

    def remember(client: Client, number: int) -> float:
        return timed(client.call, as_request(new.entry(number)))[0]

    def recall(client: Client, _: int) -> float:
        return timed(client.recall, next(questions))[0]

    with ExitStack() as stack:
        for work, seen, pause_s, count in (
            (remember, run.remembered_s, WRITER_PAUSE_S, writers),
            (recall, run.recalled_s, READER_PAUSE_S, READERS),
        ):
            for _ in range(count):
                thread = threading.Thread(target=agent, args=(work, seen, pause_s))
                thread.start()
                stack.callback(thread.join)
        stack.callback(over.set)
        until()
    if failures:
        raise failures[0]


def wait_until_purged(client: Client) -> None:
    ends = time.monotonic() + PURGED_WITHIN_S
    while client.status().purge_due:
        if time.monotonic() > ends:
            raise RuntimeError(
                f"words are still to be purged after {PURGED_WITHIN_S:g} s"
            )
        time.sleep(0.2)


def conclude(
    name: str, database: Path, words: Sequence[str], run: Run, report: Report
) -> None:
    """The bars of both parts."""
    for line in run.untrue[:5]:
        say(f"untrue: {line}")
    report.bar(f"{name}: levels of an index at most", run.deepest, "<=", DEPTH_MAX)
    report.bar(f"{name}: answers that are not true", len(run.untrue), "<=", 0)
    left = traces(database, words)
    report.bar(f"{name}: forgotten words in the files afterwards", len(left), "<=", 0)
    report.bar(f"{name}: faults that SQLite finds", len(damage(database)), "<=", 0)


def traces(database: Path, words: Sequence[str]) -> list[str]:
    """The words that can be read in any file of the database."""
    files = [file.read_bytes() for file in database.parent.glob(f"{database.name}*")]
    parts = [(word, word[SHARED_LETTERS:].encode()) for word in words]
    return [word for word, part in parts if any(part in data for data in files)]


if __name__ == "__main__":
    sys.exit(main())
