"""The same memory on SQLite and on PostgreSQL: whether both answer alike, and how soon.

    python tests/bench/bench_postgres.py --data path/to/locomo10.json

Asked are the questions of LoCoMo (where `--data` names its file), those of the mixed year and of
the timed sets, and words of many languages, before and after a sleep, until there are as many as
`--questions` says. An answer counts as the same if its hits are, in their order, to the last digit
of their scores. Then questions of the synthetic corpus are asked in turns over so many memories as
`--memories` says: both engines on this machine, the server with its usual settings.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from bench.corpus import ASK_ALL, PLANTED_EVERY, Question
from bench.databases import NEWEST, year
from bench.locomo import Conversation
from bench.measure import as_request, latency, say, timed
from bench.report import Report
from postgres.test_same_hits import QUESTIONS, mixed_languages, told_of, variants
from support.datasets.mixed_year import NOW, mixed_year
from support.datasets.timed_questions import timed_questions, timed_sets
from support.engines import POSTGRES, SQLITE
from support.fakes import FakeClock
from support.twins import Twins, twins

from mnemosyned.verbs.memories import Recall, Remember

QUESTIONS_USUAL, MEMORIES_USUAL = 2_000, 10_000
PER_CLASS, ASKED_AGAIN = 100, 2
EQUAL_BAR = 1.0
SLOWER_BAR = 2.0
"""How much slower the 95th of a hundred answers may come from PostgreSQL."""

Set = tuple[str, list[Remember], list[Recall]]


def sets(locomo: Path | None) -> Iterator[Set]:
    """What is told, and what is asked of it."""
    if locomo:
        talks = msgspec.json.decode(locomo.read_bytes(), type=list[Conversation])
        asked = [
            Recall(query=question.text, source=source)
            for talk in talks
            for question in talk.questions()
            for source in (None, [question.sample])
        ]
        yield "LoCoMo", [turn for talk in talks for turn in talk.turns()], asked
    lines = QUESTIONS.strip().splitlines()
    languages = [request for text in lines for request in variants(text)]
    yield "languages", mixed_languages(), languages
    for name, records in timed_sets().items():
        questions = timed_questions(name, records)
        requests = [Recall(query=q.text, asked_at=q.asked_at) for q in questions]
        yield f"times, {name}", told_of(records, sessions=4), requests
    year = mixed_year(per_day=4)
    requests = [Recall(query=question.text) for question in year.questions]
    yield "mixed year", told_of(year.records), requests


def compare(report: Report, chosen: Sequence[Set], questions: int) -> None:
    """Ask both engines before and after a sleep; half of the questions each time."""
    rows: list[list[object]] = []
    asked_of_all = differing = 0
    each = max(1, questions // (2 * len(chosen)))
    short = sum(max(0, each - len(asked)) for _, _, asked in chosen)
    for name, told, asked in chosen:
        some = asked[: each + short if len(asked) > each else each]
        short -= max(0, len(some) - each)
        with (
            tempfile.TemporaryDirectory() as room,
            twins(Path(room), _clock(told)) as pair,
        ):
            say(f"{name}: {len(told)} memories, {len(some)} questions, twice")
            pair.remember(*told)
            before = pair.differing(some)
            pair.sleep()
            after = pair.differing(some)
        for text in [*before, *after]:
            say(f"differs: {text}")
        asked_of_all += 2 * len(some)
        differing += len(before) + len(after)
        rows.append([name, len(told), len(some), len(before), len(after)])
    headers = ["set", "memories", "questions", "differ before", "differ after a sleep"]
    report.table("Answers that differ between SQLite and PostgreSQL", headers, rows)
    equal = 1 - differing / asked_of_all
    report.figure("questions", asked_of_all)
    report.bar("share of equal answers", report.figure("equal", equal), ">=", EQUAL_BAR)


def _clock(told: Sequence[Remember]) -> FakeClock:
    times = [
        memory.created_at for memory in told if isinstance(memory.created_at, datetime)
    ]
    return FakeClock(max([NOW, *times]))


def race(report: Report, memories: int) -> None:
    """Ask both engines in turns over many memories; the quicker of two answers counts."""
    corpus = year(memories)
    with (
        tempfile.TemporaryDirectory() as room,
        twins(Path(room), FakeClock(NEWEST)) as pair,
    ):
        say(f"filling both with {memories} memories")
        pair.remember(*map(as_request, corpus))
        rows: list[list[object]] = []
        for name, ask in ASK_ALL.items():
            step = memories // PLANTED_EVERY // PER_CLASS * PLANTED_EVERY
            asked = [ask(corpus, step * at) for at in range(PER_CLASS)]
            rows.append([name, *_raced(report, pair, name, asked)])
        headers = ["question", "SQLite p50", "p95", "PostgreSQL p50", "p95"]
        report.table(f"Recall over {memories} memories, ms", headers, rows)


def _raced(
    report: Report, pair: Twins, name: str, asked: Sequence[Question]
) -> list[float]:
    took: dict[str, list[float]] = {SQLITE: [], POSTGRES: []}
    for question in asked:
        request = Recall(query=question.text)
        for engine, service in pair.services.items():
            times = [timed(service.recall, request)[0] for _ in range(ASKED_AGAIN)]
            took[engine].append(min(times))
    quick, slow = latency(took[SQLITE]), latency(took[POSTGRES])
    for engine, taken in ((SQLITE, quick), (POSTGRES, slow)):
        report.figure(f"{name}, {engine}, p50 ms", taken.p50_ms)
        report.figure(f"{name}, {engine}, p95 ms", taken.p95_ms)
    ratio = slow.p95_ms / quick.p95_ms
    report.bar(f"{name}: p95 against SQLite", ratio, "<=", SLOWER_BAR)
    return [quick.p50_ms, quick.p95_ms, slow.p50_ms, slow.p95_ms]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="the file of LoCoMo")
    parser.add_argument("--questions", type=int, default=QUESTIONS_USUAL)
    parser.add_argument("--memories", type=int, default=MEMORIES_USUAL)
    options = parser.parse_args()
    report = Report("postgres")
    if options.questions:
        locomo = Path(options.data) if options.data else None
        compare(report, list(sets(locomo)), options.questions)
    if options.memories:
        race(report, options.memories)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
