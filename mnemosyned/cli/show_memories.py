"""Results as people read them in the shell: tables and lines, cut to the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import click

from mnemosyned.cli.show_conversation import (
    assembled,
    edited,
    learned,
    learnings,
    on_learned,
    on_learnings,
    on_purge,
    removed,
    shortened,
)
from mnemosyned.cli.show_retention import (
    REMEDY,
    backed_up,
    forgotten,
    pinned,
    pruned,
    restored,
)
from mnemosyned.cli.show_sleep import cycle, logged, on_logged
from mnemosyned.domain.cycles import CycleReport
from mnemosyned.domain.memory import (
    Acknowledged,
    Detail,
    DetailKind,
    Episode,
    MemoryRecord,
    Tier,
)
from mnemosyned.domain.search.results import Hit
from mnemosyned.domain.statuses import (
    EmbedderState,
    SummarizerState,
    SummarizerStatus,
)
from mnemosyned.terminal import (
    LINE_CHARS,
    counted,
    cut,
    indented,
    level_name,
    pairs,
    seen,
    span,
    table,
    when,
    width,
    wrapped,
)
from mnemosyned.verbs.conversation import Assembled, Shortened
from mnemosyned.verbs.learnings import (
    EditedLearning,
    Learned,
    LearningList,
    RemovedLearning,
)
from mnemosyned.verbs.memories import Expanded, Got, Recalled
from mnemosyned.verbs.retention import BackedUp, Forgotten, Pinned, Pruned, Restored
from mnemosyned.verbs.sleep import Logged
from mnemosyned.verbs.status import SleepStatus, Stats

SUMMARY_LINES_MAX = 12
"""Lines shown of a summary that answers by itself, such as a day."""


def render(result: object) -> str:
    """A result in words, with nothing in it that steers a terminal but our own styles."""
    return _RENDERERS[type(result)](seen(result))


def remarks(result: object) -> str:
    """Remarks on a result, for standard error; empty if there are none."""
    remark = _REMARKS.get(type(result))
    return remark(result) if remark else ""


def _acknowledged(result: Acknowledged) -> str:
    return result.id


def _on_acknowledged(result: Acknowledged) -> str:
    notes = [] if result.stored else ["already known"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return "; ".join(notes)


def _recalled(result: Recalled) -> str:
    return "\n\n".join(_hit(number, hit) for number, hit in enumerate(result.hits, 1))


def _on_recalled(result: Recalled) -> str:
    return "\n".join(
        filter(None, ["" if result.hits else "nothing found", result.note])
    )


def _hit(number: int, hit: Hit) -> str:
    where = "  ".join(
        part for part in (hit.session, hit.source or "", hit.role) if part
    )
    head = click.style(
        f"{number}. {when(hit.created_at)}  {hit.tier.value}  {where}", bold=True
    )
    lines = [head, click.style(f"   {hit.id}", dim=True)]
    if hit.superseded_at:
        lines.append(f"   superseded {_superseded(hit.superseded_at)}")
    lines += _hit_text(hit)
    lines += [
        click.style(
            wrapped(
                f"before, {when(older.created_at)}: “{cut(older.content, LINE_CHARS)}”"
            ),
            dim=True,
        )
        for older in hit.history
    ]
    return "\n".join([*lines, *_notes(hit)])


def _hit_text(hit: Hit) -> list[str]:
    """Text of a hit: originals that matched, the lines of a summary, or the part that matches."""
    if hit.tier is not Tier.EPISODIC:
        return [wrapped(hit.snippet)]
    if hit.lines:
        return _hit_lines(hit)
    summary = hit.content.split("\n")
    if len(summary) == 1:
        return [wrapped(hit.snippet)]
    shown = [wrapped(cut(line, LINE_CHARS)) for line in summary[:SUMMARY_LINES_MAX]]
    left_out = len(summary) - len(shown)
    more = f"   {left_out} more lines: " if left_out else "   made of others: "
    return [*shown, click.style(f"{more}mnem expand {hit.id} --depth 1", dim=True)]


def _hit_lines(hit: Hit) -> list[str]:
    lines = []
    for line in hit.lines:
        who = f"{line.role}: " if line.role else ""
        stamp = "" if len(hit.summary_of) == 1 else f"{when(line.created_at)}  "
        stamp += "superseded  " if line.superseded_at else ""
        lines.append(wrapped(f"{stamp}{who}“{cut(line.content, LINE_CHARS)}”"))
    if len(hit.summary_of) > 1:
        more = f"   one of {len(hit.summary_of)} originals: mnem expand {hit.id}"
        if len(hit.lines) > 1:
            more = more.replace("one of", f"{len(hit.lines)} of")
        lines.append(click.style(more, dim=True))
    return lines


def _notes(hit: Hit) -> list[str]:
    """Number of duplicates of a hit, and the parts of its score."""
    notes = []
    if hit.duplicates:
        notes.append(f"   and {hit.duplicates} more that say the same")
    if hit.explanation is not None:
        parts = "  ".join(
            f"{name} {part:+.2f}" for name, part in hit.explanation.items()
        )
        notes.append(f"   score {hit.score:.2f} = {parts}")
    return [click.style(note, dim=True) for note in notes]


def _got(result: Got) -> str:
    if result.memory:
        return _memory(result.memory)
    return _episode(result.episode) if result.episode else ""


def _memory(memory: MemoryRecord) -> str:
    rows = [
        ("id", memory.id),
        ("tier", memory.tier.value),
        ("when", when(memory.created_at)),
        ("session", memory.session),
        ("source", memory.source or ""),
        ("role", memory.role),
        ("importance", f"{memory.importance:g}"),
        ("pinned", "yes" if memory.pinned else ""),
        ("metadata", str(dict(memory.metadata)) if memory.metadata else ""),
        ("episode", memory.episode or ""),
        ("valid until", _until(memory.valid_until)),
        ("superseded", _superseded(memory.superseded_at, memory.superseded_by)),
    ]
    return f"{pairs(rows)}\n\n{_words(memory)}"


def _words(memory: MemoryRecord) -> str:
    if memory.pruned_at:
        return click.style(f"(pruned on {when(memory.pruned_at)})", dim=True)
    return memory.content


def _until(moment: datetime | None) -> str:
    over = moment is not None and moment <= datetime.now(UTC)
    return when(moment) + (", so it is not recalled any more" if over else "")


def _superseded(moment: datetime | None, by: str | None = None) -> str:
    return f"on {when(moment)}{f' by {by}' if by else ''}" if moment else ""


def _episode(episode: Episode) -> str:
    rows = [
        ("id", episode.id),
        ("tier", episode.tier.value),
        ("covers", f"{when(episode.covers_from)} to {when(episode.covers_until)}"),
        ("session", episode.session),
        ("source", episode.source or ""),
        ("level", level_name(episode.level) if episode.level else ""),
        ("originals", str(episode.item_count)),
        ("summarizer", episode.summarizer),
    ]
    return f"{pairs(rows)}\n\n{episode.content}{_details(episode.details)}"


def _details(details: Iterable[Detail]) -> str:
    """A line for each kind, its values once and in order."""
    values: dict[DetailKind, dict[str, None]] = {kind: {} for kind in DetailKind}
    for detail in details:
        values[detail.kind][detail.value] = None
    if not any(values.values()):
        return ""
    indent = " " * 15
    lines = [click.style("Exact details:", bold=True)]
    for kind, kind_values in values.items():
        if kind_values:
            line = textwrap.fill(
                "; ".join(cut(value, LINE_CHARS) for value in kind_values),
                width(),
                initial_indent=f"   {kind.replace('_', ' '):<12}",
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines.append(line)
    return "\n\n" + "\n".join(lines)


def _expanded(result: Expanded) -> str:
    lines = [_episode(result.episode), ""]
    if result.summaries:
        lines.append(
            click.style("Made of these; mnem expand goes on from each:", bold=True)
        )
    for summary in result.summaries:
        stamp = (
            f"{when(summary.covers_from)} to {when(summary.covers_until)}  {summary.id}"
        )
        lines.append(f"{click.style(stamp, dim=True)}\n{indented(summary.content)}")
    if result.originals:
        lines.append(click.style("Originals, word for word:", bold=True))
    for memory in result.originals:
        who = f"  {memory.role}" if memory.role else ""
        stamp = click.style(f"{when(memory.created_at)}{who}  {memory.id}", dim=True)
        if memory.superseded_at:
            stamp += f"  superseded {_superseded(memory.superseded_at, memory.superseded_by)}"
        lines.append(f"{stamp}\n{indented(_words(memory))}")
    return "\n".join(lines)


def _stats(stats: Stats) -> str:
    tiers = table(
        ("tier", "memories", "characters", "oldest"),
        [
            (
                tier.value,
                f"{total.count:,}",
                f"{total.characters:,}",
                when(total.oldest),
            )
            for tier, total in stats.tiers.items()
        ],
    )
    sleep = stats.sleep
    last = when(sleep.last_cycle) or "never"
    coming = when(sleep.next_cycle) or "not scheduled (auto_sleep is off)"
    rows = [
        ("database", f"{stats.database} ({stats.bytes_on_disk / 1e6:.1f} MB on disk)"),
        ("working cap", counted(stats.wm_max, "memory")),
        ("sleep", f"{sleep.schedule}{_running(sleep)}"),
        ("waits for", sleep.waits_for),
        ("last cycle", last),
        ("next cycle", coming),
        ("due", f"{counted(sleep.due, 'memory')} old enough for the next cycle"),
        ("summarizer", f"{stats.summarizer.name}: {stats.summarizer.reason}"),
        ("summaries", _summaries(stats.summarizer)),
        ("tokens by", stats.counter),
        ("embedder", _embedder(stats)),
        (
            "clock",
            f"{stats.clock} Pruning by age waits. {REMEDY}" if stats.clock else "",
        ),
        ("daemon", f"{stats.version}, process {stats.pid}, up {span(stats.uptime_s)}"),
        ("schema", str(stats.schema_version)),
        (
            "forgotten",
            "words are still to be purged from the file" if stats.purge_due else "",
        ),
        *(("problem", click.style(problem, fg="red")) for problem in stats.problems),
        *(("warning", click.style(warning, fg="red")) for warning in stats.warnings),
    ]
    return f"{tiers}\n\n{pairs(rows)}"


def _running(sleep: SleepStatus) -> str:
    if sleep.progress:
        return f", running now: {sleep.progress.done:,} of {sleep.progress.total:,} memories"
    return ", running now" if sleep.running else ""


def _summaries(status: SummarizerStatus) -> str:
    """Counts of the model's work since the start; empty without a model."""
    if status.state is SummarizerState.RULES:
        return ""
    counts = (
        f"{status.accepted:,} by the model ({status.retried:,} asked twice), "
        f"{status.rejected:,} of its own refused, {status.fallbacks:,} by the fallback"
    )
    if not status.sentences:
        return counts
    return (
        f"{counts}; a small model: {status.sentences_kept:,} of the {status.sentences:,} "
        "sentences it wrote were kept"
    )


def _embedder(stats: Stats) -> str:
    """State of the embedding model, and the share of memories that have a vector."""
    status = stats.embedder
    if status.state is EmbedderState.OFF:
        return "none: recall goes by words alone (embedding.model_path names a model)"
    if status.state is not EmbedderState.READY:
        reason = f": {status.reason}" if status.reason else ""
        return (
            f"{status.name} is {status.state.value}{reason}; recall goes by words alone"
        )
    total = sum(stats.tiers[tier].count for tier in (Tier.WORKING, Tier.ARCHIVE))
    parts = [f"{status.name}: {status.embedded:,} of {total:,} memories embedded"]
    if status.searched < status.embedded:
        parts.append(f"the newest {status.searched:,} found without a word in common")
    if status.failed:
        parts.append(f"{status.failed:,} that it could not read")
    if status.missed:
        parts.append(f"{status.missed:,} questions answered by words alone")
    return ", ".join(parts)


_REMARKS: dict[type, Callable[[Any], str]] = {
    Acknowledged: _on_acknowledged,
    Recalled: _on_recalled,
    Logged: on_logged,
    Learned: on_learned,
    LearningList: on_learnings,
    EditedLearning: on_purge,
    RemovedLearning: on_purge,
}
_RENDERERS: dict[type, Callable[[Any], str]] = {
    Acknowledged: _acknowledged,
    Recalled: _recalled,
    Got: _got,
    Expanded: _expanded,
    CycleReport: cycle,
    Logged: logged,
    Forgotten: forgotten,
    Pinned: pinned,
    BackedUp: backed_up,
    Restored: restored,
    Pruned: pruned,
    Learned: learned,
    LearningList: learnings,
    EditedLearning: edited,
    RemovedLearning: removed,
    Assembled: assembled,
    Shortened: shortened,
    Stats: _stats,
}
