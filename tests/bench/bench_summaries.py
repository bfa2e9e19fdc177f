"""Measure what summaries keep of LoCoMo's sessions: the rules' own, and a model's.

    python tests/bench/bench_summaries.py --data path/to/locomo10.json
    python tests/bench/bench_summaries.py --data … --model file.gguf --sessions 5

An answer is retained if every content word of it (stop words removed, Porter-stemmed) occurs in
the episodes of its evidence sessions taken together. Readability is judged by `readability.py`, over
the episodes, days, weeks and months that a real memory writes. A model is named by `--model`,
`--endpoint` or `--config`; what else it needs comes from the MNEMOSYNE_LLM_… variables, as for the
daemon.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.model_summaries import first_sessions, hold_useless, score
from bench.readability import total
from bench.report import Report
from bench.retention import Conversation, Render, Session, characters, load, retention
from bench.summary_levels import (
    LEVELS,
    demo_week,
    hand_made_year,
    judged,
    locomo,
    technical_talks,
)

from mnemosyned.summary.extract import RATIO, ExtractiveSummarizer
from mnemosyned.text.sentences import split_sentences
from mnemosyned.verbs.memories import Remember

SEEDS = 20
FAULTS_SHOWN_MAX = 12
TUNED_ON = 5


def originals(session: Session) -> str:
    return "\n".join(one.content for one in session)


def lead(session: Session) -> str:
    return originals(session)[: budget(session)]


def at_random(seed: int) -> Render:
    def render(session: Session) -> str:
        dice = random.Random(f"{seed}{session[0].id}{len(session)}")
        pool = [text for one in session for text, _ in split_sentences(one.content)]
        dice.shuffle(pool)
        text = ""
        for sentence in pool:
            if len(text) + len(sentence) < budget(session):
                text += f"{sentence}\n"
        return text

    return render


def budget(session: Session) -> int:
    return int(characters(session) * RATIO)


def measure(conversations: Sequence[Conversation]) -> dict[str, float]:
    summarizer = ExtractiveSummarizer()

    def ours(session: Session) -> str:
        return summarizer.summarize(session).text

    def searched(session: Session) -> str:
        summary = summarizer.summarize(session)
        return f"{summary.text}\n{summary.index_terms}"

    sessions = [session for one in conversations for session in one.sessions.values()]
    started = time.process_time()
    texts = [ours(session) for session in sessions]
    spent = time.process_time() - started
    kept = sum(map(len, texts))
    ratios = [
        len(text) / characters(session)
        for text, session in zip(texts, sessions, strict=True)
    ]
    return {
        "compression": kept / sum(map(characters, sessions)),
        "compression_max": max(ratios),
        "with_terms": sum(len(searched(session)) for session in sessions)
        / sum(map(characters, sessions)),
        "retention": retention(conversations, ours),
        "retention_with_terms": retention(conversations, searched),
        "retention_lead": retention(conversations, lead),
        "retention_random": sum(
            retention(conversations, at_random(n)) for n in range(SEEDS)
        )
        / SEEDS,
        "retention_originals": retention(conversations, originals),
        "us_per_memory": spent / sum(map(len, sessions)) * 1e6,
    }


def hold(report: Report, part: str, figures: dict[str, float]) -> None:
    """Report a part of the conversations and hold it to the bars."""
    for name, value in figures.items():
        report.figure(f"{part}/{name}", value)
    better = max(figures["retention_lead"], figures["retention_random"])
    report.bar(f"largest size, {part}", figures["compression_max"], "<=", 0.35)
    report.bar(f"retention of the text, {part}", figures["retention"], ">=", 0.48)
    with_terms = figures["retention_with_terms"]
    report.bar(f"retention with index terms, {part}", with_terms, ">=", 0.6)
    report.bar(
        f"retention over the better baseline, {part}",
        figures["retention"] / better,
        ">=",
        1.7,
    )


def readable(
    report: Report, part: str, sets: Iterable[Sequence[Remember]], *, held: bool = True
) -> None:
    """Report how readable the summaries of every level are, and hold them to the bars."""
    levels = judged(sets)
    for name, level in zip(LEVELS, levels, strict=True):
        for figure, value in level.figures().items():
            report.figure(f"{part}, {name}/{figure}", value)
    rows: list[list[object]] = [
        [line] for line in total(levels).faults[:FAULTS_SHOWN_MAX]
    ]
    if rows:
        report.table(f"Lines at fault, {part}", ["line"], rows)
    if held:
        figures = total(levels).figures()
        report.bar(f"whole lines, {part}", figures["whole"], ">=", 0.95)
        report.bar(f"dangling heads, {part}", figures["dangling"], "<=", 0.03)
        report.bar(f"lists of bare values, {part}", figures["bare_lists"], "<=", 0)
        report.bar(
            f"summaries of 60 % of those below, {part}", figures["shrunk"], ">=", 1
        )


def by_rule(report: Report, conversations: Sequence[Conversation]) -> None:
    """The fallback against its baselines, and under models that are of no use."""
    hold(report, "1-5 (tuned on)", measure(conversations[:TUNED_ON]))
    hold(report, "6-10 (held out)", measure(conversations[TUNED_ON:]))
    hold(report, "all", measure(conversations))
    readable(report, "LoCoMo", locomo(conversations))
    readable(report, "the demo's week", demo_week())
    readable(report, "the hand-made year", hand_made_year())
    readable(report, "technical talks", technical_talks(), held=False)
    hold_useless(report, conversations)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="path of locomo10.json"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="score this GGUF file instead of the rules")
    which.add_argument("--endpoint", help="score the model behind this address")
    which.add_argument("--config", type=Path, help="score the model of these settings")
    parser.add_argument(
        "--sessions", type=int, help="only the first so many, for a slow model"
    )
    args = parser.parse_args()
    conversations = load(args.data)
    named = {"llm.model_path": args.model, "llm.endpoint": args.endpoint}
    settings = {key: value for key, value in named.items() if value}
    if settings or args.config:
        report = Report("bench-summaries-model")
        chosen = first_sessions(conversations, args.sessions)
        score(report, "model", chosen, settings=settings, file=args.config)
    else:
        report = Report("bench-summaries")
        by_rule(report, conversations)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
