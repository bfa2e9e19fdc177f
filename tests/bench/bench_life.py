"""Ask the questions of one person's year of real records, before and after a sleep.

    python tests/bench/bench_life.py --data path/to/lifebench [--no-encoder]

The records are messages, notes, calendar, calls, notifications and photos. A question counts where
ten results show some of its evidence. More lines a result hide how much there is to read; so
evidence within the first tokens of what the results show counts as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_meaning import encoder_settings
from bench.lifebench import LifeQuestion, fill, life_questions, life_records
from bench.meaning_sets import wait_for_vectors
from bench.report import Report

from mnemosyned.assembly.embedded import Memory
from mnemosyned.memory.values import Hit, Tier

RESULTS = 10
TOKENS = (500, 1_000, 2_000)
HEADING_TOKENS = 12
"""Tokens of the id, the time and the source of each line shown."""
CHARS_PER_TOKEN = 4
BARS = {"before": 0.92, "after": 0.93}


def shown(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """Return the id and the text of each line that the results show, in their order."""
    lines: list[tuple[str, str]] = []
    for hit in hits:
        if hit.tier is not Tier.EPISODIC:
            lines.append((hit.id, hit.content))
        lines += [(line.id, line.content) for line in hit.lines]
    return lines


def scores(memory: Memory, questions: Sequence[LifeQuestion]) -> dict[str, float]:
    """Return the shares of questions answered, by figure."""
    sums: dict[str, float] = defaultdict(float)
    for question in questions:
        hits = memory.recall(
            question.text, limit=RESULTS, asked_at=question.asked_at
        ).hits
        lines = shown(hits)
        sums["any@10"] += any(id in question.evidence for id, _ in lines)
        sums["lines"] += len(lines)
        read = 0
        first = None
        for id, text in lines:
            read += len(text) // CHARS_PER_TOKEN + HEADING_TOKENS
            if first is None and id in question.evidence:
                first = read
        for limit in TOKENS:
            sums[f"within {limit:,} tokens"] += first is not None and first <= limit
    return {name: value / len(questions) for name, value in sums.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="LifeBench's folder")
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    options = parser.parse_args()
    records = life_records(options.data)
    questions = life_questions(options.data, records)
    report = Report("bench-life")
    figures: dict[str, dict[str, float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(
            f"{folder}/memory.db",
            wm_max=10_000_000,
            **encoder_settings(with_encoder=not options.no_encoder),
        ) as memory,
    ):
        fill(memory, records)
        wait_for_vectors(memory.status)
        for stage in BARS:
            if stage == "after":
                memory.sleep(force=True)
            figures[stage] = scores(memory, questions)
    rows = [
        [name, figures["before"][name], figures["after"][name]]
        for name in figures["before"]
    ]
    report.table(
        f"{len(records):,} records, {len(questions)} questions",
        ["figure", "before", "after"],
        rows,
    )
    for stage, bar in BARS.items():
        for name, value in figures[stage].items():
            report.figure(f"{stage}/{name}", value)
        report.bar(f"any@10 {stage} sleep", figures[stage]["any@10"], ">=", bar)
    for limit in TOKENS:
        name = f"within {limit:,} tokens"
        before, after = figures["before"][name], figures["after"][name]
        report.bar(f"{name} after sleep, against before", after, ">=", before)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
