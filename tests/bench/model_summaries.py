"""What a model's summaries keep of LoCoMo's sessions, beside the rules' own in the same run."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.measure import say
from bench.report import Report
from bench.retention import Conversation, Session, characters, retention
from support import endpoints

from mnemosyned.assembly.stores import make_summarizer
from mnemosyned.config.loading import load_config
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.consolidation import log_preview
from mnemosyned.memory.engine_ports import Summarizer, Summary
from mnemosyned.memory.values import SummarizerState, SummarizerStatus

USELESS = {"says nothing": "nothing", "repeats how it began": "begins"}
"""Models by what they do, and the name under which the tests' endpoint does it."""
SAY_EVERY_S = 5.0
PAST_COOL_DOWN = timedelta(hours=2)
COUNTED = re.compile(r"\A\d+ groups in a row .* as: ")
"""What a reason begins with that is not one group's own."""


@dataclass
class StandingClock(Clock):
    """Stands still, so that a dead model is asked once, until told that a cool-down is over."""

    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        return self.moment


@dataclass(frozen=True, slots=True)
class Scored:
    """What a model made of the sessions it was given."""

    texts: Mapping[int, str]
    """The episode of each session and its index terms, by the session's own identity."""
    chars: int
    """Characters of all texts, index terms apart."""
    reasons: Counter[str]
    """Why rules wrote the others."""
    status: SummarizerStatus
    seconds: float


def searched(summary: Summary) -> str:
    """Return all that a summary is found by: its text and its index terms."""
    return f"{summary.text}\n{summary.index_terms}"


def first_sessions(
    conversations: Sequence[Conversation], limit: int | None
) -> list[Conversation]:
    """So many sessions, and the questions whose evidence they hold whole."""
    kept: list[Conversation] = []
    for one in conversations:
        left = (
            None
            if limit is None
            else limit - sum(len(other.sessions) for other in kept)
        )
        sessions = dict(list(one.sessions.items())[:left])
        if sessions:
            known = sessions.keys()
            asked = tuple(
                (answer, evidence)
                for answer, evidence in one.questions
                if evidence <= known
            )
            kept.append(Conversation(sessions, asked))
    return kept


def written(
    summarizer: Summarizer, sessions: Sequence[Session], clock: StandingClock
) -> Scored:
    """Every session by the model. Five refusals in a row end nothing here: each has its chance."""
    texts: dict[int, str] = {}
    reasons: Counter[str] = Counter()
    chars = 0
    began = told = time.monotonic()
    for at, session in enumerate(sessions, start=1):
        refused = summarizer.status().rejected
        summary = summarizer.summarize(session)
        texts[id(session)] = searched(summary)
        chars += len(summary.text)
        if summary.fallback_reason:
            reasons[COUNTED.sub("", summary.fallback_reason)] += 1
        status = summarizer.status()
        if status.rejected > refused:
            clock.moment += PAST_COOL_DOWN
        if time.monotonic() - told >= SAY_EVERY_S or at == len(sessions):
            told = time.monotonic()
            say(
                f"{at} of {len(sessions)} sessions: {status.accepted} by the model, "
                f"{status.retried} asked twice, {status.rejected} refused, "
                f"{sum(reasons.values())} by rule"
            )
    return Scored(texts, chars, reasons, summarizer.status(), time.monotonic() - began)


def score(
    report: Report,
    part: str,
    conversations: Sequence[Conversation],
    *,
    settings: Mapping[str, str],
    file: Path | None = None,
) -> None:
    """Report what the model of these settings keeps, and hold it to what the rules keep."""
    clock = StandingClock()
    summarizer = make_summarizer(load_config(file, overrides=settings), clock)
    if summarizer.status().state is SummarizerState.RULES:
        raise SystemExit("no model is configured in these settings")
    sessions = [session for one in conversations for session in one.sessions.values()]
    if not any(one.questions for one in conversations):
        raise SystemExit(
            "no question has all its evidence in so few sessions; take more"
        )
    say(f"{part}: {summarizer.name}, {len(sessions)} sessions")
    try:
        scored = written(summarizer, sessions, clock)
        rules = summarizer.rule_based()
        by_rule = retention(
            conversations, lambda session: searched(rules.summarize(session))
        )
    finally:
        summarizer.close()
    kept = retention(conversations, lambda session: scored.texts[id(session)])
    told(report, part, scored, size=sum(map(characters, sessions)))
    report.figure(f"{part}/questions", sum(len(one.questions) for one in conversations))
    report.figure(f"{part}/retention", kept)
    report.figure(f"{part}/retention_by_rule", by_rule)
    report.bar(f"retention less the rules', {part}", kept - by_rule, ">=", 0.0)


def told(report: Report, part: str, scored: Scored, *, size: int) -> None:
    """Counts and sizes, and why rules wrote what they wrote."""
    status = scored.status
    report.figure(f"{part}/accepted", status.accepted)
    report.figure(f"{part}/retried", status.retried)
    report.figure(f"{part}/rejected", status.rejected)
    report.figure(f"{part}/by_rule", sum(scored.reasons.values()))
    report.figure(f"{part}/compression", scored.chars / size)
    report.figure(f"{part}/s_per_session", scored.seconds / len(scored.texts))
    rows: list[list[object]] = [
        [count, log_preview(reason)] for reason, count in scored.reasons.most_common()
    ]
    if rows:
        report.table(f"By rule, {part}", ["sessions", "why"], rows)


def hold_useless(report: Report, conversations: Sequence[Conversation]) -> None:
    """No model brings retention below the rules', as ones of no use show over real HTTP."""
    for part, behavior in USELESS.items():
        with endpoints.process("--say", behavior) as (endpoint, _):
            settings = {"llm.endpoint": endpoint.url}
            score(report, f"a model that {part}", conversations, settings=settings)
