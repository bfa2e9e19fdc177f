"""Roll-ups: episodes become days, days become weeks, weeks become months, once they are over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from mnemosyned.domain.consolidation import (
    VERBATIM,
    GroupReport,
    GroupStatus,
    LogEntry,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, SummarizerFailed
from mnemosyned.domain.memory import Episode, MemoryRecord, new_id
from mnemosyned.domain.ports.models import Summarizer, SummarizerState, Summary
from mnemosyned.domain.ports.rollups import PendingRollups, Rollup
from mnemosyned.domain.rollup import (
    Level,
    Period,
    begin_of,
    closed_before,
    parts,
    periods,
)
from mnemosyned.logs import logger
from mnemosyned.sleep.consolidate import record_failure
from mnemosyned.sleep.context import CycleContext

ROLLUP_MAX = 20_000
"""Summaries read at once; a longer backlog is rolled up in several rounds."""
ROUNDS_MAX = 1_000
CHARS_MAX = 24_000
"""Characters summarized at once; a longer period is summarized part by part, then the parts."""
SHRINK_MIN = 0.9
"""A further round of shortening must bring the text below this share of its length."""
PARALLEL_CHARS = 4_000_000
"""Characters of long periods shortened in parallel at a time, by all worker processes."""
GROUP_CHARS = 2_000
"""Characters that count as one ordinary group when worker processes are sized."""
SEPARATOR = "\n\n"
UPPER_LEVELS = (Level.DAY, Level.WEEK, Level.MONTH)

log = logger()


@dataclass(frozen=True, slots=True)
class _Work:
    """A period whose summaries were read, to be summarized."""

    period: Period
    existing: str | None
    """The id of the summary to rewrite; None when the period has none yet."""
    members: Sequence[Episode]
    started: float


_Part: TypeAlias = tuple[tuple[_Work, MemoryRecord], Sequence[MemoryRecord]]
"""A part of a long period, by the period and the part's first memory."""
_Reading: TypeAlias = tuple[_Work, list[MemoryRecord]]
"""A period with the texts to summarize: its summaries, or shortened versions of them."""


class RollupRun:
    """Rolls up the periods of one cycle, the lowest level first, and records their outcomes."""

    def __init__(self, context: CycleContext) -> None:
        self.reports: list[GroupReport] = []
        self._context = context
        self._store = context.store
        self._summarizer = context.summarizer
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
        long: list[_Reading] = []
        works = self._works(due, existing, long)
        short = sum(period.chars for period in due if period.chars <= CHARS_MAX)
        self._summarize(works, chars=short)
        rules = self._summarizer.status().state is SummarizerState.RULES
        # A model's work on a period is committed before it begins the next.
        sizes = [_chars(memories) for _, memories in long]
        for begin, end in parts(sizes, chars_max=PARALLEL_CHARS if rules else 0):
            shortened = self._shortened(long[begin:end])
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
        existing: Mapping[datetime, str],
        long: list[_Reading],
    ) -> Iterator[_Reading]:
        """Read the periods to summarize; those that are too long at once go to `long`."""
        for period in due:
            if not self._context.may_continue():
                return
            started = time.monotonic()
            members = self._store.memories.summaries(period.ids)
            work = _Work(period, existing.get(period.begins), members, started)
            memories = [as_memory(member) for member in members]
            if len(members) < self._context.policy.rollup.minimum:
                words = SEPARATOR.join(member.content for member in members)
                self._finish(work, Summary(text=words, summarizer=VERBATIM))
            elif _chars(memories) > CHARS_MAX:
                long.append((work, memories))
            else:
                self._context.meter.count_read(memories)
                yield work, memories

    def _shortened(self, long: Sequence[_Reading]) -> Iterator[_Reading]:
        """Shorten long periods, the parts of all of them in parallel, until each can be read."""
        while long:
            shorter = self._shorten_parts(long)
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
                    self._context.meter.count_read(after)
                    yield work, after
            long = again

    def _shorten_parts(
        self, long: Sequence[_Reading]
    ) -> dict[datetime, list[MemoryRecord]]:
        """Return the summaries of each period's parts in their order, by its beginning."""
        asked = [
            ((work, part[0]), part)
            for work, memories in long
            for part in _parts(memories)
        ]
        shortened = self._summarize_parts(asked)
        order: dict[datetime, list[str]] = {work.period.begins: [] for work, _ in long}
        for (work, first), _ in asked:
            order[work.period.begins].append(first.id)
        return {
            begins: [shortened[begins][id] for id in ids]
            for begins, ids in order.items()
            if len(shortened.get(begins, ())) == len(ids)
        }

    def _summarize_parts(
        self, asked: Sequence[_Part]
    ) -> dict[datetime, dict[str, MemoryRecord]]:
        """Summarize parts; by their period's beginning and first memory, without failed periods."""
        found: dict[datetime, dict[str, MemoryRecord]] = {
            work.period.begins: {} for (work, _), _ in asked
        }
        expected = sum(_chars(memories) for _, memories in asked) // GROUP_CHARS
        each = self._summarizer.summarize_each(
            self._while_permitted(asked), expected=expected
        )
        for (work, first), outcome in each:
            begins = work.period.begins
            if isinstance(outcome, Exception):
                if found.pop(begins, None) is not None:
                    self._fail(work, outcome)
            elif begins in found:
                found[begins][first.id] = _shorter(first, outcome)
        return found

    def _while_permitted(self, asked: Iterable[_Part]) -> Iterator[_Part]:
        for key, memories in asked:
            if not self._context.may_continue():
                return
            self._context.meter.count_read(memories)
            yield key, memories

    def _finish(self, work: _Work, summary: Summary) -> None:
        episode = self._episode(work, summary)
        entry = LogEntry(
            cycle=self._context.id,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=self._context.trigger,
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
            self._store.rollups.write(
                Rollup(episode, entry, members, summary.index_terms)
            )
        except MnemosynedError as error:
            self._fail(work, error)
        else:
            self.reports.append(
                period_report(
                    work.period,
                    entry.status,
                    episode=episode.id,
                    chars=entry.chars_after,
                )
            )

    def _episode(self, work: _Work, summary: Summary) -> Episode:
        now = self._context.clock.now()
        members, period = work.members, work.period
        sessions = {member.session for member in members}
        sources = {member.source for member in members}
        return Episode(
            id=work.existing or new_id(now),
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
            "rollup_failed",
            cycle=self._context.id,
            period=period.key,
            items=len(period.members),
            error=code,
            exc_info=error,
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


def shortened(
    memories: Sequence[MemoryRecord], summarizer: Summarizer
) -> Sequence[MemoryRecord]:
    """Shorten the summaries of a period part by part until they can be read at once."""
    while _chars(memories) > CHARS_MAX:  # ends, as each round shrinks them
        shorter = [
            _shorter(part[0], summarizer.summarize(part)) for part in _parts(memories)
        ]
        if _chars(shorter) > _chars(memories) * SHRINK_MIN:
            break
        memories = shorter
    return memories


def as_memory(episode: Episode) -> MemoryRecord:
    """Return a summary as summarizers read it."""
    return MemoryRecord(
        id=episode.id,
        content=episode.content,
        created_at=episode.covers_from,
        session=episode.session,
        source=episode.source,
    )


def _parts(memories: Sequence[MemoryRecord]) -> list[Sequence[MemoryRecord]]:
    """Split memories into runs that are summarized at once."""
    sizes = [len(memory.content) for memory in memories]
    return [memories[begin:end] for begin, end in parts(sizes, chars_max=CHARS_MAX)]


def _shorter(first: MemoryRecord, summary: Summary) -> MemoryRecord:
    """Return the summary of a part as a memory, with the id of the part's first memory.

    Parts that shared an id would count as one memory wherever memories are read by id.
    """
    return replace(first, content=summary.text)


def _chars(memories: Sequence[MemoryRecord]) -> int:
    return sum(len(memory.content) for memory in memories)
