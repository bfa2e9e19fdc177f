"""Measure what a small model adds to the summaries of LoCoMo's first sessions.

    python tests/bench/bench_small_model.py --data path/to/locomo10.json --model file.gguf

The rules choose what matters; the model says it in its words where they are grounded. How its
answers are judged here shares no code with what keeps or drops them.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.measure import say
from bench.model_summaries import PAST_COOL_DOWN, StandingClock, first_sessions
from bench.report import Report
from bench.retention import Conversation, Session, load, retention
from bench.small_model import RecordingModel, in_model_words, is_grounded, summarizes

from mnemosyned.config import LlmConfig
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.models.llama import LlamaModel
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import RATIO, ExtractiveSummarizer

SESSIONS = 20
MAX_TOKENS = 400


def measure(
    report: Report, conversations: list[Conversation], path: Path, threads: int
) -> None:
    model = RecordingModel(
        LlamaModel(model_path=path, settings=LlmConfig(threads=threads, nice=0))
    )
    rules = ExtractiveSummarizer(ratio=RATIO, zone=UTC)
    primary = ModelSummarizer(model=model, ratio=RATIO, zone=UTC, max_tokens=MAX_TOKENS)
    clock = StandingClock()
    chain = FallbackSummarizer(
        primary=primary, model=model, fallback=rules, clock=clock
    )
    sessions = [s for one in conversations for s in one.sessions.values()]
    by_model: dict[int, str] = {}
    by_rule = {id(session): rules.summarize(session).text for session in sessions}
    began = time.monotonic()
    shares = []
    try:
        for number, session in enumerate(sessions, start=1):
            summary = chain.summarize(session)
            clock.moment += PAST_COOL_DOWN
            by_model[id(session)] = summary.text
            shares.append(summary.model_share)
            say(f"{number} of {len(sessions)} sessions, {len(model.answers)} answers")
    finally:
        chain.close()
    seconds = time.monotonic() - began
    answers = [summarizes(shown, answer) for shown, answer in model.answers]
    figures(report, sessions, by_rule, by_model)
    rows: list[list[object]] = [
        list(pair)
        for pair, reports in zip(model.answers, answers, strict=True)
        if not reports
    ]
    report.table("Answers that do not summarize", ["shown", "answer"], rows)
    report.figure("answers", len(answers))
    report.figure(
        "groups the model had a part in", sum(map(bool, shares)) / len(shares)
    )
    report.figure(
        "sentences kept of those it wrote", primary.sentences[1] / len(answers)
    )
    report.figure("characters it wrote", sum(shares) / len(shares))
    report.figure("s per session", seconds / len(sessions))
    report.bar("answers that summarize", sum(answers) / len(answers), ">=", 0.9)
    kept = retention(conversations, lambda session: by_model[id(session)])
    least = retention(conversations, lambda session: by_rule[id(session)])
    report.figure("questions", sum(len(one.questions) for one in conversations))
    report.figure("retention", kept)
    report.bar("retention less the rules'", kept - least, ">=", 0.0)


def figures(
    report: Report,
    sessions: list[Session],
    by_rule: dict[int, str],
    by_model: dict[int, str],
) -> None:
    """Report the model's sentences, and those of them that no turn grounds."""
    rows: list[list[object]] = []
    unsaid: list[list[object]] = []
    for number, session in enumerate(sessions):
        own = in_model_words(by_rule[id(session)], session)
        for sentence in in_model_words(by_model[id(session)], session):
            if sentence not in own:
                row: list[object] = [number, sentence]
                rows.append(row)
                if not is_grounded(sentence, session):
                    unsaid.append(row)
    report.table("In the model's words", ["session", "sentence"], rows)
    report.table("Of these, ungrounded", ["session", "sentence"], unsaid)
    report.figure("sentences in the model's words", len(rows))
    report.bar("ungrounded sentences kept", len(unsaid), "<=", 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="path of locomo10.json"
    )
    parser.add_argument("--model", type=Path, required=True, help="a small GGUF file")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    report = Report("bench-small-model")
    conversations = first_sessions(load(args.data), args.sessions)
    measure(report, conversations, args.model, args.threads)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
