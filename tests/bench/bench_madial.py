"""How many talks bring up a memory that they call for, in English and Chinese, before and after a sleep.

    python tests/bench/bench_madial.py --data path/to/madial [--no-encoder]

MADial-Bench (github.com/hejunqing/MADial-Bench) has talks of two children with an assistant, the dated
memories of both, and for each talk the memories that it calls for at one moment. Asked is what the child has
said up to there: the last line alone, and all lines. No line is a question about a memory. Talks in one
language are also asked of the memories in the other. Counted is what `recall` shows, as hits or as the
nearest; the first row of each table is bare FTS5 with the Porter stemmer over the same memories.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_meaning import PLAIN, Answers, ask, encoder_settings, stages_of
from bench.meaning_sets import (
    Asked,
    means_by_kind,
    plain_search,
    shown_ids,
    shows_answer,
)
from bench.report import Report

from mnemosyned import Memory
from mnemosyned.verbs.memories import Remember

LANGUAGES = ("en", "zh")
FEW, MANY = 5, 10
KINDS = ("last line", "all lines")
ABOVE_PLAIN = 0.05
_LINE = re.compile(r'<(?P<speaker>\w+)>\s*:\s*["“]?(?P<text>.*?)["”]?', re.DOTALL)


def load_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def load_memories(data: Path, language: str) -> list[Remember]:
    """Return the memories of both children in one language."""
    return [
        Remember(
            id=id,
            content=memory["event"],
            source="memories",
            role="user",
            created_at=datetime.fromisoformat(memory["time"]).replace(tzinfo=UTC),
        )
        for line in load_lines(data / f"memory-{language}.jsonl")
        for id, memory in line.items()
    ]


def load_talks(data: Path, language: str, known: frozenset[str]) -> list[Asked]:
    """Return what the child has said in each talk; the evidence is what the talk calls for of `known`."""
    asked: list[Asked] = []
    for talk in load_lines(data / f"dialogue-{language}.jsonl"):
        evidence = known.intersection(map(str, talk["relevant-id"]))
        said = [
            line["text"]
            for text in talk["dialogue"][: talk["test-turn"][0]]
            if (line := _LINE.fullmatch(text.strip()))
            and line["speaker"] != "Assistant"
        ]
        texts = zip(KINDS, (said[-1], " ".join(said)), strict=True)
        asked += [Asked(kind, text, evidence) for kind, text in texts if evidence]
    return asked


def list_shown(memory: Memory, asked: Asked) -> list[frozenset[str]]:
    """Return the ids of the memories that each result shows, of hits and then of the nearest."""
    found = memory.recall(asked.text, limit=MANY)
    return [shown_ids(hit) for hit in (*found.hits, *found.nearest)]


def report_answers(report: Report, title: str, answers: Answers) -> None:
    """Report the share of talks that show a memory among few and many results, and the bar."""
    rows: dict[str, list[float]] = {}
    for name, answer in answers.items():
        rows[name] = []
        for count in (FEW, MANY):
            shows = {
                asked: shows_answer(asked, results[:count])
                for asked, results in answer.items()
            }
            means = means_by_kind(shows)
            rows[name] += [
                report.figure(f"{title}, {kind}, {name}: any of {count}", means[kind])
                for kind in KINDS
            ]
    heads = [f"{kind}, {count}" for count in (FEW, MANY) for kind in KINDS]
    table = [[name, *row] for name, row in rows.items()]
    report.table(f"Talks that show a memory: {title}", ["", *heads], table)
    plain = rows.pop(PLAIN)
    gains = [
        own - least
        for row in rows.values()
        for own, least in zip(row, plain, strict=True)
    ]
    report.bar(f"{title}: least gain on {PLAIN}", min(gains), ">=", ABOVE_PLAIN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of MADial-Bench"
    )
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    options = parser.parse_args()
    settings = encoder_settings(with_encoder=not options.no_encoder)
    report = Report("bench-madial")
    for language in LANGUAGES:
        records = load_memories(options.data, language)
        known = frozenset(str(record.id) for record in records)
        for spoken in LANGUAGES:
            talks = load_talks(options.data, spoken, known)
            answers = {PLAIN: ask(plain_search(records, MANY), talks)}
            for stage, memory in stages_of(records, settings):
                answers[stage] = ask(partial(list_shown, memory), talks)
            report_answers(report, f"memories {language}, talks {spoken}", answers)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
