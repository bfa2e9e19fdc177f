"""The state of the daemon as the shell shows it."""

from __future__ import annotations

import click

from mnemosyned.cli.answers.database import BY_THE_SERVER, on_disk
from mnemosyned.cli.answers.table import table
from mnemosyned.cli.show.retention import REMEDY
from mnemosyned.cli.show.watch import status_line
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.statuses import (
    EmbedderState,
    SummarizerState,
    SummarizerStatus,
)
from mnemosyned.terminal import (
    counted,
    pairs,
    span,
    when,
)
from mnemosyned.verbs.status import SleepStatus, Stats


def stats(stats: Stats) -> str:
    """Counts, sizes, cycles and the summarizer."""
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
    size = f" ({known})" if (known := on_disk(stats)) else ""
    rows = [
        ("database", f"{stats.database}{size}"),
        ("today", counted(stats.today, "memory")),
        ("working cap", counted(stats.wm_max, "memory")),
        ("sleep", f"{sleep.schedule}{_running(sleep)}"),
        ("waits for", sleep.waits_for),
        ("last cycle", last),
        ("next cycle", "" if sleep.paused_until else coming),
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
        ("backups", _backups(stats)),
        ("restart", _restart(stats)),
        ("watching", status_line(stats.watched)),
        (
            "forgotten",
            "words are still to be purged from the file" if stats.purge_due else "",
        ),
        ("recoverable", _recoverable(stats)),
        *(("problem", click.style(problem, fg="red")) for problem in stats.problems),
        *(("warning", click.style(warning, fg="red")) for warning in stats.warnings),
    ]
    return f"{tiers}\n\n{pairs(rows)}"


def _recoverable(stats: Stats) -> str:
    """Forgotten memories that can be put back."""
    kept = stats.recoverable
    if not kept.memories:
        return ""
    memories = counted(kept.memories, "forgotten memory")
    return f"{memories}, the first for good at {when(kept.final_at)}"


def _restart(stats: Stats) -> str:
    """Settings that were changed and wait for a restart."""
    keys = ", ".join(stats.restart_needed)
    return f"needed for {keys}: mnem restart" if keys else ""


def _backups(stats: Stats) -> str:
    """Number and age of the dated backups, and when the next one is due."""
    if stats.on_server:
        return BY_THE_SERVER
    backup = stats.backup
    if not backup.count and not backup.scheduled:
        return "none: mnem backup makes one; set backup.dir for one each day"
    last = f", the last of {when(backup.last)}" if backup.last else ""
    due = f"; next {when(backup.next)}" if backup.next else "; none scheduled"
    return f"{counted(backup.count, 'backup')} in {backup.folder}{last}{due}"


def _running(sleep: SleepStatus) -> str:
    if sleep.progress:
        return f", running now: {sleep.progress.done:,} of {sleep.progress.total:,} memories"
    if sleep.running:
        return ", running now"
    return f", paused until {when(sleep.paused_until)}" if sleep.paused_until else ""


def _summaries(status: SummarizerStatus) -> str:
    """Counts of the model's work since the start; empty without a model."""
    if status.state is SummarizerState.RULES:
        return ""
    counts = (
        f"{status.accepted:,} by the model ({status.retried:,} asked twice), "
        f"{status.rejected:,} of its own refused, {status.fallbacks:,} by rule instead"
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
