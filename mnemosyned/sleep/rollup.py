"""The levels of one cycle: episodes become days, days weeks, weeks months, once they are over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias, TypeVar

from mnemosyned.domain.consolidation import (
    VERBATIM,
    GroupReport,
    GroupStatus,
    LogEntry,
    Trigger,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, SummarizerFailed
from mnemosyned.domain.memory import Episode, MemoryRecord, new_id
from mnemosyned.domain.ports.models import Summarizer, SummarizerState, Summary
from mnemosyned.domain.ports.store import Clock, Fold, Foldable, MemoryStore
from mnemosyned.domain.rollup import (
    FOLD_MIN,
    Level,
    Period,
    begin_of,
    edge,
    parts,
    periods,
)
from mnemosyned.domain.summary.extract import KEYWORDS
from mnemosyned.logs import logger
from mnemosyned.sleep.budget import Meter
from mnemosyned.sleep.consolidate import record_failure

FOLDABLE_MAX = 20_000
"""Summaries looked at together; a longer backlog is folded in several rounds."""
ROUNDS_MAX = 1_000
CHARS_MAX = 24_000
"""What is summarized at once; a period with more is summarized part by part, then the parts."""
SHRINK_MIN = 0.9
"""What a part must shrink to for another round to be worth it."""
TOGETHER_CHARS = 4_000_000
"""So much of several long periods is shortened at once, by all the processes that help."""
GROUP_CHARS = 2_000
"""A part counts for as many ordinary groups, when it is asked whether help is worth starting."""
SEPARATOR = "\n\n"
K = TypeVar("K")
UPPER = (Level.DAY, Level.WEEK, Level.MONTH)

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPolicy:
    """When a period is folded, and from how many summaries on it is summarized anew."""

    grace: timedelta = timedelta(hours=6)
    """So long after the last memory of a period was old enough to be consolidated."""
    minimum: int = FOLD_MIN
    """One or two summaries are carried up word for word: each period that is over has exactly
    one place, and nothing is shortened for the sake of it."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A period with its summaries, on its way to the summarizer."""

    period: Period
    standing: str | None
    """The summary that is to be rewritten, where there is one."""
    members: Sequence[Episode]
    started: float


_Reading: TypeAlias = tuple[_Work, list[MemoryRecord]]
"""A period with what is read of it: its summaries, or shorter ones of them."""


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

    def _due(
        self, level: Level, before: datetime
    ) -> tuple[list[Period], Mapping[datetime, str]]:
        """The periods to fold; one in which something failed waits for the next cycle."""
        over = edge(level, before)
        found = self._store.foldable(to_level=level, before=over, limit=FOLDABLE_MAX)
        failed = {begin_of(level, begins) for begins in self._failed}
        due = [
            period for period in folding(found, level) if period.begins not in failed
        ]
        return due, found.standing

    def _fold(
        self,
        due: Sequence[Period],
        standing: Mapping[datetime, str],
        go_on: Callable[[], bool],
    ) -> None:
        long: list[_Reading] = []
        works = self._works(due, standing, long, go_on)
        short = sum(period.chars for period in due if period.chars <= CHARS_MAX)
        self._summarize(works, chars=short)
        rules = self._summarizer.status().state is SummarizerState.RULES
        # A model's work on a period is kept before it begins with the next.
        sizes = [_chars(memories) for _, memories in long]
        for begin, end in parts(sizes, chars_max=TOGETHER_CHARS if rules else 0):
            shortened = self._shortened(long[begin:end], go_on)
            self._summarize(shortened, chars=(end - begin) * CHARS_MAX)

    def _summarize(self, works: Iterable[_Reading], *, chars: int) -> None:
        each = self._summarizer.summarize_each(works, expected=chars // GROUP_CHARS)
        for work, outcome in each:
            if isinstance(outcome, Exception):
                self._fail(work, outcome)
            elif not outcome.text.strip():
                self._fail(
                    work,
                    SummarizerFailed(f"{outcome.summarizer} gave an empty summary"),
                )
            else:
                self._finish(work, outcome)

    def _works(
        self,
        due: Sequence[Period],
        standing: Mapping[datetime, str],
        long: list[_Reading],
        go_on: Callable[[], bool],
    ) -> Iterator[_Reading]:
        """What is to be summarized; periods too long for that go to `long`."""
        for period in due:
            if not go_on():
                return
            started = time.monotonic()
            members = self._store.summaries(period.ids)
            work = _Work(period, standing.get(period.begins), members, started)
            memories = [as_memory(member) for member in members]
            if len(members) < self._policy.minimum:
                words = SEPARATOR.join(member.content for member in members)
                self._finish(work, Summary(text=words, summarizer=VERBATIM))
            elif _chars(memories) > CHARS_MAX:
                long.append((work, memories))
            else:
                self._meter.read(memories)
                yield work, memories

    def _shortened(
        self, long: Sequence[_Reading], go_on: Callable[[], bool]
    ) -> Iterator[_Reading]:
        """Long periods, the parts of all of them summarized together until each can be read."""
        while long:
            shorter = self._parts_shortened(long, go_on)
            again: list[_Reading] = []
            for work, memories in long:
                after = shorter.get(work.period.begins)
                if after is None:
                    continue  # it failed, or there is no time left: it stays as it is
                if _chars(after) > _chars(memories) * SHRINK_MIN:
                    yield work, memories  # the summarizer takes it as long as it is
                elif _chars(after) > CHARS_MAX:
                    again.append((work, after))
                else:
                    self._meter.read(after)
                    yield work, after
            long = again

    def _parts_shortened(
        self, long: Sequence[_Reading], go_on: Callable[[], bool]
    ) -> dict[datetime, list[MemoryRecord]]:
        """By the beginning of its period, the summaries of the parts of each, in their order."""
        asked = [
            ((work, part[0]), part)
            for work, memories in long
            for part in _parts(memories)
        ]
        found: dict[datetime, dict[str, MemoryRecord]] = {
            work.period.begins: {} for work, _ in long
        }
        expected = sum(_chars(memories) for _, memories in asked) // GROUP_CHARS
        each = self._summarizer.summarize_each(
            self._while(asked, go_on), expected=expected
        )
        for (work, first), outcome in each:
            begins = work.period.begins
            if isinstance(outcome, Exception):
                if found.pop(begins, None) is not None:
                    self._fail(work, outcome)
            elif begins in found:
                found[begins][first.id] = _shorter(first, outcome)
        order: dict[datetime, list[str]] = {work.period.begins: [] for work, _ in long}
        for (work, first), _ in asked:
            order[work.period.begins].append(first.id)
        return {
            begins: [shorter[id] for id in order[begins]]
            for begins, shorter in found.items()
            if len(shorter) == len(order[begins])
        }

    def _while(
        self,
        asked: Iterable[tuple[K, Sequence[MemoryRecord]]],
        go_on: Callable[[], bool],
    ) -> Iterator[tuple[K, Sequence[MemoryRecord]]]:
        for key, memories in asked:
            if not go_on():
                return
            self._meter.read(memories)
            yield key, memories

    def _finish(self, work: _Work, summary: Summary) -> None:
        episode = self._episode(work, summary)
        entry = LogEntry(
            cycle=self._cycle,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=self._trigger,
            status=GroupStatus.VERBATIM
            if summary.summarizer == VERBATIM
            else GroupStatus.PROMOTED,
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
                report(
                    work.period,
                    entry.status,
                    episode=episode.id,
                    chars=entry.chars_after,
                )
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
        code = (
            error.code if isinstance(error, MnemosynedError) else type(error).__name__
        )
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
        record_failure(
            self._store,
            LogEntry(
                cycle=self._cycle,
                created_at=self._clock.now(),
                session="",
                source=None,
                trigger=self._trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=work.standing,
                summarizer="",  # nobody wrote anything
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - work.started,
                chars_before=period.chars,
                chars_after=0,
                level=period.level,
            ),
        )
        self.reports.append(report(period, GroupStatus.FAILED, error=code))


def folding(found: Foldable, level: Level) -> list[Period]:
    """The periods of these summaries, however few a period has: it is over, and no more come."""
    reopened = frozenset(found.standing.values())
    return periods(found.children, to_level=level, minimum=1, reopened=reopened)


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


def at_once(
    memories: Sequence[MemoryRecord], summarizer: Summarizer
) -> Sequence[MemoryRecord]:
    """Summaries of a period, shortened part by part as `FoldRun` does until all can be read."""
    while _chars(memories) > CHARS_MAX:  # ends, as each round shrinks them
        shorter = [
            _shorter(part[0], summarizer.summarize(part)) for part in _parts(memories)
        ]
        if _chars(shorter) > _chars(memories) * SHRINK_MIN:
            break
        memories = shorter
    return memories


def as_memory(episode: Episode) -> MemoryRecord:
    """A summary as the summarizers read it: its keywords are words of the level below."""
    return MemoryRecord(
        id=episode.id,
        content=episode.content.replace(f"\n{KEYWORDS}", "\n"),
        created_at=episode.covers_from,
        session=episode.session,
        source=episode.source,
    )


def _parts(memories: Sequence[MemoryRecord]) -> list[Sequence[MemoryRecord]]:
    """Runs of memories that are summarized at once."""
    sizes = [len(memory.content) for memory in memories]
    return [memories[begin:end] for begin, end in parts(sizes, chars_max=CHARS_MAX)]


def _shorter(first: MemoryRecord, summary: Summary) -> MemoryRecord:
    """The summary of a part, read in its place; by the id of its own first memory.

    An id that several parts shared would make them one memory for whoever reads them by id.
    """
    return replace(first, content=summary.text)


def _chars(memories: Sequence[MemoryRecord]) -> int:
    return sum(len(memory.content) for memory in memories)
