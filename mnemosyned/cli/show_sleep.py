"""Sleep cycles and the consolidation log as the shell client shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from mnemosyned.domain.consolidation import (
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
)
from mnemosyned.domain.instants import in_zone
from mnemosyned.terminal import (
    counted,
    cut,
    level_name,
    span,
    table,
    when,
    width,
    wrapped,
)
from mnemosyned.verbs.sleep import Logged

GROUPS_SHOWN_MAX = 12
LOG_LIMIT_MAX = 1_000
OF_AN_UNDO = (GroupStatus.UNDONE, GroupStatus.KEPT)


def cycle(report: CycleReport) -> str:
    """The report or plan of a cycle, group by group."""
    if report.status is CycleStatus.NOTHING_TO_DO:
        return (
            "nothing to do: no memory is old enough and neither pinned nor held back by an undo "
            "(--force ignores age and undo)"
        )
    if _is_undo(report):
        return _undone(report)
    lines = [_planned(report) if report.dry_run else _done(report), _groups(report)]
    if not report.dry_run:
        limit = min(len(report.groups), LOG_LIMIT_MAX)
        lines.append(f"every group: mnem log --cycle {report.cycle} --limit {limit}")
    if report.evicted:
        lines.append(f"to take it back: mnem undo {report.cycle}")
    if report.problem:
        problem = f"it ended early; what is shown is done. {report.problem}"
        lines.append(click.style(problem, fg="red"))
    return "\n".join(lines)


def _is_undo(report: CycleReport) -> bool:
    """Whether a report is of an undo: a cycle that is only planned has no id yet."""
    planned_undo = report.dry_run and bool(report.cycle)
    return planned_undo or any(group.status in OF_AN_UNDO for group in report.groups)


def _groups(report: CycleReport) -> str:
    """The table of groups, or of their sources where they are many."""
    many = len(report.groups) > GROUPS_SHOWN_MAX
    rows = _by_source(report) if many else _by_group(report)
    names = "session source into covers groups items chars".split()
    if not report.dry_run:
        names += ["after", "status"]
    return table(names, [row[: len(names)] for row in rows])


def _undone(report: CycleReport) -> str:
    """The report or plan of an undo, with the reasons for what could not return."""
    if report.dry_run:
        back = sum(group.items for group in report.groups)
        head = f"cycle {report.cycle}: would put back {counted(back, 'memory')}"
    else:
        back = report.restored
        head = f"cycle {report.cycle} undone: {counted(back, 'memory')} back in working memory"
    lines = [head + _left_alone(report), *_undo_problems(report)]
    if back and report.held_until:
        stay = "would stay" if report.dry_run else "stay"
        lines.append(
            f"they {stay} until {when(report.held_until)}, then a cycle takes what is old enough; "
            "--keep-hours says how long, mnem pin ID keeps one for good"
        )
    return "\n".join(lines)


def _left_alone(report: CycleReport) -> str:
    """The number of groups that an undo left as they were; empty for none."""
    kept = sum(group.status is GroupStatus.KEPT for group in report.groups)
    if not kept:
        return ""
    alone = "as it is" if report.dry_run else "as it was"
    return f"; {counted(kept, 'group')} left {alone if kept == 1 else 'as before'}"


def _undo_problems(report: CycleReport) -> Iterator[str]:
    """Reasons why groups could not return, each once."""
    problems = Counter(
        f"{group.session}, {group.source or '-'}: {group.error}"
        for group in report.groups
        if group.error
    )
    shown = problems.most_common(GROUPS_SHOWN_MAX)
    for problem, times in shown:
        yield f"   {problem}" + (f" ({times} groups)" if times > 1 else "")
    if hidden := problems.total() - sum(times for _, times in shown):
        yield f"   … and {counted(hidden, 'more group')}"


def _planned(report: CycleReport) -> str:
    groups = [group for group in report.groups if not group.level]
    items = sum(group.items for group in groups)
    head = f"would consolidate {counted(items, 'memory')} in {counted(len(groups), 'group')}"
    if len(report.groups) > len(groups):
        head += f" and write {_periods(report)}"
    if report.model_s is not None:
        head += f"; the model would write for about {span(report.model_s)}"
    if waiting := report.candidates - items:
        head += f"; {waiting:,} would wait for the next cycle (sleep.cycle_tokens)"
    return head


def _done(report: CycleReport) -> str:
    head = (
        f"{report.status.value} in {report.duration_s:.2f} s: "
        f"{counted(report.evicted, 'memory')} became {counted(report.promoted, 'episode')}, "
        f"{report.chars_before:,} characters became "
        f"{report.chars_after:,}"
    )
    if report.folded:
        head += f"; {_periods(report)} written"
    if report.remaining and not report.failed:
        head += f"; {report.remaining:,} wait for the next cycle"
    if report.failed:
        failed = counted(report.failed, "group")
        head += click.style(f"; {failed} failed and will be tried again", fg="red")
    if fallbacks := sum(bool(group.fallback_reason) for group in report.groups):
        head += f"; {fallbacks} by the fallback (mnem log says why)"
    return head


def _periods(report: CycleReport) -> str:
    """Numbers of days, weeks and months: `6 days, 1 week`."""
    written: Counter[int] = Counter()
    for group in report.groups:
        written[group.level] += 1 if report.dry_run else len(group.episodes)
    return ", ".join(
        counted(written[level], level_name(level)) for level in sorted(written) if level
    )


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
    first = in_zone(min(group.covers_from for group in groups), None)
    last = in_zone(max(group.covers_until for group in groups), None)
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%m-%d %H:%M}"
    return (
        cut(groups[0].session if not groups[0].level else "(all)", 20),
        cut(groups[0].source or "", 14),
        _into(groups),
        f"{when(first)} to {until}",
        len(groups),
        sum(group.items for group in groups),
        _size(groups),
        f"{sum(group.chars_after for group in groups):,}",
        _status(groups[0].status),
    )


def _size(groups: list[GroupReport]) -> str:
    """Characters; of summaries that are not written yet, about how many."""
    chars = f"{sum(group.chars_before for group in groups):,}"
    planned = groups[0].level and groups[0].status is GroupStatus.PLANNED
    return f"about {chars}" if planned else chars


def logged(result: Logged) -> str:
    """Rows of the consolidation log."""
    if not result.rows:
        return ""
    rows = [
        [
            row.episode or "",
            cut(row.session if not row.level else "(all)", 16),
            cut(row.source or "", 12),
            "undone" if row.undone_at else _status(row.status),
            level_name(row.level) if row.level else str(row.items_consolidated),
            row.summarizer if row.summarizer != row.status else "",
        ]
        for row in result.rows
    ]
    headers = ["id", "session", "source", "status", "items", "by"]
    shown = [headers, *rows]
    columns = [
        max(len(click.unstyle(row[i])) for row in shown) for i in range(len(headers))
    ]
    room = max(20, width() - sum(columns) - 2 * len(columns))
    for cells, row in zip(rows, result.rows, strict=True):
        cells.append(cut(row.error or row.summary_preview, room) or _gone(row))
    return "\n".join(
        [*_by_cycle(result, table([*headers, "summary"], rows)), *_fallbacks(result)]
    )


def on_logged(result: Logged) -> str:
    """A remark on an empty log."""
    none = "no row: nothing was consolidated yet, or nothing of this session or cycle"
    return "" if result.rows else none


def _gone(row: LogEntry) -> str:
    """The note on a row without a summary, whose originals were forgotten or restored."""
    return (
        "" if row.undone_at else click.style("(forgotten or restored since)", dim=True)
    )


def _by_cycle(result: Logged, text: str) -> Iterator[str]:
    """The table's lines, and over the rows of each cycle its id, time and trigger."""
    lines = text.splitlines()
    yield from lines[:2]
    cycle = ""
    for line, row in zip(lines[2:], result.rows, strict=True):
        if row.cycle != cycle:
            cycle = row.cycle
            about = f"cycle {cycle}  {when(row.created_at)}  {row.trigger}"
            yield click.style(about, dim=True)
        yield line


def _fallbacks(result: Logged) -> list[str]:
    """Reasons why rules wrote in place of the model, each once."""
    reasons = Counter(row.fallback_reason for row in result.rows if row.fallback_reason)
    return [
        wrapped(f"{count} by the fallback: {reason}")
        for reason, count in reasons.most_common()
    ]


def _status(status: str) -> str:
    return (
        click.style(status, fg="red") if status == GroupStatus.FAILED else str(status)
    )


def _into(groups: list[GroupReport]) -> str:
    """The day, week or month that is written, or that an episode goes into; or how many."""
    periods = {group.period for group in groups}
    if len(periods) == 1:
        return groups[0].period
    return f"{len(periods)} {level_name(max(groups[0].level, 1))}s"
