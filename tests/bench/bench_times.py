"""Ask questions with a time over three sets of records, before and after a sleep.

    python tests/bench/bench_times.py --data path/to/lifebench

The written year and the mixed month are in `tests/support/datasets`; LifeBench's person is outside
data, and its records are asked only where `--data` names its folder. A question counts when the
first three places show what answers it (see `timed_questions.txt`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.lifebench import fill, life_records
from bench.report import Report
from support.datasets.mixed_year import Record
from support.datasets.timed_questions import (
    TimedQuestion,
    timed_questions,
    timed_sets,
)

from mnemosyned.assembly.embedded import Memory
from mnemosyned.memory.values import Hit, Tier

HIT_BAR = 0.9


def shown(memory: Memory, hit: Hit) -> list[str]:
    """Return the ids that a place puts before the reader; those of a summary alone are below it."""
    if hit.tier is not Tier.EPISODIC:
        return [hit.id, *(line.id for line in hit.lines)]
    if hit.lines:
        return [line.id for line in hit.lines]
    return [original.id for original in memory.expand(hit.id).originals]


def unanswered(
    memory: Memory, questions: Sequence[TimedQuestion]
) -> list[TimedQuestion]:
    """Return the questions whose first places do not show the evidence."""
    missed: list[TimedQuestion] = []
    for question in questions:
        hits = memory.recall(question.text, asked_at=question.asked_at).hits
        if not question.is_answered([shown(memory, hit) for hit in hits]):
            missed.append(question)
    return missed


def measure(report: Report, name: str, records: Sequence[Record]) -> None:
    """Ask the questions of one set before and after a sleep."""
    questions = timed_questions(name, records)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(f"{folder}/memory.db", wm_max=10_000_000) as memory,
    ):
        fill(memory, records)
        for stage in ("before", "after"):
            if stage == "after":
                memory.sleep(force=True)
            missed = unanswered(memory, questions)
            hit = 1 - len(missed) / len(questions)
            report.figure(f"{name} {stage}", hit)
            report.bar(f"{name}: hit@3 {stage} sleep", hit, ">=", HIT_BAR)
            report.table(
                f"{name}, {stage} sleep: {len(missed)} of {len(questions)} missed",
                ["question"],
                [[question.text] for question in missed],
            )


def sets(data: str) -> Mapping[str, Sequence[Record]]:
    """Return the sets to ask, LifeBench's only where it is named."""
    known: dict[str, Sequence[Record]] = dict(timed_sets())
    if data:
        known["lifebench"] = life_records(Path(data))
    return known


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="the folder of LifeBench")
    report = Report("times")
    for name, records in sets(parser.parse_args().data).items():
        measure(report, name, records)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
