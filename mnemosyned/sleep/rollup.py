"""Roll-ups of episodes into days, weeks and months, and new summaries in place of stale ones."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from mnemosyned import errors, ids, instants
from mnemosyned.logs import logger
from mnemosyned.memory import consolidation, endings, masking, periods
from mnemosyned.memory.engine_ports import RateEvents, Summarizer, Summary
from mnemosyned.memory.forgetting import StaleSummary
from mnemosyned.memory.ports import MemoryStore, PendingRollups, Rollup
from mnemosyned.memory.values import EndedStatement, Episode, MemoryRecord
from mnemosyned.sleep.consolidate import record_failure
from mnemosyned.sleep.context import CycleContext, SummarizerLease
from mnemosyned.summary.rollup import RollupSource, compose_rollup
from mnemosyned.text.details import Detail

ROLLUP_MAX = 20_000
"""Number of summaries read at once; more are rolled up in several rounds."""
ROUNDS_MAX = 1_000
_BRACKETS, _PATH = re.compile(r"[\[\]\n]+"), re.compile(r"[/\\]+$|^.*[/\\](?=[^/\\])")
"""Parts of a project's key, such as "github.com/ann/shop", that its short name leaves out."""
NAMED_SESSIONS_MAX, NAME_CHARS_MAX = 1_000, 80
"""Newest sessions whose projects get distinct short names, and maximum characters of a name."""
UPPER_LEVELS = (periods.Level.DAY, periods.Level.WEEK, periods.Level.MONTH)


class RollupRun:
    """Roll-ups of one cycle, the lowest level first, with a report of each period."""

    def __init__(self, context: CycleContext) -> None:
        """Begin without reports; `context` holds the store, settings and limits of the cycle."""
        self.reports: list[consolidation.GroupReport] = []
        self._context = context
        self._store = context.store
        self._failed: set[datetime] = set()
        """The beginnings of failed periods; the longer periods around them wait with them."""

    def roll_up(self, *, before: datetime) -> None:
        """Roll up all periods that ended by the time `before`, while the cycle may continue.

        A period waits if it ends after the time of the oldest memory that is still to be consolidated.
        """
        levels = list(UPPER_LEVELS)
        with self._store.search.one_snapshot():
            waiting = self._store.sleep.pending(
                consolidation.Selection(before=before), limit=1
            )
            before = min([before, *(memory.created_at for memory in waiting)])
            due, found = self._next_due(levels, before)
        for _ in range(ROUNDS_MAX):
            if not due:
                return
            for period in due:
                if not self._context.may_continue():
                    return
                self._context.yield_to_requests()
                started = time.monotonic()
                with self._store.search.one_snapshot():
                    members = self._store.memories.summaries(period.ids)
                    sources = read_sources(self._store, members, period.level)
                previous = found.existing.get(period.begins)
                try:
                    self._write_period(period, previous, members, sources, started)
                except Exception as error:  # noqa: BLE001 one period must not end the others
                    self._failed.add(period.begins)
                    report = period_report(period, consolidation.GroupStatus.FAILED)
                    report, _ = record_failure(
                        self._context, report, error, started=started, episode=previous
                    )
                    self.reports.append(report)
            if len(found.children) < ROLLUP_MAX:
                levels.pop(0)
            with self._store.search.one_snapshot():
                due, found = self._next_due(levels, before)

    def _next_due(
        self, levels: list[periods.Level], before: datetime
    ) -> tuple[list[periods.Period], PendingRollups]:
        """Return the due periods of the lowest level that has any, with the summaries that were read.

        Levels without due periods are removed from `levels`. A period that contains a failed one is not due.
        """
        while levels:
            level = levels[0]
            found = self._store.rollups.pending(
                to_level=level,
                before=periods.open_from(level, before),
                limit=ROLLUP_MAX,
            )
            failed = {periods.begin_of(level, begins) for begins in self._failed}
            due = [
                period
                for period in rollup_periods(found, level)
                if period.begins not in failed
            ]
            if due:
                return due, found
            levels.pop(0)
        return [], PendingRollups([], {})

    def _write_period(
        self,
        period: periods.Period,
        existing: str | None,
        members: Sequence[Episode],
        sources: Sequence[RollupSource],
        started: float,
    ) -> None:
        """Store the summary of a period, made of `sources`, and add a report.

        `existing` is the id of a summary to replace, or None. Raises `SummarizerFailed` if the sources say
        nothing.
        """
        minimum = self._context.sleep.rollup_min_items
        rolled_up = compose_rollup(
            sources,
            level=period.level,
            minimum=minimum,
            rate_events=self._context.lease.rate_events,
        )
        if not rolled_up.lines:
            raise errors.SummarizerFailed("the summaries of this period say nothing")
        now = self._context.clock.now()
        session, source = _find_common_origin(members)
        episode = Episode(
            id=existing or ids.new_id(now),
            content=rolled_up.text,
            created_at=now,
            session=session,
            source=source,
            level=period.level,
            item_count=sum(member.item_count for member in members),
            covers_from=min(member.covers_from for member in members),
            covers_until=max(member.covers_until for member in members),
            summarizer=consolidation.BY_RULE,
            summary_of=tuple(member.id for member in members),
            period_from=period.begins,
        )
        entry = consolidation.LogEntry(
            cycle=self._context.id,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=self._context.request.trigger,
            status=consolidation.GroupStatus.PROMOTED,
            items_consolidated=0,  # no memory left working memory: the log's sum stays theirs
            episode=episode.id,
            summarizer=episode.summarizer,
            summary_preview=consolidation.log_preview(episode.content),
            duration_s=time.monotonic() - started,
            chars_before=sum(len(member.content) for member in members),
            chars_after=len(episode.content),
            level=episode.level,
        )
        texts = {member.id: member.content for member in members}
        self._store.rollups.write(Rollup(episode, entry, texts, rolled_up.index_terms))
        report = period_report(period, entry.status)
        self.reports.append(
            replace(report, episodes=(episode.id,), chars_after=entry.chars_after)
        )


def rollup_periods(found: PendingRollups, level: periods.Level) -> list[periods.Period]:
    """Group the found summaries into periods of a level; members of a roll-up stay in its period."""
    reopened = {id: begins for begins, id in found.existing.items()}
    return periods.group_into_periods(
        found.children, to_level=level, minimum=1, reopened=reopened
    )


def period_report(
    period: periods.Period, status: consolidation.GroupStatus
) -> consolidation.GroupReport:
    """Return the report of a period, without an episode."""
    return consolidation.GroupReport(
        session="",
        source=None,
        status=status,
        items=len(period.members),
        covers_from=instants.from_calendar_time(period.begins),
        covers_until=instants.from_calendar_time(period.ends),
        chars_before=period.chars,
        level=period.level,
        period=period.key,
    )


def read_sources(
    store: MemoryStore, members: Sequence[Episode], level: periods.Level
) -> list[RollupSource]:
    """Return the sources of a period's summary: one per member, in the order of `members`.

    A source has the text of its member, or none if the member summarizes nothing or newer memories ended
    all its statements. If none would have a text, all have. Only sources of a day name their project.
    """
    projects: Mapping[str, str] = {}
    names: Mapping[str, str] = {}
    with store.search.one_snapshot():
        terms = store.rollups.index_terms([member.id for member in members])
        if level is periods.Level.DAY:
            projects = store.agents.projects_of([member.session for member in members])
            others = store.agents.recent(NAMED_SESSIONS_MAX) if projects else []
            keys = {*projects.values(), *(each.project for each in others)}
            short = {key: _PATH.sub("", key) for key in keys}
            counts = Counter(short.values())
            # All of the key if two have the same last part.
            names = {
                key: _BRACKETS.sub("", key if counts[name] > 1 else name)
                for key, name in short.items()
            }
        has_endings = bool(store.endings.find(limit=1, undone=False))
        silent = {
            member.id
            for member in members
            if member.content in consolidation.SILENT_TEXTS
            or (has_endings and _is_all_ended(store, member))
        }
    if len(silent) == len(members):
        silent = set()
    return [
        RollupSource(
            text="" if member.id in silent else member.content,
            index_terms=terms.get(member.id, ""),
            begins=member.period_from or instants.calendar_time(member.covers_from),
            project=names.get(projects.get(member.session, ""), "")[-NAME_CHARS_MAX:],
        )
        for member in members
    ]


ENDED_ORIGINALS_MAX = 3
"""Summaries with more originals are not checked: newer memories hardly ever end all of their statements."""


def _is_all_ended(store: MemoryStore, summary: Episode) -> bool:
    """Return True if a summary has few originals, and newer memories ended each of their statements."""
    if not 0 < summary.item_count <= ENDED_ORIGINALS_MAX:
        return False
    originals = store.memories.originals(summary.id)
    ended = store.endings.of([each.id for each in originals])
    return bool(ended) and not endings.remove_ended_sentences(originals, ended)


REWRITTEN_MAX = 1_000_000
TRIES_MAX = 1_000
"""How often a summary may change while it is being rewritten, before that is given up."""

log = logger()


def rewrite_stale(
    store: MemoryStore,
    lease: SummarizerLease,
    *,
    minimum: int,
    exclusive: AbstractContextManager[object],
    highest: periods.Level = periods.Level.MONTH,
) -> int:
    """Rewrite stale summaries up to the level `highest`, at most `REWRITTEN_MAX`; return how many.

    A summary is stale after a memory below was forgotten or edited. The lowest level goes first; a day of
    fewer episodes than `minimum` keeps their whole text. `exclusive` is a lock, so that one thread at a time
    rewrites. No model is asked, because callers wait. Raises `BatchChanged` if others keep interfering.
    """
    tries_left = TRIES_MAX
    rewritten = 0
    with exclusive:
        while rewritten < REWRITTEN_MAX:
            stale = store.rollups.next_stale(highest=highest)
            if stale is None:
                break
            try:
                if stale.children:
                    episode, index_terms = _rewrite_rollup(
                        stale, minimum, store, lease.rate_events
                    )
                else:
                    ended = store.endings.of([each.id for each in stale.originals])
                    episode, index_terms = _rewrite_episode(
                        stale, lease.current.rule_based(), ended
                    )
                store.rollups.rewrite(stale.token, episode, index_terms=index_terms)
            except errors.BatchChanged:  # it lost more of its sources: read it again
                tries_left -= 1
                if not tries_left:
                    raise
            else:
                rewritten += 1
    if rewritten:
        log.info("summaries_rewritten", count=rewritten)
    return rewritten


def _rewrite_rollup(
    stale: StaleSummary,
    minimum: int,
    store: MemoryStore,
    rate_events: RateEvents | None,
) -> tuple[Episode, str]:
    """Return a stale day, week or month composed again from its summaries, and its index terms."""
    children, level = stale.children, periods.Level(stale.episode.level)
    session, source = _find_common_origin(children)
    rolled_up = compose_rollup(
        read_sources(store, children, level),
        level=level,
        minimum=minimum,
        rate_events=rate_events,
    )
    episode = replace(
        stale.episode,
        content=rolled_up.text or consolidation.UNSPOKEN,
        summarizer=consolidation.BY_RULE,
        session=session,
        source=source,
        item_count=sum(child.item_count for child in children) or len(children),
        covers_from=min(child.covers_from for child in children),
        covers_until=max(child.covers_until for child in children),
    )
    return episode, rolled_up.index_terms


def _find_common_origin(
    parts: Sequence[Episode | MemoryRecord],
) -> tuple[str, str | None]:
    """Return the session and the source that all of these share, or "" and None where they differ."""
    sessions = {part.session for part in parts}
    sources = {part.source for part in parts}
    return (
        sessions.pop() if len(sessions) == 1 else "",
        sources.pop() if len(sources) == 1 else None,
    )


def _rewrite_episode(
    stale: StaleSummary,
    summarizer: Summarizer,
    ended: Mapping[str, Sequence[EndedStatement]],
) -> tuple[Episode, str]:
    """Return a stale episode summarized again without `ended` statements, and its index terms."""
    originals = stale.originals
    session, source = _find_common_origin(originals)
    # A summary may cover lasting memories that have any text left.
    details = stale.episode.details
    readable = [
        _restore_exact_values(memory, details) for memory in originals if memory.lasting
    ]
    readable = [memory for memory in readable if memory.content]
    readable = endings.remove_ended_sentences(readable, ended) or readable
    summary = _summarize_extractively(readable, stale, summarizer)
    episode = replace(
        stale.episode,
        session=session,
        source=source,
        content=summary.text,
        summarizer=summary.summarizer,
        item_count=len(originals),
        covers_from=min(memory.created_at for memory in originals),
        covers_until=max(memory.created_at for memory in originals),
    )
    return episode, summary.index_terms


def _summarize_extractively(
    memories: Sequence[MemoryRecord], stale: StaleSummary, summarizer: Summarizer
) -> Summary:
    """Return an extractive summary of memories, or their text if that fails; without memories, a fixed text."""
    if not memories:
        pruned = any(original.pruned_at for original in stale.originals)
        return Summary(
            text=consolidation.WORDLESS if pruned else consolidation.UNSPOKEN,
            summarizer=consolidation.VERBATIM,
        )
    readable, _ = masking.mask_memories(memories, known=stale.episode.details)
    text = "\n".join(memory.content for memory in readable)
    verbatim = Summary(text=text, summarizer=consolidation.VERBATIM)
    try:
        summary = summarizer.summarize(readable)
    except errors.SummarizerFailed:
        return verbatim
    return summary if summary.text.strip() else verbatim


def _restore_exact_values(
    memory: MemoryRecord, details: Sequence[Detail]
) -> MemoryRecord:
    """Return the memory; if its text was pruned, its exact values without secrets become the text."""
    if memory.content:
        return memory
    values = (
        detail.value
        for detail in details
        if detail.memory == memory.id and not detail.sensitive
    )
    return replace(memory, content="; ".join(values))
