"""Results of forget, restore, prune and backup in words."""

from __future__ import annotations

from collections.abc import Iterator

from mnemosyned.cli.output.memories import preview_lines
from mnemosyned.cli.output.show import RENDERERS, Renderer
from mnemosyned.cli.output.terminal import count_of, duration_text, local_time
from mnemosyned.verbs.retention import BackedUp, Forgotten, Pruned, Restored

REMEDY = "If the date is right: mnem archive prune --believe-clock"
REWRITTEN_BYTES_PER_S = 100e6
SHOWN_IDS = 5
SLOW_REWRITE_BYTES = 200e6
"""Size from which the time to rewrite the file is mentioned."""


def forget_text(result: Forgotten) -> str:
    """Return the result of a forget, or of its dry run, as text with its consequences."""
    archived = f" ({result.archived:,} archived)" if result.archived else ""
    gone = [
        f"{count_of(count, noun)}{note}"
        for count, noun, note in (
            (result.memories, "memory", archived),
            (result.learnings, "learning", ""),
        )
        if count
    ]
    summaries = [
        f"{count_of(count, 'summary')} {change}"
        for count, change in (
            (result.episodes_removed, "removed"),
            (result.episodes_rewritten, "rewritten"),
        )
        if count
    ]
    verb = "would forget" if result.dry_run else "forgot"
    head = "nothing to forget: no memory matches"
    if gone:
        head = "; ".join([f"{verb} {' and '.join(gone)}", *summaries])
    return "\n".join([head, *preview_lines(result), *_forget_notes(result)])


def _forget_notes(result: Forgotten) -> Iterator[str]:
    """Yield sentences on the consequences of a forget, or of its dry run."""
    if result.dry_run and result.learnings:
        yield "mnem learnings shows what was learned"
    if result.pruned_losing_summary:
        losing = count_of(result.pruned_losing_summary, "pruned original")
        their = "its" if result.pruned_losing_summary == 1 else "their"
        yield (
            f"{losing} would lose {their} part of the summary; only {their} exact values stay"
        )
    if result.dry_run and result.file_bytes >= SLOW_REWRITE_BYTES:
        seconds = duration_text(result.file_bytes / REWRITTEN_BYTES_PER_S)
        yield (
            f"the file ({result.file_bytes / 1e6:,.0f} MB) is then rewritten: writes wait "
            f"about {seconds}"
        )
    if ids := result.in_force_again:
        more = f" and {len(ids) - SHOWN_IDS:,} more" if len(ids) > SHOWN_IDS else ""
        holds = "would hold" if result.dry_run else "holds"
        yield f"what it superseded {holds} again: {', '.join(ids[:SHOWN_IDS])}{more}"
    pruned = result.memories - result.recoverable if result.final_at else 0
    if result.final_at and result.call:
        part = f"{result.recoverable:,} of them" if pruned else "all of it"
        yield (
            f"mnem restore {result.call} puts {part} back until {local_time(result.final_at)}"
        )
    if pruned:
        yield (
            f"{count_of(pruned, 'pruned original')} among them: nothing is kept of it, and it is "
            "deleted for good at once"
        )
    if result.reason:
        yield f"not finished: {result.reason}"
    elif not (result.final_at or result.complete) and result.purge_in_s is None:
        yield (
            "another program reads the database: until it is done, and the daemon has slept or "
            "stopped after that, the words can still be read in the database's files"
        )
    elif not (result.final_at or result.complete):
        seconds = duration_text(max(1.0, result.purge_in_s or 0))
        yield (
            f"the words leave the database's files in about {seconds}: "
            "a purge takes them out, and the last one was a moment ago"
        )
    if result.backups and (result.memories or result.learnings):
        yield "the text may still be in:"
        yield from (f"   {copy}" for copy in result.backups)


def _backup_text(result: BackedUp) -> str:
    """Return path, size and counts of a backup, and the faults that it shares with the database."""
    whole = (
        f"{result.file}: {result.bytes / 1e6:,.1f} MB, {count_of(result.memories, 'memory')}, "
        f"{count_of(result.episodes, 'summary')}; written and verified"
    )
    faults = [
        f"the database has a fault, and so has the copy: {fault}; mnem doctor says more"
        for fault in result.problems
    ]
    return "\n".join([whole, *faults])


def _restore_text(result: Restored) -> str:
    """Return as text which memories returned to working memory, and how their summary changed."""
    if not result.episode:
        return f"{count_of(result.memories, 'memory')} back in working memory"
    change = "was rewritten without it"
    if result.episode_removed:
        change = "had no other original and was removed"
    return f"{result.id} is back in working memory, pinned; episode {result.episode} {change}"


def _prune_text(result: Pruned) -> str:
    """Return the result of a prune, or of its dry run, with any doubt about the clock."""
    doubt = f"\n{result.doubt} {REMEDY}" if result.doubt else ""
    if not result.memories:
        return (
            "nothing to prune: the archive is within --keep-days and --characters-max, or archive.keep_days "
            f"and archive.characters_max (unset, they keep everything){doubt}"
        )
    verb = "would prune" if result.dry_run else "pruned"
    originals = count_of(result.memories, "original")
    more = "; call again for the rest" if result.more else ""
    return (
        f"{verb}: the words of {originals}, {result.characters:,} characters, "
        f"from {local_time(result.oldest)} to {local_time(result.newest)}{more}{doubt}"
    )


RENDERERS |= {
    Forgotten: Renderer(
        forget_text, is_nothing=lambda result: not (result.memories or result.learnings)
    ),
    BackedUp: Renderer(_backup_text),
    Restored: Renderer(_restore_text),
    Pruned: Renderer(_prune_text),
}
