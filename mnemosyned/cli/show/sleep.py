"""Sleep cycles and the consolidation log as the shell client shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from mnemosyned.cli.answers.table import table
from mnemosyned.domain.ids import made_at
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.sleep.cycles import (
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
)
from mnemosyned.terminal import (
    counted,
    cut,
    level_name,
    span,
    when,
    wrapped,
)
from mnemosyned.verbs.sleep import Logged

GROUPS_SHOWN_MAX = 12
LOG_LIMIT_MAX = 1_000
ALL_SESSIONS = "(all)"
"""In place of the session of a day, week or month."""
WHOLE_SHARE = 0.995
"""Share of a model's words from which a summary counts as its own."""
OF_AN_UNDO = (GroupStatus.UNDONE, GroupStatus.KEPT)


def cycle(report: CycleReport) -> str:
    """The report or plan of a cycle, group by group."""
    if report.status is CycleStatus.NOTHING_TO_DO:
        return (
            "nothing to do: every memory is too new, pinned or held back after an undo "
            "(--force ignores age and undo)"
        )
    if report.status is CycleStatus.PAUSED:
        return _paused(report)
    if report.status is CycleStatus.NOT_RUNNING:
        return f"no sleep cycle is running; {report.problem}".removesuffix("; ")
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


def _paused(report: CycleReport) -> str:
    if report.held_until is None:
        return "not paused: cycles start by themselves again"
    return (
        f"no cycle starts by itself until {when(report.held_until)}; "
        "mnem sleep --pause-minutes 0 ends the pause"
    )


def _is_undo(report: CycleReport) -> bool:
    """Whether a report is of an undo: a cycle that is only planned has no id yet."""
    planned_undo = report.dry_run and bool(report.cycle)
    return planned_undo or any(group.status in OF_AN_UNDO for group in report.groups)


def _groups(report: CycleReport) -> str:
    """The table of groups, or of their sources where they are many."""
    many = len(report.groups) > GROUPS_SHOWN_MAX
    together = _by_source(report) if many else [[group] for group in report.groups]
    names = "session source into covers groups items chars".split()
    if not report.dry_run:
        names += ["after", "status"]
    rows = [_cycle_row(groups)[: len(names)] for groups in together]
    return table(names, rows, optional=("covers", "groups", "after", "source"))


def _undone(report: CycleReport) -> str:
    """The report or plan of an undo, with the reasons for what could not return."""
    if report.dry_run:
        groups = [each for each in report.groups if each.status is not GroupStatus.KEPT]
        back = sum(group.items for group in groups)
        chars = sum(group.chars_before for group in groups)
        began = made_at(report.cycle)
        head = f"cycle {report.cycle}{f' of {when(began)}' if began else ''}: would put back "
        head += f"{counted(back, 'memory')} of {counted(len(groups), 'group')}, {chars:,} characters"
        stay = "would stay"
    else:
        back = report.restored
        head = f"cycle {report.cycle} undone: {counted(back, 'memory')} back in working memory"
        stay = "stay"
    lines = [head + _left_alone(report), *_undo_problems(report)]
    if back and report.held_until:
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
    hidden = problems.total()
    for problem, times in problems.most_common(GROUPS_SHOWN_MAX):
        hidden -= times
        many = f" ({times} groups)" if times > 1 else ""
        yield f"   {problem}{many}"
    if hidden:
        yield f"   … and {counted(hidden, 'more group')}"


def _planned(report: CycleReport) -> str:
    groups = [group for group in report.groups if not group.level]
    items = sum(group.items for group in groups)
    memories, into = counted(items, "memory"), counted(len(groups), "group")
    head = f"would consolidate {memories} in {into}"
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
    if report.rolled_up:
        head += f"; {_periods(report)} written"
    if report.remaining and not report.failed:
        wait = "waits" if report.remaining == 1 else "wait"
        head += f"; {report.remaining:,} {wait} for the next cycle"
    if report.failed:
        failed = counted(report.failed, "group")
        head += click.style(f"; {failed} failed and will be tried again", fg="red")
    if fallbacks := sum(bool(group.fallback_reason) for group in report.groups):
        summaries = counted(fallbacks, "summary")
        head += f"; {summaries} written by rule because the model failed (mnem log says why)"
    return head


def _periods(report: CycleReport) -> str:
    """Numbers of days, weeks and months: `6 days, 1 week`."""
    written: Counter[int] = Counter()
    for group in report.groups:
        written[group.level] += 1 if report.dry_run else len(group.episodes)
    del written[0]
    levels = sorted(written)
    return ", ".join(counted(written[level], level_name(level)) for level in levels)


def _by_source(report: CycleReport) -> list[list[GroupReport]]:
    """The groups of each source and outcome: a week has too many groups to read."""
    together: dict[tuple[int, str, str | None, str], list[GroupReport]] = {}
    for group in report.groups:
        key = (group.level, group.session, group.source, group.status)
        together.setdefault(key, []).append(group)
    return list(together.values())


def _cycle_row(groups: list[GroupReport]) -> tuple[object, ...]:
    kind = groups[0]
    first = in_zone(min(group.covers_from for group in groups), None)
    last = in_zone(max(group.covers_until for group in groups), None)
    until = "%H:%M" if last.date() == first.date() else "%m-%d %H:%M"
    chars_after = sum(group.chars_after for group in groups)
    return (
        ALL_SESSIONS if kind.level else cut(kind.session, 20),
        cut(kind.source or "", 14),
        _into(groups),
        f"{when(first)} to {last:{until}}",
        len(groups),
        sum(group.items for group in groups),
        _size(groups),
        f"{chars_after:,}",
        _status(kind.status),
    )


def _size(groups: list[GroupReport]) -> str:
    """Characters; of summaries that are not written yet, about how many."""
    chars = f"{sum(group.chars_before for group in groups):,}"
    planned = groups[0].level and groups[0].status is GroupStatus.PLANNED
    return f"about {chars}" if planned else chars


def logged(result: Logged, first: int = 1) -> str:
    """Rows of the consolidation log, numbered."""
    if not result.rows:
        return ""
    headers = ["no.", "id", "session", "source", "status", "items", "by", "summary"]
    rows = [
        [str(number), *_log_cells(entry), _log_summary(entry)]
        for number, entry in enumerate(result.rows, first)
    ]
    text = table(headers, rows, optional=("by", "items", "id"), room={"summary": 24})
    return "\n".join([*_by_cycle(result, text), *_fallbacks(result)])


def _log_summary(entry: LogEntry) -> str:
    return " ".join((entry.error or entry.summary_preview).split()) or _gone(entry)


def _log_cells(entry: LogEntry) -> list[str]:
    """The cells of a row of the log, up to its summary."""
    cells = [
        entry.episode or "",
        cut(entry.session, 16),
        cut(entry.source or "", 12),
        _status(entry.status),
        str(entry.items_consolidated),
        _writer(entry),
    ]
    if entry.level:
        cells[1] = ALL_SESSIONS
        cells[4] = level_name(entry.level)
    if entry.undone_at:
        cells[3] = "undone"
    return cells


def _writer(row: LogEntry) -> str:
    """Who wrote a summary, and how much of it where rules wrote the rest."""
    if row.summarizer == row.status:  # nothing was written
        return ""
    if row.model_share is None or row.model_share > WHOLE_SHARE:
        return row.summarizer
    return f"{row.summarizer} ({row.model_share:.0%})"


def on_logged(result: Logged) -> str:
    """A remark on an empty log."""
    none = (
        "no entries: nothing was consolidated yet, or nothing of this session or cycle"
    )
    return "" if result.rows else none


def _gone(row: LogEntry) -> str:
    """The note on a row without a summary, whose originals were forgotten or restored."""
    return (
        "" if row.undone_at else click.style("(forgotten or restored since)", dim=True)
    )


def _by_cycle(result: Logged, text: str) -> Iterator[str]:
    """The table's lines, and over the rows of each cycle its id, time and trigger."""
    lines = text.splitlines()
    if len(lines) != len(result.rows) + 2:  # blocks, where a table does not fit
        yield from lines
        return
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
        wrapped(f"{counted(count, 'summary')} written by rule: {reason}")
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
