"""Show what is learned of users' messages: of labelled ones, and of texts that state little.

    python tests/bench/bench_learnings.py [--data path/to/locomo10.json] [--vectors]

The labelled messages give precision and recall, the held-out half apart. The technical talks say how
many of the turns that answer a question about a preference or an instruction are learned. Every line
learned of the other texts is printed, to be read: each is either a preference or a mistake.

Rules that speak of answers, languages or "everywhere" are taken for rules of all projects or of one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from bench.locomo import Conversation
from bench.report import Report
from support.datasets.technical_talks import Talk, load_talks
from support.datasets.written_year import written_year
from support.fakes import NOON
from support.preferences import labelled_messages, preference_figures

from mnemosyned.conversation.learnings.recognize import RateSentences, find_statements
from mnemosyned.conversation.learnings.relevance import find_scope, load_topics
from mnemosyned.memory.values import Learning, LearningKind, LearningScope
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors.bearing import BearingRater

PRECISION_MIN, RECALL_MIN = 0.9, 0.75
ASKED_KINDS = ("preference", "instruction")
NOISE_PER_DAY = 2
SCOPES = Path(__file__).with_name("sets") / "learnings" / "scopes.txt"


RATER: list[RateSentences] = []
"""Reads rules by their vectors, if that is asked for."""


def learned(text: str) -> list[str]:
    rate = RATER[0] if RATER else None
    return [statement.text for statement in find_statements(text, rate=rate)]


def report_labelled(report: Report) -> None:
    messages = labelled_messages()
    parts = {
        "all": messages,
        "tuned on": [message for message in messages if not message.held_out],
        "held out": [message for message in messages if message.held_out],
    }
    rows: list[list[object]] = []
    for name, part in parts.items():
        figures = preference_figures(part, learned)
        report.bar(f"precision, {name}", figures.precision, ">=", PRECISION_MIN)
        report.bar(f"recall, {name}", figures.recall, ">=", RECALL_MIN)
        rows.append([name, len(part), figures.precision, figures.recall])
    headers = ["labelled messages", "messages", "precision", "recall"]
    report.table("Preferences in passing", headers, rows)


def report_scopes(report: Report) -> None:
    rows: list[list[object]] = []
    parts = SCOPES.read_text(encoding="utf-8").split("checked:\n")
    for name, part in zip(("others", "checked"), parts, strict=True):
        labelled = [line for line in part.splitlines() if line[:2] in ("+ ", "- ")]
        taken = [line for line in labelled if applies_everywhere(line[2:])]
        right = [line for line in taken if line.startswith("+")]
        everywhere = [line for line in labelled if line.startswith("+")]
        counts = len(labelled), len(everywhere), len(taken), len(right)
        rows.append([name, *counts])
        report.figure(f"{name}: rules taken for rules of all projects", len(taken))
        report.figure(f"{name}: of these, rightly", len(right))
    headers = ["authors", "rules", "of all projects", "taken for such", "rightly"]
    report.table("Where rules apply", headers, rows)


def applies_everywhere(text: str) -> bool:
    rule = Learning(
        id="rule",
        kind=LearningKind.INSTRUCTION,
        text=text,
        session="session",
        created_at=NOON,
    )
    return find_scope(rule) is LearningScope.EVERYWHERE


def report_talks(report: Report, talks: Iterable[Talk]) -> None:
    evidence = list(_evidence_turns(talks))
    found = sum(bool(learned(text)) for text in evidence)
    report.figure("talks: turns that answer a preference or instruction", len(evidence))
    report.figure("talks: of these, learned from", found)


def _evidence_turns(talks: Iterable[Talk]) -> Iterator[str]:
    """Yield the user turns that answer a question about a preference or an instruction."""
    for talk in talks:
        numbers = {
            number
            for question in talk.questions
            if question.kind in ASKED_KINDS
            for number in question.evidence
        }
        turns = (talk.turn(number) for number in sorted(numbers))
        yield from (turn.text for turn in turns if turn.role == "user")


def report_texts(report: Report, name: str, texts: Iterable[str]) -> None:
    """Count and show what is learned of texts, all of them taken for a user's."""
    all_texts = list(texts)
    lines = [line for text in all_texts for line in learned(text)]
    report.figure(f"{name}: messages", len(all_texts))
    report.figure(f"{name}: learned", len(lines))
    report.table(f"Learned of {name}", ["text"], [[line] for line in lines])


def locomo_turns(path: Path) -> Iterator[str]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        for turn in msgspec.convert(sample, Conversation).turns():
            yield turn.content


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="path of locomo10.json")
    parser.add_argument("--vectors", action="store_true", help="with the encoder")
    options = parser.parse_args()
    data = options.data
    if options.vectors:
        RATER.append(BearingRater(SentenceEncoder(), load_topics()).rate_sentences)
    report = Report("learnings" + "-with-vectors" * options.vectors)
    talks = load_talks()
    user_turns = (turn for talk in talks for turn in talk.turns if turn.role == "user")
    report_labelled(report)
    report_scopes(report)
    report_talks(report, talks)
    report_texts(report, "technical talks", (turn.text for turn in user_turns))
    records = written_year(per_day=NOISE_PER_DAY).records
    report_texts(report, "a written year", (record.content for record in records))
    if data:
        report_texts(report, "LoCoMo", locomo_turns(Path(data)))
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
