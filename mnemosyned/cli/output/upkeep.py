"""Sleep cycles, the consolidation log, the daemon's status and its watched folders in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import click

from mnemosyned.agents.hooks.withheld import describe_own_settings
from mnemosyned.cli.output.retention import REMEDY
from mnemosyned.cli.output.show import CELLS, RENDERERS, Renderer, injections_row
from mnemosyned.cli.output.terminal import (
    count_of,
    cut_text,
    duration_text,
    key_lines,
    local_time,
    table,
    wrap_paragraph,
)
from mnemosyned.ids import made_at
from mnemosyned.instants import in_zone
from mnemosyned.memory import values
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
)
from mnemosyned.verbs.listing import LEVELS
from mnemosyned.verbs.upkeep import Logged, Stats, Undone, WatchedFolder, Watching

GROUPS_SHOWN_MAX = 12
ALL_SESSIONS = "(all)"
"""The session cell of a day, week or month."""
WHOLE_SHARE = 0.995
"""Minimum share of a model's words in a summary that counts as the model's own."""
OF_AN_UNDO = (GroupStatus.UNDONE, GroupStatus.KEPT)


def _cycle_text(report: CycleReport) -> str:
    """Return the report of a sleep cycle, dry run, undo or pause: counts, then its groups."""
    if report.status is CycleStatus.NOTHING_TO_DO:
        return (
            "nothing is old enough to summarize, or it is pinned or held back after an undo "
            "(--force ignores age and undo)"
        )
    if report.status is CycleStatus.PAUSED:
        if report.held_until is None:
            return "not paused: cycles start by themselves again"
        return (
            f"no cycle starts by itself until {local_time(report.held_until)}; "
            "mnem sleep --pause-minutes 0 ends the pause"
        )
    if report.status is CycleStatus.NOT_RUNNING:
        return f"no sleep cycle is running; {report.problem}".removesuffix("; ")
    # A cycle that is only planned has no id yet.
    is_planned_undo = report.dry_run and report.cycle
    if is_planned_undo or any(group.status in OF_AN_UNDO for group in report.groups):
        return _undo_text(report)
    head = _plan_summary(report) if report.dry_run else _cycle_summary(report)
    lines = [head, _groups_table(report)]
    if not report.dry_run:
        limit = min(len(report.groups), 1_000)
        lines.append(f"every group: mnem log --cycle {report.cycle} --limit {limit}")
    if report.evicted:
        lines.append(f"to undo this: mnem undo {report.cycle}")
    if report.problem:
        problem = f"it ended early; what is shown is done. {report.problem}"
        lines.append(click.style(problem, fg="red"))
    return "\n".join(lines)


def _groups_table(report: CycleReport) -> str:
    """Return a table of a cycle's groups; if there are many, with a row for each session and status."""
    many = len(report.groups) > GROUPS_SHOWN_MAX
    together: dict[object, list[GroupReport]] = {}
    for number, group in enumerate(report.groups):
        source = (group.level, group.session, group.source, group.status)
        together.setdefault(source if many else number, []).append(group)
    names = "session source into covers groups memories chars".split()
    if not report.dry_run:
        names += ["after", "status"]
    rows: list[tuple[object, ...]] = []
    for groups in together.values():
        kind = groups[0]
        periods = {group.period for group in groups}
        into = kind.period
        if len(periods) > 1:
            into = f"{len(periods)} {LEVELS[max(kind.level, 1)]}s"
        first = in_zone(min(group.covers_from for group in groups), None)
        last = in_zone(max(group.covers_until for group in groups), None)
        until = "%H:%M" if last.date() == first.date() else "%m-%d %H:%M"
        chars = f"{sum(group.chars_before for group in groups):,}"
        if kind.level and kind.status is GroupStatus.PLANNED:
            chars = f"about {chars}"  # their summaries are not written yet
        count = sum(group.items for group in groups)
        row = (
            ALL_SESSIONS if kind.level else cut_text(kind.session, 20),
            *(cut_text(kind.source or "", 14), into),
            f"{local_time(first)} to {last:{until}}",
            *(len(groups), count_of(count, "summary") if kind.level else count, chars),
            f"{sum(group.chars_after for group in groups):,}",
            _status_cell(kind.status),
        )
        rows.append(row[: len(names)])
    return table(names, rows, optional=("covers", "groups", "after", "source"))


def _undone_text(result: Undone, start: int = 1) -> str:
    """Return the report of an undo or its dry run, or a table of actions that can be undone."""
    if result.is_list:
        rows = [
            (
                *(number, action.kind.value, local_time(action.at), action.memories),
                *(local_time(action.until), cut_text(action.sample, 60), action.id),
            )
            for number, action in enumerate(result, start)
        ]
        names = "# action when memories until sample id".split()
        return table(names, rows, optional=("id", "until"), room={"sample": 20})
    (action,) = result.actions
    if result.cycle:
        return _undo_text(result.cycle)
    verb = "would undo" if result.dry_run else "undone:"
    what = f"the {action.kind.value} of {local_time(action.at)}"
    lines = [f"{verb} {what}: {count_of(result.memories, 'memory')}"]
    if action.sample:
        lines.append(wrap_paragraph(f"for example: {action.sample}"))
    lines += [
        f"{count_of(len(ids), 'memory')} left as before: {reason}"
        for reason, ids in result.left.items()
    ]
    return "\n".join([*lines, *filter(None, [result.note])])


def _undo_text(report: CycleReport) -> str:
    """Return the report of an undo of a sleep cycle, or of its dry run."""
    if report.dry_run:
        groups = [each for each in report.groups if each.status is not GroupStatus.KEPT]
        back = sum(group.items for group in groups)
        chars = sum(group.chars_before for group in groups)
        began = made_at(report.cycle)
        head = f"cycle {report.cycle}{f' of {local_time(began)}' if began else ''}: would put back "
        head += f"{count_of(back, 'memory')} of {count_of(len(groups), 'group')}, {chars:,} characters"
        stay = "would stay"
    else:
        back = report.restored
        head = f"cycle {report.cycle} undone: {count_of(back, 'memory')} back in working memory"
        stay = "stay"
    if kept := sum(group.status is GroupStatus.KEPT for group in report.groups):
        alone = "as it is" if report.dry_run else "as it was"
        head += (
            f"; {count_of(kept, 'group')} left {alone if kept == 1 else 'as before'}"
        )
    lines = [head, *_undo_problems(report)]
    if back and report.held_until:
        lines.append(
            f"they {stay} until {local_time(report.held_until)}, then a cycle takes what is old enough; "
            "--keep-hours says how long, mnem pin ID keeps one for good"
        )
    return "\n".join(lines)


def _undo_problems(report: CycleReport) -> Iterator[str]:
    """Yield why groups were not undone, the most frequent first, and the number of others."""
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
        yield f"   … and {count_of(hidden, 'more group')}"


def _plan_summary(report: CycleReport) -> str:
    """Return the first line of a cycle's dry run: what would be consolidated, what waits."""
    groups = [group for group in report.groups if not group.level]
    items = sum(group.items for group in groups)
    memories, into = count_of(items, "memory"), count_of(len(groups), "group")
    head = f"would consolidate {memories} in {into}"
    if len(report.groups) > len(groups):
        head += f" and write {_period_counts(report)}"
    if report.model_s is not None:
        head += f"; the model would write for about {duration_text(report.model_s)}"
    if waiting := report.candidates - items:
        head += f"; {waiting:,} would wait for the next cycle (sleep.cycle_tokens)"
    return head


def _cycle_summary(report: CycleReport) -> str:
    """Return the first line of a finished cycle: counts, duration, and what failed."""
    head = (
        f"{report.status.value} in {report.duration_s:.2f} s: "
        f"{count_of(report.evicted, 'memory')} became {count_of(report.promoted, 'episode')}, "
        f"{report.chars_before:,} characters became {report.chars_after:,}"
    )
    if report.rolled_up:
        head += f"; {_period_counts(report)} written"
    if report.remaining and not report.failed:
        wait = "waits" if report.remaining == 1 else "wait"
        head += f"; {report.remaining:,} {wait} for the next cycle"
    if report.failed:
        failed = count_of(report.failed, "group")
        head += click.style(f"; {failed} failed and will be tried again", fg="red")
    if fallbacks := sum(bool(group.fallback_reason) for group in report.groups):
        summaries = count_of(fallbacks, "summary")
        head += (
            f"; {summaries} written without the model, which failed (mnem log says why)"
        )
    return head


def _period_counts(report: CycleReport) -> str:
    """Return the numbers of a cycle's day, week and month summaries: `6 days, 1 week`."""
    written: Counter[int] = Counter()
    for group in report.groups:
        written[group.level] += 1 if report.dry_run else len(group.episodes)
    del written[0]
    levels = sorted(written)
    return ", ".join(count_of(written[level], LEVELS[level]) for level in levels)


def _log_text(result: Logged, first: int) -> str:
    """Return the log as a table numbered from `first`, cycle by cycle, and reasons of fallbacks."""
    if not result.rows:
        return ""
    headers = ["#", "id", "session", "source", "status", "memories", "by", "summary"]
    rows = [
        [str(number), *_log_row(entry)]
        for number, entry in enumerate(result.rows, first)
    ]
    text = table(headers, rows, optional=("by", "memories", "id"), room={"summary": 24})
    reasons = Counter(row.fallback_reason for row in result.rows if row.fallback_reason)
    fallbacks = [
        wrap_paragraph(
            f"{count_of(count, 'summary')} written without the model: {reason}"
        )
        for reason, count in reasons.most_common()
    ]
    lines = text.splitlines()
    if len(lines) == len(result.rows) + 2:  # else blocks, as a table does not fit
        rows_of_cycles = groupby(
            zip(lines[2:], result.rows, strict=True), lambda pair: pair[1].cycle
        )
        lines = lines[:2]
        for cycle, pairs in rows_of_cycles:
            shown, entries = zip(*pairs, strict=True)
            begun = f"{local_time(entries[0].created_at)}  {entries[0].trigger}"
            lines += [click.style(f"cycle {cycle}  {begun}", dim=True), *shown]
    return "\n".join([*lines, *fallbacks])


def _log_row(entry: LogEntry) -> list[str]:
    """Return the cells of a log entry; a failed one has its error in place of the summary."""
    summary = " ".join((entry.error or entry.summary_preview).split())
    if not (summary or entry.undone_at):
        summary = click.style("(since forgotten or restored)", dim=True)
    writer = "" if entry.summarizer == entry.status else entry.summarizer
    if writer and entry.model_share is not None and entry.model_share <= WHOLE_SHARE:
        writer = f"{writer} ({entry.model_share:.0%})"
    cells = [
        entry.episode or "",
        cut_text(entry.session, 16),
        cut_text(entry.source or "", 12),
        _status_cell(entry.status),
        str(entry.items_consolidated),
        writer,
        summary,
    ]
    if entry.level:
        cells[1] = ALL_SESSIONS
        cells[4] = LEVELS[entry.level]
    if entry.undone_at:
        cells[3] = "undone"
    return cells


def _status_cell(status: str) -> str:
    """Return the status of a group of memories in a sleep cycle, in red if it failed."""
    return (
        click.style(status, fg="red") if status == GroupStatus.FAILED else str(status)
    )


WORDS_TO_PURGE = "words are still to be purged from the file"


def size_on_disk(stats: Stats) -> str:
    """Return the size of the database as `3.2 MB on disk`; empty if it is unknown."""
    return f"{stats.bytes_on_disk / 1e6:.1f} MB on disk" if stats.bytes_on_disk else ""


def _watching_text(watching: Watching) -> str:
    """Return a table of the folders that the daemon watches, with their problems below."""
    if not watching.folders:
        return "nothing is watched; mnem watch DIR watches a folder"
    rows = [
        (
            *(folder.path, f"{folder.files:,}", f"{folder.stored:,}"),
            *(local_time(folder.read_at) or "not yet", folder.added_by),
        )
        for folder in watching.folders
    ]
    lines = [table(("folder", "files", "memories", "last read", "by"), rows)]
    lines += [
        click.style(f"{folder.path}: {folder.problem}", fg="red")
        for folder in watching.folders
        if folder.problem
    ]
    if watching.waiting:
        lines.append("reading goes on")
    return "\n".join(lines)


def _watching_row(folders: list[WatchedFolder]) -> str:
    """Return the counts of watched folders, files, memories and problems; empty without folders."""
    if not folders:
        return ""
    files = sum(folder.files for folder in folders)
    stored = sum(folder.stored for folder in folders)
    problems = sum(bool(folder.problem) for folder in folders)
    counts = (
        f"{count_of(len(folders), 'folder')}, {count_of(files, 'file')}, "
        f"{count_of(stored, 'memory')}"
    )
    if not problems:
        return counts
    return f"{counts}; {count_of(problems, 'problem')}, see mnem watch --list"


def _status_text(stats: Stats) -> str:
    """Return the daemon's status: a table of the memory's tiers, then a line for each topic."""
    tiers = table(
        ("tier", "memories", "characters", "oldest"),
        [
            (
                tier.value,
                f"{each.count:,}",
                f"{each.characters:,}",
                local_time(each.oldest),
            )
            for tier, each in stats.tiers.items()
        ],
    )
    sleep = stats.sleep
    activity = ", running now" if sleep.running else ""
    if sleep.progress:
        done, total = sleep.progress.done, sleep.progress.total
        activity = f", running now: {done:,} of {total:,} memories"
    elif sleep.paused_until and not sleep.running:
        activity = f", paused until {local_time(sleep.paused_until)}"
    last = local_time(sleep.last_cycle) or "never"
    coming = local_time(sleep.next_cycle) or "not scheduled (auto_sleep is off)"
    size = f" ({known})" if (known := size_on_disk(stats)) else ""
    changed, uptime = ", ".join(stats.restart_needed), duration_text(stats.uptime_s)
    recoverable = ""
    if stats.recoverable.memories:
        memories = count_of(stats.recoverable.memories, "forgotten memory")
        recoverable = f"{memories}, the first for good at {local_time(stats.recoverable.final_at)}"
    groups = (f"{each.name} ({', '.join(each.scopes)})" for each in stats.groups)
    rows = [
        ("database", f"{stats.database}{size}"),
        ("today", count_of(stats.today, "memory")),
        ("working cap", count_of(stats.wm_max, "memory")),
        ("sleep", f"{sleep.schedule}{activity}"),
        ("waits for", sleep.waits_for),
        ("last cycle", last),
        ("next cycle", "" if sleep.paused_until else coming),
        ("due", f"{count_of(sleep.due, 'memory')} old enough for the next cycle"),
        ("summarizer", f"{stats.summarizer.name}: {stats.summarizer.reason}"),
        ("summaries", _summaries_row(stats.summarizer)),
        ("tokens by", stats.counter),
        ("embedder", _embedder_row(stats)),
        ("clock", stats.clock and f"{stats.clock} Pruning by age waits. {REMEDY}"),
        ("daemon", f"{stats.version}, process {stats.pid}, up {uptime}"),
        ("schema", str(stats.schema_version)),
        ("hooks here", describe_own_settings()),
        ("injections", injections_row(stats.injections)),
        ("backups", backups_row(stats)),
        ("restart", changed and f"needed for {changed}: mnem restart"),
        ("watching", _watching_row(stats.watched)),
        ("groups", ", ".join(groups)),
        ("forgotten", WORDS_TO_PURGE if stats.purge_due else ""),
        ("recoverable", recoverable),
        *(
            ("limit", f"{each.name}: {each.used:,} of {each.limit:,}")
            for each in stats.limits
        ),
        *(("problem", click.style(problem, fg="red")) for problem in stats.problems),
        *(("warning", click.style(warning, fg="red")) for warning in stats.warnings),
    ]
    return f"{tiers}\n\n{key_lines(rows)}"


def backups_row(stats: Stats) -> str:
    """Return the number and times of dated backups in words, or how a backup can be made."""
    if stats.on_server:
        return "those of the server: mnem export writes a copy besides"
    backup = stats.backup
    if not backup.count and not backup.scheduled:
        return "none: mnem backup makes one; set backup.dir for one each day"
    last = f", the last of {local_time(backup.last)}" if backup.last else ""
    due = f"; next {local_time(backup.next)}" if backup.next else "; none scheduled"
    return f"{count_of(backup.count, 'backup')} in {backup.folder}{last}{due}"


def _summaries_row(status: values.SummarizerStatus) -> str:
    """Return how many summaries the model wrote, and how many are extractive; empty without a model."""
    if status.state is values.SummarizerState.RULES:
        return ""
    return (
        f"{status.accepted:,} by the model ({status.retried:,} asked twice), "
        f"{status.rejected:,} of its own refused, {status.fallbacks:,} extractive instead"
    )


def _embedder_row(stats: Stats) -> str:
    """Return the state of the embedding model in words, and how many memories have a vector."""
    status = stats.embedder
    if status.state is values.EmbedderState.OFF:
        return "none: recall goes by words alone (embedding.encoder turns it on)"
    if status.state is not values.EmbedderState.READY:
        reason = f": {status.reason}" if status.reason else ""
        return (
            f"{status.name} is {status.state.value}{reason}; recall goes by words alone"
        )
    total = sum(
        stats.tiers[tier].count for tier in (values.Tier.WORKING, values.Tier.ARCHIVE)
    )
    parts = [f"{status.name}: {status.embedded:,} of {total:,} memories embedded"]
    if status.searched < status.embedded:
        parts.append(f"the newest {status.searched:,} found without a word in common")
    if status.failed:
        parts.append(f"{status.failed:,} that it could not read")
    if status.missed:
        parts.append(f"{status.missed:,} questions answered by words alone")
    return ", ".join(parts)


RENDERERS[CycleReport] = Renderer(
    _cycle_text,
    is_nothing=lambda report: bool(
        report.failed or report.problem or report.status is CycleStatus.NOT_RUNNING
    ),
)
NO_ENTRIES = (
    "no entries: nothing was consolidated yet, or nothing of this session or cycle"
)
RENDERERS[Logged] = Renderer(
    _log_text,
    lambda result: "" if result.rows else NO_ENTRIES,
    lambda result: result.rows,
    is_numbered=True,
)
RENDERERS[Undone] = Renderer(
    _undone_text,
    lambda result: "" if result.actions else "nothing can be undone",
    lambda result: result.actions if result.is_list else None,
    is_nothing=lambda result: not result.actions or bool(result.left),
    is_numbered=True,
)
RENDERERS[Stats] = Renderer(_status_text)
RENDERERS[Watching] = Renderer(_watching_text)
CELLS[values.UndoableAction] = [
    "id",
    lambda action: action.kind.value,
    *("at", "memories", "until", "trigger", "sample"),
]
CELLS[LogEntry] = [
    *"episode cycle created_at session source status".split(),
    *("items_consolidated", "summarizer"),
    lambda entry: entry.error or entry.summary_preview,
]
