"""The levels of one cycle: episodes become days, days weeks, weeks months, once they are over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mnemosyned.domain.consolidation import (
    VERBATIM,
    GroupReport,
    GroupStatus,
    LogEntry,
    Trigger,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, SummarizerFailed
from mnemosyned.domain.memory import Episode, Memory, new_id
from mnemosyned.domain.ports import Clock, Fold, Foldable, MemoryStore, Summarizer, Summary
from mnemosyned.domain.pyramid import FOLD_MIN, Child, Level, Period, begin_of, edge, parts, periods
from mnemosyned.logs import logger
from mnemosyned.sleep.budget import Meter

FOLDABLE_MAX = 20_000
"""Summaries looked at together; a longer backlog is folded in several rounds."""
ROUNDS_MAX = 1_000
CHARS_MAX = 24_000
"""What is summarised at once; a period with more is summarised part by part, then the parts."""
SHRINK_MIN = 0.9
"""What a part must shrink to for another round to be worth it."""
SEPARATOR = "\n\n"
UPPER = (Level.DAY, Level.WEEK, Level.MONTH)

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPolicy:
    """When a period is folded, and from how many summaries on it is summarised anew."""

    grace: timedelta = timedelta(hours=6)
    """So long after the last memory of a period was old enough to be consolidated."""
    minimum: int = FOLD_MIN
    """One or two summaries are carried up word for word: each period that is over has exactly
    one place, and nothing is shortened for the sake of it."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A period with its summaries, on its way to the summariser."""

    period: Period
    standing: str | None
    """The summary that is to be rewritten, where there is one."""
    members: Sequence[Episode]
    started: float


class FoldRun:
    """Folds the levels of one cycle, each from below, and remembers what became of each period."""

    def __init__(
        self,
        *,
        cycle: str,
        trigger: Trigger,
        store: MemoryStore,
        summarizer: Summarizer,
        clock: Clock,
        policy: LevelPolicy,
        meter: Meter,
    ) -> None:
        self.reports: list[GroupReport] = []
        self._cycle = cycle
        self._trigger = trigger
        self._store = store
        self._summarizer = summarizer
        self._clock = clock
        self._policy = policy
        self._meter = meter
        self._failed: set[datetime] = set()
        """Where failed periods begin; what they lie in waits with them."""

    def fold(self, *, before: datetime, go_on: Callable[[], bool]) -> None:
        """Fold every period that ended by an instant, as long as `go_on` says yes."""
        for level in UPPER:
            for _ in range(ROUNDS_MAX):
                if not go_on():
                    return
                due, standing = self._due(level, before)
                if not due:
                    break
                self._fold(due, standing, go_on)

    def _due(self, level: Level, before: datetime) -> tuple[list[Period], Mapping[datetime, str]]:
        """The periods to fold; one in which something failed waits for the next cycle."""
        over = edge(level, before)
        found = self._store.foldable(to_level=level, before=over, limit=FOLDABLE_MAX)
        failed = {begin_of(level, begins) for begins in self._failed}
        due = [period for period in folding(found, level) if period.begins not in failed]
        return due, found.standing

    def _fold(
        self, due: Sequence[Period], standing: Mapping[datetime, str], go_on: Callable[[], bool]
    ) -> None:
        works = self._works(due, standing, go_on)
        for work, outcome in self._summarizer.summarize_each(works, expected=len(due)):
            if isinstance(outcome, Exception):
                self._fail(work, outcome)
            elif not outcome.text.strip():
                self._fail(work, SummarizerFailed(f"{outcome.summarizer} gave an empty summary"))
            else:
                self._finish(work, outcome)

    def _works(
        self, due: Sequence[Period], standing: Mapping[datetime, str], go_on: Callable[[], bool]
    ) -> Iterator[tuple[_Work, Sequence[Memory]]]:
        for period in due:
            if not go_on():
                return
            started = time.monotonic()
            members = self._store.summaries(period.ids)
            work = _Work(period, standing.get(period.begins), members, started)
            if len(members) < self._policy.minimum:
                words = SEPARATOR.join(member.content for member in members)
                self._finish(work, Summary(text=words, summarizer=VERBATIM))
                continue
            try:
                readable = self._readable(members)
            except SummarizerFailed as error:
                self._fail(work, error)
            else:
                self._meter.read(readable)
                yield work, readable

    def _readable(self, members: Sequence[Episode]) -> Sequence[Memory]:
        """The summaries as memories, shortened part by part until they can be read at once."""
        memories = [_as_memory(member) for member in members]
        while (chars := _chars(memories)) > CHARS_MAX:
            runs = parts([len(memory.content) for memory in memories], chars_max=CHARS_MAX)
            shorter = [self._shortened(memories[begin:end]) for begin, end in runs]
            if _chars(shorter) > chars * SHRINK_MIN:
                break  # the summariser takes it as long as it is
            memories = shorter
        return memories

    def _shortened(self, memories: Sequence[Memory]) -> Memory:
        self._meter.read(memories)
        text = self._summarizer.summarize(memories).text
        return replace(memories[0], content=text)

    def _finish(self, work: _Work, summary: Summary) -> None:
        episode = self._episode(work, summary)
        entry = LogEntry(
            cycle=self._cycle,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=self._trigger,
            status=GroupStatus.VERBATIM if summary.summarizer == VERBATIM else GroupStatus.PROMOTED,
            items_consolidated=0,  # no memory left working memory: the log's sum stays theirs
            episode=episode.id,
            summarizer=summary.summarizer,
            summary_preview=preview(summary.text),
            duration_s=time.monotonic() - work.started,
            chars_before=sum(len(member.content) for member in work.members),
            chars_after=len(summary.text),
            fallback_reason=summary.fallback_reason or None,
            level=episode.level,
        )
        members = {member.id: member.content for member in work.members}
        try:
            self._store.fold(Fold(episode, entry, members))
        except MnemosynedError as error:
            self._fail(work, error)
        else:
            self.reports.append(
                report(work.period, entry.status, episode=episode.id, chars=entry.chars_after)
            )

    def _episode(self, work: _Work, summary: Summary) -> Episode:
        now = self._clock.now()
        members, period = work.members, work.period
        sessions = {member.session for member in members}
        sources = {member.source for member in members}
        return Episode(
            id=work.standing or new_id(now),
            content=summary.text,
            created_at=now,
            session=sessions.pop() if len(sessions) == 1 else "",
            source=sources.pop() if len(sources) == 1 else None,
            level=period.level,
            item_count=sum(member.item_count for member in members),
            covers_from=min(member.covers_from for member in members),
            covers_until=max(member.covers_until for member in members),
            summarizer=summary.summarizer,
            summary_of=tuple(member.id for member in members),
            period_from=period.begins,
        )

    def _fail(self, work: _Work, error: Exception) -> None:
        """Log a period that stays as it is, for the next cycle to try again."""
        code = error.code if isinstance(error, MnemosynedError) else type(error).__name__
        period = work.period
        self._failed.add(period.begins)
        log.error(
            "fold_failed",
            cycle=self._cycle,
            period=period.key,
            items=len(period.members),
            error=code,
            exc_info=error,
        )
        self._store.record_failure(
            LogEntry(
                cycle=self._cycle,
                created_at=self._clock.now(),
                session="",
                source=None,
                trigger=self._trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=work.standing,
                summarizer=self._summarizer.name,
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - work.started,
                chars_before=period.chars,
                chars_after=0,
                level=period.level,
            )
        )
        self.reports.append(report(period, GroupStatus.FAILED, error=code))


def folding(found: Foldable, level: Level) -> list[Period]:
    """The periods of these summaries, however few a period has: it is over, and no more come."""
    reopened = frozenset(found.standing.values())
    return periods(found.children, to_level=level, minimum=1, reopened=reopened)


def planned(
    store: MemoryStore, *, before: datetime, coming: Sequence[Child]
) -> Iterator[GroupReport]:
    """What a cycle would fold, `coming` being the episodes that it would write first."""
    for level in UPPER:
        over = edge(level, before)
        found = store.foldable(to_level=level, before=over, limit=FOLDABLE_MAX)
        closed = [child for child in coming if child.covers_from < over]
        both = Foldable([*found.children, *closed], found.standing)
        due = folding(both, level)
        yield from (report(period, GroupStatus.PLANNED) for period in due)
        coming = [
            Child(
                id=period.key,
                covers_from=period.begins,
                item_count=period.item_count,
                chars=period.chars,
            )
            for period in due
            if period.begins not in found.standing
        ]


def report(
    period: Period,
    status: GroupStatus,
    *,
    episode: str | None = None,
    chars: int = 0,
    error: str | None = None,
) -> GroupReport:
    """What became of a period."""
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


def _as_memory(episode: Episode) -> Memory:
    """A summary as the summarisers read it."""
    return Memory(
        id=episode.id,
        content=episode.content,
        created_at=episode.covers_from,
        session=episode.session,
        source=episode.source,
    )


def _chars(memories: Sequence[Memory]) -> int:
    return sum(len(memory.content) for memory in memories)
