"""What the shell client shows people: tables and lines, cut to the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import click

from mnemosyned.domain.consolidation import CycleReport, CycleStatus, GroupReport, GroupStatus
from mnemosyned.domain.memory import Acknowledged, Detail, DetailKind, Episode, Memory, Tier
from mnemosyned.domain.ports import EmbedderState, Standing, SummarizerState
from mnemosyned.domain.recall import Hit
from mnemosyned.verbs import Expanded, Forgotten, Got, Logged, Recalled, Stats

WIDTH_MAX = 120
GROUPS_SHOWN_MAX = 12
LINE_CHARS = 400


def width() -> int:
    """How many columns there are to fill."""
    return min(shutil.get_terminal_size((100, 24)).columns, WIDTH_MAX)


def render(result: object) -> str:
    """A result in words."""
    return _RENDERERS[type(result)](result)


def _acknowledged(result: Acknowledged) -> str:
    notes = [] if result.stored else ["already known"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return result.id + click.style("".join(f"  {note}" for note in notes), dim=True)


def _recalled(result: Recalled) -> str:
    shown = [_hit(number, hit) for number, hit in enumerate(result.hits, 1)] or ["nothing found"]
    if result.note:
        shown.append(click.style(result.note, dim=True))
    return "\n\n".join(shown)


def _hit(number: int, hit: Hit) -> str:
    where = "  ".join(part for part in (hit.session, hit.source or "", hit.role) if part)
    head = click.style(f"{number}. {_when(hit.created_at)}  {hit.tier.value}  {where}", bold=True)
    lines = [head, click.style(f"   {hit.id}", dim=True)]
    if hit.tier is not Tier.EPISODIC or not hit.lines:
        lines.append(_wrapped(hit.snippet))
        return "\n".join([*lines, *_notes(hit)])
    for line in hit.lines:
        who = f"{line.role}: " if line.role else ""
        stamp = "" if len(hit.summary_of) == 1 else f"{_when(line.created_at)}  "
        lines.append(_wrapped(f"{stamp}{who}“{_cut(line.content, LINE_CHARS)}”"))
    if len(hit.summary_of) > 1:
        more = f"   one of {len(hit.summary_of)} originals: mnem expand {hit.id}"
        if len(hit.lines) > 1:
            more = more.replace("one of", f"{len(hit.lines)} of")
        lines.append(click.style(more, dim=True))
    return "\n".join([*lines, *_notes(hit)])


def _notes(hit: Hit) -> list[str]:
    """How often the same stands elsewhere, and what the score is made of."""
    notes = []
    if hit.duplicates:
        notes.append(f"   and {hit.duplicates} more that say the same")
    if hit.explanation is not None:
        parts = "  ".join(f"{name} {part:+.2f}" for name, part in hit.explanation.items())
        notes.append(f"   score {hit.score:.2f} = {parts}")
    return [click.style(note, dim=True) for note in notes]


def _got(result: Got) -> str:
    if result.memory:
        return _memory(result.memory)
    return _episode(result.episode) if result.episode else ""


def _memory(memory: Memory) -> str:
    rows = [
        ("id", memory.id),
        ("tier", memory.tier.value),
        ("when", _when(memory.created_at)),
        ("session", memory.session),
        ("source", memory.source or ""),
        ("role", memory.role),
        ("importance", f"{memory.importance:g}"),
        ("pinned", "yes" if memory.pinned else ""),
        ("metadata", str(dict(memory.metadata)) if memory.metadata else ""),
        ("episode", memory.episode or ""),
    ]
    return f"{_pairs(rows)}\n\n{memory.content}"


def _episode(episode: Episode) -> str:
    rows = [
        ("id", episode.id),
        ("tier", episode.tier.value),
        ("covers", f"{_when(episode.covers_from)} to {_when(episode.covers_until)}"),
        ("session", episode.session),
        ("source", episode.source or ""),
        ("originals", str(episode.item_count)),
        ("summarizer", episode.summarizer),
    ]
    return f"{_pairs(rows)}\n\n{episode.content}{_details(episode.details)}"


def _details(details: Iterable[Detail]) -> str:
    """A line for each kind, its values once and in order."""
    values: dict[DetailKind, dict[str, None]] = {kind: {} for kind in DetailKind}
    for detail in details:
        values[detail.kind][detail.value] = None
    if not any(values.values()):
        return ""
    indent = " " * 15
    lines = [
        textwrap.fill(
            "; ".join(_cut(value, LINE_CHARS) for value in found),
            width(),
            initial_indent=f"   {kind.replace('_', ' '):<12}",
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for kind, found in values.items()
        if found
    ]
    return "\n\n" + "\n".join([click.style("Exact details:", bold=True), *lines])


def _expanded(result: Expanded) -> str:
    lines = [_episode(result.episode), "", click.style("Originals, word for word:", bold=True)]
    for memory in result.originals:
        who = f"  {memory.role}" if memory.role else ""
        stamp = click.style(f"{_when(memory.created_at)}{who}  {memory.id}", dim=True)
        lines.append(f"{stamp}\n{_indented(memory.content)}")
    return "\n".join(lines)


def _cycle(report: CycleReport) -> str:
    if report.status is CycleStatus.NOTHING_TO_DO:
        return "nothing to do: no memory is old enough (--force ignores the age)"
    if report.dry_run:
        head = f"would consolidate {report.candidates} memories in {len(report.groups)} groups"
    else:
        head = (
            f"{report.status.value} in {report.duration_s:.2f} s: {report.evicted} memories became "
            f"{report.promoted} episodes, {report.chars_before:,} characters became "
            f"{report.chars_after:,}"
        )
        if report.failed:
            head += click.style(
                f"; {report.failed} groups failed and stay in working memory", fg="red"
            )
        if fallbacks := sum(bool(group.fallback_reason) for group in report.groups):
            head += f"; {fallbacks} by the fallback (mnem log says why)"
    rows = _by_group(report) if len(report.groups) <= GROUPS_SHOWN_MAX else _by_source(report)
    headers = ("session", "source", "covers", "groups", "items", "status", "chars", "after")
    more = ""
    if len(report.groups) > GROUPS_SHOWN_MAX and report.cycle:
        more = f"\nevery group: mnem log --cycle {report.cycle} --limit {len(report.groups)}"
    return f"{head}\n{_table(headers, rows)}{more}"


def _by_group(report: CycleReport) -> list[tuple[object, ...]]:
    return [_cycle_row([group]) for group in report.groups]


def _by_source(report: CycleReport) -> list[tuple[object, ...]]:
    """A row for each source and outcome: a week has too many groups to read."""
    together: dict[tuple[str, str | None, str], list[GroupReport]] = {}
    for group in report.groups:
        together.setdefault((group.session, group.source, group.status), []).append(group)
    return [_cycle_row(groups) for groups in together.values()]


def _cycle_row(groups: list[GroupReport]) -> tuple[object, ...]:
    first = min(group.covers_from for group in groups).astimezone()
    last = max(group.covers_until for group in groups).astimezone()
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%m-%d %H:%M}"
    after = sum(group.chars_after for group in groups)
    return (
        _cut(groups[0].session, 20),
        _cut(groups[0].source or "", 14),
        f"{first:%Y-%m-%d %H:%M} to {until}",
        len(groups),
        sum(group.items for group in groups),
        _status(groups[0].status),
        f"{sum(group.chars_before for group in groups):,}",
        "" if groups[0].status is GroupStatus.PLANNED else f"{after:,}",
    )


def _logged(result: Logged) -> str:
    if not result.rows:
        return "the log is empty: nothing was consolidated yet"
    rows = [
        [
            _when(row.created_at),
            _cut(row.session, 16),
            _cut(row.source or "", 12),
            row.trigger,
            _status(row.status),
            str(row.items_consolidated),
            row.summarizer if row.summarizer != row.status else "",
        ]
        for row in result.rows
    ]
    headers = ["when", "session", "source", "trigger", "status", "items", "by"]
    columns = [max(len(click.unstyle(row[i])) for row in [*rows, headers]) for i in range(7)]
    room = max(20, width() - sum(columns) - 2 * len(columns))
    for cells, row in zip(rows, result.rows, strict=True):
        cells.append(_cut(row.error or row.summary_preview, room))
    return "\n".join([_table([*headers, "summary"], rows), *_fallbacks(result)])


def _fallbacks(result: Logged) -> list[str]:
    """Why the model did not write what it should have, each reason once."""
    reasons = Counter(row.fallback_reason for row in result.rows if row.fallback_reason)
    return [
        _wrapped(f"{count} by the fallback: {reason}") for reason, count in reasons.most_common()
    ]


def _forgotten(result: Forgotten) -> str:
    return (
        f"forgotten: {result.memories} memories; episodes removed {result.episodes_removed}, "
        f"rewritten {result.episodes_rewritten}"
    )


def _stats(stats: Stats) -> str:
    tiers = _table(
        ("tier", "memories", "characters", "oldest"),
        [
            (tier.value, f"{total.count:,}", f"{total.characters:,}", _when(total.oldest))
            for tier, total in stats.tiers.items()
        ],
    )
    sleep = stats.sleep
    last = _when(sleep.last_cycle) or "never"
    coming = _when(sleep.next_cycle) or "not scheduled (auto_sleep is off)"
    rows = [
        ("database", f"{stats.database} ({stats.bytes_on_disk / 1e6:.1f} MB on disk)"),
        ("working cap", f"{stats.wm_max:,} memories"),
        ("sleep", f"{sleep.schedule}{', running now' if sleep.running else ''}"),
        ("last cycle", last),
        ("next cycle", coming),
        ("due", f"{sleep.due:,} memories are old enough"),
        ("summarizer", f"{stats.summarizer.name}: {stats.summarizer.reason}"),
        ("summaries", _summaries(stats.summarizer)),
        ("embedder", _embedder(stats)),
        ("daemon", f"{stats.version}, process {stats.pid}, up {_span(stats.uptime_s)}"),
        ("schema", str(stats.schema_version)),
    ]
    return f"{tiers}\n\n{_pairs(rows)}"


def _summaries(standing: Standing) -> str:
    """How the model did since the start; nothing where there is none."""
    if standing.state is SummarizerState.RULES:
        return ""
    return (
        f"{standing.accepted:,} by the model ({standing.retried:,} asked twice), "
        f"{standing.rejected:,} of its own refused, {standing.fallbacks:,} by the fallback"
    )


def _embedder(stats: Stats) -> str:
    """Whether recall goes by meaning too, and for how much of the memory."""
    standing = stats.embedder
    if standing.state is EmbedderState.OFF:
        return "none: recall goes by words alone (embedding.model_path names a model)"
    if standing.state is not EmbedderState.READY:
        reason = f": {standing.reason}" if standing.reason else ""
        return f"{standing.name} is {standing.state.value}{reason}; recall goes by words alone"
    total = sum(stats.tiers[tier].count for tier in (Tier.WORKING, Tier.ARCHIVE))
    parts = [f"{standing.name}: {standing.embedded:,} of {total:,} memories embedded"]
    if standing.searched < standing.embedded:
        parts.append(f"the newest {standing.searched:,} found without a word in common")
    if standing.failed:
        parts.append(f"{standing.failed:,} that it could not read")
    if standing.missed:
        parts.append(f"{standing.missed:,} questions answered by words alone")
    return ", ".join(parts)


def _table(headers: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    # Loaded here: most answers are no tables.
    from tabulate import tabulate  # noqa: PLC0415

    return tabulate(list(rows), headers=list(headers), tablefmt="simple", disable_numparse=True)


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(
        f"{click.style(f'{key:<12}', dim=True)}{value}" for key, value in rows if value
    )


def _status(status: str) -> str:
    return click.style(status, fg="red") if status == GroupStatus.FAILED else str(status)


def _when(moment: datetime | None) -> str:
    """Local time, to the minute."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _cut(text: str, room: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1] + "…"


def _wrapped(text: str) -> str:
    indent = " " * 3
    return textwrap.fill(
        text, width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines() or [""])


_RENDERERS: dict[type, Callable[[Any], str]] = {
    Acknowledged: _acknowledged,
    Recalled: _recalled,
    Got: _got,
    Expanded: _expanded,
    CycleReport: _cycle,
    Logged: _logged,
    Forgotten: _forgotten,
    Stats: _stats,
}
