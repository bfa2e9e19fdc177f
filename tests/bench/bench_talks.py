"""How many questions about long technical talks are answered among ten results.

    python tests/bench/bench_talks.py [--no-encoder]

The ten talks are in `tests/support/datasets/technical_talks`: a user and an assistant whose
answers have hundreds of words. Asked are their 200 questions of ten kinds, within each talk and
over all ten, once every memory has its vector, before and after a sleep, next to bare FTS5 over the
same memories. A question is answered if a result shows one of the turns with its evidence. Where
nothing is known, no result is the answer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_meaning import encoder_settings
from bench.meaning_sets import fill
from bench.report import Report
from support.datasets.technical_talks import KINDS, load_talks
from support.talk_recall import (
    EVERYTHING,
    SCOPES,
    memories_of,
    plain_search,
    product_search,
    questions_of,
    shares,
)

from mnemosyned.assembly.embedded import Memory

ABOVE_PLAIN = 0.08
STAGES = ("before", "after")
PLAIN = "bare FTS5"

Runs = Mapping[tuple[str, str], Mapping[str, float]]
"""By scope and stage, the share of answered questions of each kind."""


def runs(settings: Mapping[str, Any]) -> Runs:
    talks = load_talks()
    questions = questions_of(talks)
    memories = memories_of(talks)
    answered = {
        (scope, PLAIN): shares(plain_search(talks), questions, scope)
        for scope in SCOPES
    }
    with (
        tempfile.TemporaryDirectory(prefix="talks-") as folder,
        Memory(
            Path(folder, "memory.db"), wm_max=1_000_000, auto_sleep=False, **settings
        ) as memory,
    ):
        fill(memory, memories)
        for stage in STAGES:
            if stage == "after":
                memory.sleep(force=True)
            for scope in SCOPES:
                search = product_search(memory)
                answered[scope, stage] = shares(search, questions, scope)
    return answered


def publish(report: Report, answered: Runs) -> None:
    for scope in SCOPES:
        plain = answered[scope, PLAIN]
        for stage in (PLAIN, *STAGES):
            report.figure(f"{stage}, {scope}", answered[scope, stage][EVERYTHING])
        report.table(
            f"Questions with evidence among ten results, {scope}",
            ["kind", PLAIN, *STAGES],
            [
                [kind, *(answered[scope, stage][kind] for stage in (PLAIN, *STAGES))]
                for kind in (EVERYTHING, *KINDS)
            ],
        )
        before = answered[scope, "before"]
        report.bar(
            f"any@10 before sleep, {scope}, above bare FTS5",
            before[EVERYTHING] - plain[EVERYTHING],
            ">=",
            ABOVE_PLAIN,
        )
        for stage in STAGES:
            below = [
                kind for kind in KINDS if answered[scope, stage][kind] < plain[kind]
            ]
            report.bar(f"kinds below bare FTS5, {stage}, {scope}", len(below), "<=", 0)
        after = answered[scope, "after"][EVERYTHING]
        report.bar(f"any@10 after sleep, {scope}", after, ">=", before[EVERYTHING])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    options = parser.parse_args()
    report = Report("bench-talks")
    publish(report, runs(encoder_settings(with_encoder=not options.no_encoder)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
