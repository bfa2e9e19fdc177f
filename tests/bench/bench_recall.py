"""How fast the right memory comes back as memories grow, next to the bare FTS5 query.

`SIZES=10000,100000,1000000` asks at a million, too: filling that file takes minutes, once. `LIFE=…`
asks one person's year of real records, too: texts of 480 characters, questions of fifteen words. The
bare query has the same terms, on the same file, in turns with the product; it only finds row numbers,
where the product ranks, reads and answers. The daemon has a copy, since it owns its file. Every
question is asked several times, some time apart, and the quickest answer counts: what another
process took away is no property of a query.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Self, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import ASK_ALL, COMMON_WORDS, Question
from bench.daemon import embedded, resident_mb, running
from bench.databases import UNTOUCHED, filled, year
from bench.lifebench import LifeQuestion, fill, life_questions, life_records
from bench.measure import RESULTS, Latency, Recall, asking, latency, right, say, timed
from bench.plot import Line, lines
from bench.report import OUTPUT, Report

from mnemosyned.assembly.embedded import Memory
from mnemosyned.storage.sqlite.fulltext import any_of
from mnemosyned.text.terms import parse_terms

SIZES_USUAL = (10_000, 100_000)
MILLION = 1_000_000
QUESTIONS_USUAL, PASSES, WARM = 200, 3, 5
IDLE_S = 2.0
CACHE_KB = 8_000
"""As much as a reading connection of the product has."""
WAYS = ("embedded", "socket", "bare")

SHORT_MS = 1.0
"""Where the bare query takes less, the fixed costs of a call decide, and not the search."""
RATIO_BAR, COMMON_BAR, HIT_LOSS_BAR = 1.5, 0.15, 0.01
GROWTH_BAR, SOCKET_BAR_MS, RESIDENT_BAR_MB = 2.0, 2.0, 120.0


@dataclass(slots=True)
class Asked:
    """The questions of one class, asked in one way."""

    seconds: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)

    def __iadd__(self, other: Asked) -> Self:
        self.seconds += other.seconds
        self.right += other.right
        return self

    @property
    def latency(self) -> Latency:
        return latency(self.seconds)

    @property
    def hit(self) -> float:
        return statistics.mean(self.right)


Ask: TypeAlias = Callable[[Sequence[Question]], Asked]
"""Asks some questions in one way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size: every way and class, and what the daemon holds in memory afterwards."""

    ways: Mapping[str, Mapping[str, Asked]]
    rss_mb: float
    pss_mb: float


class Bare:
    """The plain FTS5 query on the product's own index, by a connection of its own."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(
            f"{database.absolute().as_uri()}?mode=ro", uri=True
        )
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")

    def rows(self, match: str) -> list[int]:
        """The best rows by bm25."""
        found = self._connection.execute(
            "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY rank LIMIT ?",
            (match, RESULTS),
        )
        return [row for (row,) in found]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """What stands in these rows."""
        select = "SELECT content FROM memory_fts WHERE rowid = ?"
        return [self._connection.execute(select, (row,)).fetchone()[0] for row in rows]

    def close(self) -> None:
        self._connection.close()


# ------------------------------------------------------------------- measuring


def measure(database: Path, questions: Mapping[str, Sequence[Question]]) -> Measured:
    ways: dict[str, dict[str, Asked]] = {way: {} for way in WAYS}
    with ExitStack() as stack:
        room = stack.enter_context(
            tempfile.TemporaryDirectory(dir=OUTPUT, prefix="recall-")
        )
        served = shutil.copy(database, room)  # as the daemon owns its file
        memory = stack.enter_context(embedded(database))
        bare = stack.enter_context(closing(Bare(database)))
        daemon = stack.enter_context(running(Path(served), UNTOUCHED))
        client = stack.enter_context(daemon.client())
        asks = {
            "embedded": partial(ask, asking(memory)),
            "socket": partial(ask, asking(client)),
            "bare": partial(ask_bare, bare),
        }
        for kind, asked in questions.items():
            say(f"  {kind}")
            for way, taken in in_turns(asks, asked).items():
                ways[way][kind] = taken
        time.sleep(IDLE_S)
        rss_mb, pss_mb = resident_mb(daemon.pid)
    return Measured(ways=ways, rss_mb=rss_mb, pss_mb=pss_mb)


def in_turns(asks: Mapping[str, Ask], asked: Sequence[Question]) -> dict[str, Asked]:
    """Every way, each question in turn, as people ask; the first ones warm up."""
    passes = {way: [Asked() for _ in range(PASSES)] for way in asks}
    for ask_some in asks.values():
        ask_some(asked[:WARM])
    for number, question in product(range(PASSES), asked):
        for way, ask_some in asks.items():
            passes[way][number] += ask_some([question])
    return {way: quickest(taken) for way, taken in passes.items()}


def quickest(passes: Sequence[Asked]) -> Asked:
    """For each question, the least time it took in any of the passes."""
    seconds = zip(*(asked.seconds for asked in passes), strict=True)
    return Asked([min(times) for times in seconds], passes[0].right)


def ask(recall: Recall, questions: Sequence[Question]) -> Asked:
    answers = [timed(recall, question.text) for question in questions]
    found = [
        right(question, texts, first=RESULTS)
        for question, (_, texts) in zip(questions, answers, strict=True)
    ]
    return Asked([seconds for seconds, _ in answers], found)


def ask_bare(bare: Bare, questions: Sequence[Question]) -> Asked:
    """As `ask`; the time taken is the query's alone, with the terms the product asks for."""
    asked = Asked()
    for question in questions:
        match = " OR ".join(f'"{word}"' for word in parse_terms(question.text).words)
        seconds, rows = timed(bare.rows, match)
        asked.seconds.append(seconds)
        asked.right.append(right(question, bare.texts(rows), first=RESULTS))
    return asked


def added_ms(one: Asked, other: Asked) -> float:
    """What one way adds to a question at the median; over all, a machine's moods are larger."""
    pairs = zip(one.seconds, other.seconds, strict=True)
    return 1_000 * statistics.median(a - b for a, b in pairs)


def real_records(report: Report, folder: Path) -> None:
    """Ask one person's year of real records, next to the bare query on the same file."""
    records = life_records(folder)
    asked = life_questions(folder, records)
    with tempfile.TemporaryDirectory(dir=OUTPUT, prefix="life-") as room:
        database = Path(room) / "memory.db"
        with Memory(database, wm_max=10_000_000) as memory:
            fill(memory, records)
            with closing(Bare(database)) as bare:
                taken = _in_turns(memory, bare, asked)
    ours, plain = (statistics.median(each) for each in zip(*taken, strict=True))
    report.figure("real records/p50 ms", 1_000 * ours)
    report.figure("real records/p50 ms bare", 1_000 * plain)
    report.bar("p50 on real records, per bare", ours / plain, "<=", RATIO_BAR)


def _in_turns(
    memory: Memory, bare: Bare, asked: Sequence[LifeQuestion]
) -> list[tuple[float, float]]:
    """Return the quickest answer of the product and of the bare query to each question."""
    quickest_each = [(float("inf"), float("inf"))] * len(asked)
    for number in range(PASSES):
        say(f"  real records, pass {number + 1}")
        for index, question in enumerate(asked):
            recall = partial(
                memory.recall,
                question.text,
                limit=RESULTS,
                asked_at=question.asked_at,
            )
            match = any_of(parse_terms(question.text).words)
            ours, plain = timed(recall)[0], timed(bare.rows, match)[0]
            best = quickest_each[index]
            quickest_each[index] = (min(best[0], ours), min(best[1], plain))
    return quickest_each


# ------------------------------------------------------------------- the bars


def publish(report: Report, sizes: Mapping[int, Measured]) -> None:
    rows: list[list[object]] = []
    for size, measured in sizes.items():
        for kind in ASK_ALL:
            for way in WAYS:
                asked = measured.ways[way][kind]
                taken, name = asked.latency, f"{size}/{kind}/{way}"
                for what, value in asdict(taken).items():
                    report.figure(f"{name}/{what}", value)
                report.figure(f"{name}/hit@10", asked.hit)
                rows.append([size, kind, way, *astuple(taken), asked.hit])
        report.figure(f"{size}/daemon/rss_mb", measured.rss_mb)
        report.figure(f"{size}/daemon/pss_mb", measured.pss_mb)
    headers = ["memories", "class", "way", "p50 ms", "p95 ms", "p99 ms", "hit@10"]
    report.table("Recall", headers, rows)
    for size, measured in sizes.items():
        hold(report, size, measured)
    if {MILLION, MILLION // 10} <= sizes.keys():
        hold_growth(report, sizes[MILLION // 10], sizes[MILLION])
    largest = max(sizes)
    recalls = PASSES * sum(
        len(one.seconds) for one in sizes[largest].ways["socket"].values()
    )
    name = f"resident megabytes of the daemon at {largest:,}, idle, after {recalls:,} recalls"
    report.bar(name, sizes[largest].rss_mb, "<=", RESIDENT_BAR_MB)


def hold(report: Report, size: int, measured: Measured) -> None:
    """The bars within one size."""
    ours, socket, bare = (measured.ways[way] for way in WAYS)
    for kind in ASK_ALL:
        ratio = report.figure(
            f"{size}/{kind}/p95 embedded per bare",
            ours[kind].latency.p95_ms / bare[kind].latency.p95_ms,
        )
        if size >= MILLION:
            if kind == COMMON_WORDS:
                report.bar(
                    f"p95 at {size:,}, {kind}, per bare", ratio, "<=", COMMON_BAR
                )
        elif bare[kind].latency.p95_ms >= SHORT_MS:
            report.bar(f"p95 at {size:,}, {kind}, per bare", ratio, "<=", RATIO_BAR)
    together = pooled(ours).latency.p95_ms / pooled(bare).latency.p95_ms
    if size < MILLION:
        report.bar(f"p95 at {size:,}, all classes, per bare", together, "<=", RATIO_BAR)
    loss = bare[COMMON_WORDS].hit - ours[COMMON_WORDS].hit
    report.bar(
        f"hit@10 lost at {size:,}, {COMMON_WORDS}, to bare", loss, "<=", HIT_LOSS_BAR
    )
    added = max(added_ms(socket[kind], ours[kind]) for kind in ASK_ALL)
    report.bar(
        f"ms the socket adds to p50 at {size:,}, at most", added, "<=", SOCKET_BAR_MS
    )


def pooled(kinds: Mapping[str, Asked]) -> Asked:
    """The questions of all classes as one."""
    together = Asked()
    for asked in kinds.values():
        together += asked
    return together


def hold_growth(report: Report, before: Measured, after: Measured) -> None:
    """What ten times the memories cost; what is short at both sizes did not grow."""
    for kind in ASK_ALL:
        small, large = (
            max(SHORT_MS, measured.ways["embedded"][kind].latency.p95_ms)
            for measured in (before, after)
        )
        name = f"p95 at {MILLION:,} per {MILLION // 10:,}, {kind}"
        report.bar(name, large / small, "<=", GROWTH_BAR)


def picture(sizes: Mapping[int, Measured]) -> str:
    drawn = [
        Line(
            name=kind,
            points=[
                (size, m.ways[way][kind].latency.p95_ms) for size, m in sizes.items()
            ],
            dashed=way == "bare",
        )
        for kind in ASK_ALL
        for way in ("embedded", "bare")
    ]
    title = "Recall, embedded: 95 of 100 questions take no longer"
    return lines(
        title,
        x_label="memories",
        y_label="milliseconds",
        drawn=drawn,
        note="the bare FTS5 query",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    usual = ",".join(map(str, SIZES_USUAL))
    parser.add_argument(
        "--sizes", default=usual, help="how many memories, parted by commas"
    )
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS_USUAL, help="how many of each class"
    )
    parser.add_argument(
        "--life", type=Path, help="LifeBench's folder: real records, too"
    )
    options = parser.parse_args()
    sizes = sorted({int(size) for size in options.sizes.split(",")})
    report = Report("bench-recall")
    if options.life:
        real_records(report, options.life)
    measured = {}
    for size in sizes:
        database = filled(size)
        say(f"asking at {size:,}")
        measured[size] = measure(
            database, year(size).questions(options.questions, ASK_ALL)
        )
    publish(report, measured)
    report.picture("recall", picture(measured))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
