"""What the shell shows of contexts, compactions and learnings."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from mnemosyned.terminal import LINE_CHARS, cut, indented, table, when, wrapped
from mnemosyned.verbs.conversation import Assembled, Learned, LearningList, Shortened


def learned(result: Learned) -> str:
    """The id of what was learned."""
    return result.learning.id


def on_learned(result: Learned) -> str:
    """What was learned, and in the place of what."""
    head = f"{result.learning.kind.value}: {result.learning.text}"
    return "\n".join([head, *(f"   in the place of {id}" for id in result.superseded)])


def learnings(result: LearningList) -> str:
    """What holds, with where it was said."""
    lines = []
    for one in result.learnings:
        where = "  ".join(
            part for part in (one.kind.value, one.session, one.source or "") if part
        )
        lines.append(
            click.style(f"{when(one.created_at)}  {where}  {one.id}", dim=True)
        )
        lines.append(wrapped(one.text))
        if one.memory:
            lines.append(click.style(f"   said in {one.memory}", dim=True))
        if one.superseded_by:
            lines.append(click.style(f"   superseded by {one.superseded_by}", dim=True))
    return "\n".join(lines)


def on_learnings(result: LearningList) -> str:
    """What an empty list means, and what is not finished."""
    if result.note:
        return f"not finished: {result.note}"
    return "" if result.learnings else "nothing was learned yet"


def assembled(result: Assembled) -> str:
    """A context with what each part of it costs."""
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
    if result.over_budget:
        head += click.style("; over the budget", fg="red")
    told = f"{len(result.kept):,} messages kept, {len(result.dropped):,} left out"
    shown = (
        [click.style("system", bold=True), indented(result.system)]
        if result.system
        else []
    )
    return "\n".join(
        [head, told, table(("part", "tokens"), rows), "", *shown, *_said(result)]
    )


def shortened(result: Shortened) -> str:
    """A conversation made shorter, and where its words went."""
    if not result.changed:
        return (
            f"nothing to do: {result.tokens_before:,} tokens of {result.limit:,}, by "
            f"{result.counter} (--force does it all the same)"
        )
    head = (
        f"{result.tokens_before:,} tokens became {result.tokens_after:,} of {result.limit:,}, by "
        f"{result.counter}; {len(result.archived):,} messages were remembered"
    )
    if result.over_budget:
        head += click.style("; what must stay is over the limit", fg="red")
    lines = [head]
    if result.fallback_reason:
        lines.append(wrapped(f"by rule: {result.fallback_reason}"))
    lines += [
        click.style(f"   their words: mnem expand {id}", dim=True)
        for id in result.expand
    ]
    return "\n".join([*lines, "", *_said(result)])


def _said(result: Assembled | Shortened) -> Iterator[str]:
    """A conversation's messages, each cut to what tells them apart."""
    for message in result.messages:
        content = message.get("content")
        words = (
            content
            if isinstance(content, str)
            else msgspec.json.encode(message).decode()
        )
        yield click.style(str(message.get("role", "")), bold=True)
        yield wrapped(cut(words, LINE_CHARS))
