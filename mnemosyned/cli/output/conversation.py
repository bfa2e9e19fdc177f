"""Contexts, shortened conversations and learnings in words."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from mnemosyned.cli.output.terminal import (
    LINE_CHARS,
    counted,
    cut,
    indented,
    table,
    when,
    wrapped,
)
from mnemosyned.verbs.conversation import (
    Assembled,
    EditedLearning,
    Learned,
    LearningList,
    RemovedLearning,
    Shortened,
)


def learned(result: Learned) -> str:
    """The id of a new learning."""
    return result.learning.id


def on_learned(result: Learned) -> str:
    """The new learning, and the ids of those it replaces."""
    head = f"{result.learning.kind.value}: {result.learning.text}"
    return "\n".join([head, *(f"   replaces {id}" for id in result.superseded)])


def learnings(result: LearningList) -> str:
    """The learnings, each with its kind, session, source and id."""
    lines = []
    for learning in result.learnings:
        origin = (learning.kind.value, learning.session, learning.source or "")
        where = "  ".join(filter(None, origin))
        head = f"{when(learning.created_at)}  {where}  {learning.id}"
        lines.append(click.style(head, dim=True))
        lines.append(wrapped(learning.text))
        if learning.memory:
            lines.append(click.style(f"   said in {learning.memory}", dim=True))
        if learning.superseded_by:
            note = f"   superseded by {learning.superseded_by}"
            lines.append(click.style(note, dim=True))
    return "\n".join(lines)


def on_learnings(result: LearningList) -> str:
    """A remark on an empty list."""
    return "" if result.learnings else "no learning matches"


def edited(result: EditedLearning) -> str:
    """The id of a learning that was changed."""
    return f"{result.id} was changed"


def removed(result: RemovedLearning) -> str:
    """The id of a learning that was deleted."""
    return f"{result.id} was removed"


def on_purge(result: EditedLearning | RemovedLearning) -> str:
    """A remark on words that are not purged from the file yet."""
    return f"not finished: {result.note}" if result.note else ""


def assembled(result: Assembled) -> str:
    """A context, and the tokens of each part."""
    parts = result.tokens
    names = (
        "system",
        "memory",
        "learnings",
        "summaries",
        "history",
        "new_message",
        "tools",
    )
    rows = [(name.replace("_", " "), f"{getattr(parts, name):,}") for name in names]
    head = f"{result.total:,} of {parts.budget:,} tokens, by {parts.counter}"
    kept = counted(len(result.kept), "message")
    counts = f"{kept} kept, {len(result.dropped):,} left out"
    shown = (
        [click.style("system", bold=True), indented(result.system)]
        if result.system
        else []
    )
    return "\n".join(
        [head, counts, table(("part", "tokens"), rows), "", *shown, *_messages(result)]
    )


def shortened(result: Shortened) -> str:
    """A shortened conversation, and the ids of the words taken out."""
    if not result.changed:
        return (
            f"nothing to do: {result.tokens_before:,} tokens of {result.limit:,}, by "
            f"{result.counter} (--force shortens it anyway)"
        )
    head = (
        f"{result.tokens_before:,} tokens became {result.tokens_after:,} of {result.limit:,}, by "
        f"{result.counter}; {counted(len(result.archived), 'message')} remembered"
    )
    if result.over_budget:
        head += click.style("; what cannot be left out exceeds the limit", fg="red")
    lines = [head]
    if result.fallback_reason:
        lines.append(wrapped(f"by rule: {result.fallback_reason}"))
    lines += [
        click.style(f"   their words: mnem expand {id}", dim=True)
        for id in result.expand
    ]
    return "\n".join([*lines, "", *_messages(result)])


def _messages(result: Assembled | Shortened) -> Iterator[str]:
    """The messages of a conversation, each cut to one paragraph."""
    for message in result.messages:
        content = message.get("content")
        words = (
            content
            if isinstance(content, str)
            else msgspec.json.encode(message).decode()
        )
        yield click.style(str(message.get("role", "")), bold=True)
        yield wrapped(cut(words, LINE_CHARS))
