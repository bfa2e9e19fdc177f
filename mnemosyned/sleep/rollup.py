"""Roll-ups: episodes become days, days become weeks, weeks become months, once they are over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.errors import MnemosynedError, SummarizerFailed
from mnemosyned.domain.ids import new_id
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.rollups import PendingRollups, Rollup
from mnemosyned.domain.sleep.consolidation import BY_RULE, UNSPOKEN, WORDLESS, preview
from mnemosyned.domain.sleep.cycles import GroupReport, GroupStatus, LogEntry
from mnemosyned.domain.sleep.rollup import (
    Level,
    Period,
    begin_of,
    closed_before,
    periods,
)
from mnemosyned.domain.summary.rollup_text import (
    RollupSource,
    RollupText,
    compose_rollup,
)
from mnemosyned.logs import log_failure
from mnemosyned.sleep.consolidate import record_failure
from mnemosyned.sleep.context import CycleContext

ROLLUP_MAX = 20_000
"""Summaries read at once; a longer backlog is rolled up in several rounds."""
ROUNDS_MAX = 1_000
UPPER_LEVELS = (Level.DAY, Level.WEEK, Level.MONTH)


@dataclass(frozen=True, slots=True)
class _Work:
    """A period whose summaries were read, to be rolled up."""

    period: Period
    existing: str | None
    """The id of the summary to rewrite; None when the period has none yet."""
    members: Sequence[Episode]
    started: float


class RollupRun:
    """Rolls up the periods of one cycle, the lowest level first, and records their outcomes."""

    def __init__(self, context: CycleContext) -> None:
        self.reports: list[GroupReport] = []
        self._context = context
        self._store = context.store
        self._failed: set[datetime] = set()
        """The beginnings of failed periods; the longer periods around them wait with them."""

    def roll_up(self, *, before: datetime) -> None:
        """Roll up every period that ended by an instant, while the cycle may continue."""
        for level in UPPER_LEVELS:
            for _ in range(ROUNDS_MAX):
                if not self._context.may_continue():
                    return
                due, existing = self._due(level, before)
                if not due:
                    break
                self._roll_up(due, existing)

    def _due(
        self, level: Level, before: datetime
    ) -> tuple[list[Period], Mapping[datetime, str]]:
        """Return the periods to roll up, and the summaries that some of them have already.

        A period around a failed one waits for the next cycle.
        """
        limit = closed_before(level, before)
        found = self._store.rollups.pending(
            to_level=level, before=limit, limit=ROLLUP_MAX
        )
        failed = {begin_of(level, begins) for begins in self._failed}
        due = [
            period
            for period in rollup_periods(found, level)
            if period.begins not in failed
        ]
        return due, found.existing

    def _roll_up(self, due: Sequence[Period], existing: Mapping[datetime, str]) -> None:
        """Write the summaries of these periods, by rule: what is below was written by then."""
        for period in due:
            if not self._context.may_continue():
                return
            self._context.yield_to_requests()
            started = time.monotonic()
            members = self._store.memories.summaries(period.ids)
            work = _Work(period, existing.get(period.begins), members, started)
            try:
                self._finish(work, self._composed(work))
            except Exception as error:  # noqa: BLE001 one period must not end the others
                self._fail(work, error)

    def _composed(self, work: _Work) -> RollupText:
        terms = self._store.rollups.index_terms(work.period.ids)
        minimum = self._context.policy.rollup.minimum
        text = compose(work.members, terms, work.period.level, minimum=minimum)
        if not text.lines:
            raise SummarizerFailed("the summaries of this period say nothing")
        return text

    def _finish(self, work: _Work, rolled_up: RollupText) -> None:
        episode = self._episode(work, rolled_up)
        entry = LogEntry(
            cycle=self._context.id,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=self._context.trigger,
            status=GroupStatus.PROMOTED,
            items_consolidated=0,  # no memory left working memory: the log's sum stays theirs
            episode=episode.id,
            summarizer=episode.summarizer,
            summary_preview=preview(episode.content),
            duration_s=time.monotonic() - work.started,
            chars_before=sum(len(member.content) for member in work.members),
            chars_after=len(episode.content),
            level=episode.level,
        )
        members = {member.id: member.content for member in work.members}
        self._store.rollups.write(
            Rollup(episode, entry, members, rolled_up.index_terms)
        )
        self.reports.append(
            period_report(
                work.period,
                entry.status,
                episode=episode.id,
                chars=entry.chars_after,
            )
        )

    def _episode(self, work: _Work, rolled_up: RollupText) -> Episode:
        now = self._context.clock.now()
        members, period = work.members, work.period
        sessions = {member.session for member in members}
        sources = {member.source for member in members}
        return Episode(
            id=work.existing or new_id(now),
            content=rolled_up.text,
            created_at=now,
            session=sessions.pop() if len(sessions) == 1 else "",
            source=sources.pop() if len(sources) == 1 else None,
            level=period.level,
            item_count=sum(member.item_count for member in members),
            covers_from=min(member.covers_from for member in members),
            covers_until=max(member.covers_until for member in members),
            summarizer=BY_RULE,
            summary_of=tuple(member.id for member in members),
            period_from=period.begins,
        )

    def _fail(self, work: _Work, error: Exception) -> None:
        """Log a period that stays as it is, for the next cycle to try again."""
        code = (
            error.code if isinstance(error, MnemosynedError) else type(error).__name__
        )
        period = work.period
        self._failed.add(period.begins)
        log_failure(
            "rollup_failed",
            error,
            cycle=self._context.id,
            period=period.key,
            items=len(period.members),
            error=code,
        )
        record_failure(
            self._store,
            LogEntry(
                cycle=self._context.id,
                created_at=self._context.clock.now(),
                session="",
                source=None,
                trigger=self._context.trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=work.existing,
                summarizer="",
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - work.started,
                chars_before=period.chars,
                chars_after=0,
                level=period.level,
            ),
        )
        self.reports.append(period_report(period, GroupStatus.FAILED, error=code))


def rollup_periods(found: PendingRollups, level: Level) -> list[Period]:
    """Return the periods of these summaries, however few a period has: it is over."""
    reopened = frozenset(found.existing.values())
    return periods(found.children, to_level=level, minimum=1, reopened=reopened)


def period_report(
    period: Period,
    status: GroupStatus,
    *,
    episode: str | None = None,
    chars: int = 0,
    error: str | None = None,
) -> GroupReport:
    """Return the report of one period."""
    return GroupReport(
        session="",
        source=None,
        status=status,
        items=len(period.members),
        covers_from=period.begins,
        covers_until=period.ends,
        episodes=(episode,) if episode else (),
        chars_before=period.chars,
        chars_after=chars,
        error=error,
        level=period.level,
        period=period.key,
    )


def compose(
    members: Sequence[Episode],
    terms: Mapping[str, str],
    level: Level,
    *,
    minimum: int,
) -> RollupText:
    """Compose the text of a period from its summaries, oldest first, and their index terms.

    A summary that only says that there is nothing to say has no line, unless all do.
    """
    silent = {UNSPOKEN, WORDLESS}
    if silent.issuperset(member.content for member in members):
        silent = set()
    sources = [
        RollupSource(
            text="" if member.content in silent else member.content,
            index_terms=terms.get(member.id, ""),
            begins=member.period_from or member.covers_from,
        )
        for member in members
    ]
    return compose_rollup(sources, level=level, minimum=minimum)
