"""Results of edit, tag, untag, pin and unpin as the shell client shows them."""

from __future__ import annotations

from collections.abc import Iterator

from mnemosyned.terminal import counted, when, wrapped
from mnemosyned.verbs.changes import Edited, Pinned, Tagged
from mnemosyned.verbs.selection import Foreseen


def preview_lines(result: Foreseen) -> Iterator[str]:
    """The memories of a preview, a paragraph each."""
    for line in result.lines:
        who = "  ".join(filter(None, (line.session, line.role)))
        words = line.snippet or "(its words were pruned)"
        yield wrapped(f"{when(line.created_at)}  {who}: {words}")
    if result.further:
        yield f"   … and {result.further:,} more: --dry-run --after {result.lines[-1].id}"


def edited(result: Edited) -> str:
    """The memories that were edited, or would be."""
    if not result.memories:
        return "no memory matches"
    memories = counted(result.memories, "memory")
    if result.dry_run:
        return "\n".join([f"would edit {memories}", *preview_lines(result)])
    if result.id:
        return f"{result.id} is edited" if result.changed else "nothing was changed"
    return f"{result.changed:,} of {memories} edited"


def on_edited(result: Edited) -> str:
    """Remarks on what else became of the memories."""
    notes = []
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    if result.restored:
        notes.append(
            f"{counted(result.restored, 'original')} back in working memory; the next sleep "
            "consolidates where it belongs now"
        )
    if result.kept:
        notes.append(
            f"{counted(result.kept, 'original')} left: its summary is all that pruning left"
        )
    return "\n".join(filter(None, [*notes, result.note]))


def tagged(result: Tagged) -> str:
    """The memories that were tagged or untagged, or would be."""
    tags = ", ".join(result.tags)
    memories = counted(result.memories, "memory")
    if not result.memories:
        return "no memory matches"
    if result.dry_run:
        return "\n".join([f"would change {memories}: {tags}", *preview_lines(result)])
    return f"{memories}: {tags} ({result.changed:,} changed)"


def pinned(result: Pinned) -> str:
    """The memories that are pinned now, or no longer."""
    state = "pinned" if result.pinned else "no longer pinned"
    memories = counted(result.memories, "memory")
    if result.dry_run:
        head = f"would be {state}: {memories}"
        return "\n".join([head, *preview_lines(result)])
    if result.id:
        return f"{result.id} is {state}"
    archived = (
        f"; {counted(result.archived, 'archived memory')} cannot be: only working memories can"
        if result.archived
        else ""
    )
    return f"{memories} {state}{archived}"
