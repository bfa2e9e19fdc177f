"""What the shell client shows of sleep: cycles, and the consolidation log."""

from __future__ import annotations

from collections import Counter

import click

from mnemosyned.domain.consolidation import CycleReport, CycleStatus, GroupReport, GroupStatus
from mnemosyned.typesetting import cut, level_name, span, table, when, width, wrapped
from mnemosyned.verbs import Logged

GROUPS_SHOWN_MAX = 12


def cycle(report: CycleReport) -> str:
    """What a cycle did, or would do, group by group."""
    if report.status is CycleStatus.NOTHING_TO_DO:
        return "nothing to do: no memory is old enough (--force ignores the age)"
    if report.restored or report.status is CycleStatus.UNDONE:
        head = _undone(report)
    else:
        head = _planned(report) if report.dry_run else _done(report)
    rows = _by_group(report) if len(report.groups) <= GROUPS_SHOWN_MAX else _by_source(report)
    names = "session source into covers groups items status chars after"
    more = ""
    if len(report.groups) > GROUPS_SHOWN_MAX and report.cycle:
        more = f"\nevery group: mnem log --cycle {report.cycle} --limit {len(report.groups)}"
    return f"{head}\n{table(names.split(), rows)}{more}"


def _undone(report: CycleReport) -> str:
    if report.dry_run:
        return f"would put back what is left of {report.candidates:,} memories"
    head = f"undone: {report.restored:,} memories are back in working memory"
    kept = [group for group in report.groups if group.error]
    head += "".join(
        f"\n   {group.session}, {group.source or '-'}: {group.error}"
        for group in kept[:GROUPS_SHOWN_MAX]
    )
    return head


def _planned(report: CycleReport) -> str:
    groups = sum(not group.level for group in report.groups)
    head = f"would consolidate {report.candidates} memories in {groups} groups"
    if folds := len(report.groups) - groups:
        head += f" and fold {folds} days, weeks and months"
    if report.model_s is not None:
        head += f"; the model would write for about {span(report.model_s)}"
    return head


def _done(report: CycleReport) -> str:
    head = (
        f"{report.status.value} in {report.duration_s:.2f} s: {report.evicted} memories became "
        f"{report.promoted} episodes, {report.chars_before:,} characters became "
        f"{report.chars_after:,}"
    )
    if report.folded:
        head += f"; {report.folded} days, weeks and months written"
    if report.remaining and not report.failed:
        head += f"; {report.remaining:,} wait for the next cycle"
    if report.failed:
        head += click.style(f"; {report.failed} groups failed and stay as they were", fg="red")
    if fallbacks := sum(bool(group.fallback_reason) for group in report.groups):
        head += f"; {fallbacks} by the fallback (mnem log says why)"
    return head


def _by_group(report: CycleReport) -> list[tuple[object, ...]]:
    return [_cycle_row([group]) for group in report.groups]


def _by_source(report: CycleReport) -> list[tuple[object, ...]]:
    """A row for each source and outcome: a week has too many groups to read."""
    together: dict[tuple[int, str, str | None, str], list[GroupReport]] = {}
    for group in report.groups:
        key = (group.level, group.session, group.source, group.status)
        together.setdefault(key, []).append(group)
    return [_cycle_row(groups) for groups in together.values()]


def _cycle_row(groups: list[GroupReport]) -> tuple[object, ...]:
    first = min(group.covers_from for group in groups).astimezone()
    last = max(group.covers_until for group in groups).astimezone()
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%m-%d %H:%M}"
    after = sum(group.chars_after for group in groups)
    return (
        cut(groups[0].session, 20),
        cut(groups[0].source or "", 14),
        _into(groups),
        f"{first:%Y-%m-%d %H:%M} to {until}",
        len(groups),
        sum(group.items for group in groups),
        _status(groups[0].status),
        f"{sum(group.chars_before for group in groups):,}",
        "" if groups[0].status is GroupStatus.PLANNED else f"{after:,}",
    )


def logged(result: Logged) -> str:
    """Rows of the consolidation log."""
    if not result.rows:
        return "the log is empty: nothing was consolidated yet"
    rows = [
        [
            when(row.created_at),
            cut(row.session, 16),
            cut(row.source or "", 12),
            row.trigger,
            "undone" if row.undone_at else _status(row.status),
            level_name(row.level) if row.level else str(row.items_consolidated),
            row.summarizer if row.summarizer != row.status else "",
        ]
        for row in result.rows
    ]
    headers = ["when", "session", "source", "trigger", "status", "items", "by"]
    columns = [max(len(click.unstyle(row[i])) for row in [*rows, headers]) for i in range(7)]
    room = max(20, width() - sum(columns) - 2 * len(columns))
    for cells, row in zip(rows, result.rows, strict=True):
        cells.append(cut(row.error or row.summary_preview, room))
    return "\n".join([table([*headers, "summary"], rows), *_fallbacks(result)])


def _fallbacks(result: Logged) -> list[str]:
    """Why the model did not write what it should have, each reason once."""
    reasons = Counter(row.fallback_reason for row in result.rows if row.fallback_reason)
    return [
        wrapped(f"{count} by the fallback: {reason}") for reason, count in reasons.most_common()
    ]


def _status(status: str) -> str:
    return click.style(status, fg="red") if status == GroupStatus.FAILED else str(status)


def _into(groups: list[GroupReport]) -> str:
    """The day, week or month that is written, or that an episode goes into; or how many."""
    periods = {group.period for group in groups}
    if len(periods) == 1:
        return groups[0].period
    return f"{len(periods)} {level_name(max(groups[0].level, 1))}s"
