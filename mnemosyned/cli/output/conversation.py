"""Contexts, shortened conversations, learnings, ended statements, briefings and injections in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
import msgspec

from mnemosyned.cli.output import show
from mnemosyned.cli.output.terminal import (
    LINE_CHARS,
    count_of,
    cut_text,
    indent_lines,
    local_time,
    table,
    wrap_paragraph,
)
from mnemosyned.memory import injections
from mnemosyned.memory.values import Learning, LearningScope
from mnemosyned.text.display import escape_line
from mnemosyned.verbs import conversation


def _learnings_text(result: conversation.LearningList, first: int) -> str:
    """Return each learning with its number, time, kind, scope, session, source, edits, endings and id."""
    edits = {edit.id: edit for edit in result.edits}
    lines = []
    for number, learning in enumerate(result.learnings, first):
        scope = result.scopes.get(learning.id, "")
        if scope is LearningScope.PROJECT:  # a learning of no project applies in all
            scope = result.projects.get(learning.id, LearningScope.EVERYWHERE)
        origin = (learning.kind.value, scope, learning.session, learning.source or "")
        where = "  ".join(filter(None, origin))
        head = f"{number}. {local_time(learning.created_at)}  {where}"
        lines.append(click.style(f"{head}\n   {learning.id}", dim=True))
        lines.append(wrap_paragraph(learning.text))
        if learning.memory:
            lines.append(click.style(f"   said in {learning.memory}", dim=True))
        notes = [learning.superseded_by and f"superseded by {learning.superseded_by}"]
        if edit := edits.get(learning.id):
            notes.append(
                "pinned" if edit.pinned else "dropped" if edit.dropped else "reworded"
            )
        notes += [escape_line(each.note) for each in result.ended.get(learning.id, ())]
        lines += [click.style(f"   {note}", dim=True) for note in notes if note]
    return "\n".join(lines)


def _purge_remark(
    result: conversation.EditedLearning | conversation.RemovedLearning,
) -> str:
    """Return a remark if deleted words are still in the database's files; else empty."""
    return f"not finished: {result.note}" if result.note else ""


def _context_text(result: conversation.Assembled) -> str:
    """Return an assembled context as text: the tokens of each part, then its messages."""
    parts = result.tokens
    names = "system memory learnings summaries history new_message tools".split()
    rows = [(name.replace("_", " "), f"{getattr(parts, name):,}") for name in names]
    head = f"{result.total:,} of {parts.budget:,} tokens, by {parts.counter}"
    kept = count_of(len(result.kept), "message")
    counts = f"{kept} kept, {len(result.dropped):,} left out"
    lines = [head, counts, table(("part", "tokens"), rows), ""]
    if result.system:
        lines += [click.style("system", bold=True), indent_lines(result.system)]
    return "\n".join([*lines, *_message_lines(result)])


def _compact_text(result: conversation.Shortened) -> str:
    """Return a shortened conversation as text: tokens before and after, and its messages."""
    if not result.changed:
        return (
            f"nothing to do: {result.tokens_before:,} tokens of {result.limit:,}, by "
            f"{result.counter} (--force shortens it anyway)"
        )
    head = (
        f"{result.tokens_before:,} tokens became {result.tokens_after:,} of {result.limit:,}, by "
        f"{result.counter}; {count_of(len(result.archived), 'message')} remembered"
    )
    if result.over_budget:
        head += click.style("; what cannot be left out exceeds the limit", fg="red")
    lines = [head]
    if result.fallback_reason:
        lines.append(wrap_paragraph(f"without the model: {result.fallback_reason}"))
    lines += [
        click.style(f"   their words: mnem expand {id}", dim=True)
        for id in result.expand
    ]
    return "\n".join([*lines, "", *_message_lines(result)])


def _message_lines(
    result: conversation.Assembled | conversation.Shortened,
) -> Iterator[str]:
    """Yield two texts for each message: its role, and its content truncated to `LINE_CHARS`."""
    for message in result.messages:
        content = message.get("content")
        if not isinstance(content, str):
            content = msgspec.json.encode(message).decode()
        yield click.style(str(message.get("role", "")), bold=True)
        yield wrap_paragraph(cut_text(content, LINE_CHARS))


show.RENDERERS[conversation.Learned] = show.Renderer(
    lambda result: result.learning.id,
    lambda result: "\n".join(
        [
            f"{result.learning.kind.value}: {result.learning.text}",
            *(f"   replaces {id}" for id in result.superseded),
        ]
    ),
)
show.RENDERERS[conversation.LearningList] = show.Renderer(
    _learnings_text,
    lambda result: show.page_remark(result, "no learning matches"),
    lambda result: result.learnings,
    is_numbered=True,
)
show.RENDERERS[conversation.EditedLearning] = show.Renderer(
    lambda result: f"{result.id} was changed", _purge_remark
)
show.RENDERERS[conversation.RemovedLearning] = show.Renderer(
    lambda result: f"{result.id} was removed", _purge_remark
)
show.RENDERERS[conversation.Assembled] = show.Renderer(
    _context_text, is_as_written=True
)
show.RENDERERS[conversation.Shortened] = show.Renderer(
    _compact_text, is_as_written=True
)
show.CELLS[Learning] = "id created_at kind session source text".split()


def _number_texts(texts: Iterable[str], first: int) -> str:
    """Return texts one below the other, each after its number."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, first))


def _ended_text(ended: conversation.EndedLine) -> str:
    """Return an ended statement as lines: a head, the statement, and its successor."""
    state = "undone" if ended.undone else ended.reason
    head = f"{local_time(ended.found_at)}  {state}\n   {ended.id}"
    lines = [click.style(head, dim=True)]
    for label, sentence in (("ended", ended.sentence), ("by", ended.successor)):
        words = cut_text(sentence, LINE_CHARS) or "(its words were pruned)"
        lines.append(wrap_paragraph(f"{label}: {words}"))
    return "\n".join(lines)


show.RENDERERS[conversation.EndingList] = show.Renderer(
    lambda result, first: _number_texts(map(_ended_text, result.endings), first),
    lambda result: show.page_remark(result, "no statement was ended"),
    lambda result: result.endings,
    is_numbered=True,
)
show.RENDERERS[conversation.UndoneEnding] = show.Renderer(
    lambda result: f"{result.id}: {count_of(result.changed, 'ending')} changed"
)
show.CELLS[conversation.EndedLine] = (
    "id by reason sentence successor at found_at undone".split()
)


def injection_lines(injection: injections.Injection) -> Iterator[str]:
    """Yield an injection as lines: its head, the prompt, and each line with its reason."""
    where = (injection.client, injection.session, injection.project)
    head = f"{local_time(injection.created_at)}  {injection.kind}  {'  '.join(filter(None, where))}"
    if injection.outcome is not injections.InjectionOutcome.UNKNOWN:
        head += f"  {injection.outcome.replace('_', ' ')}"
    yield click.style(f"{head}\n   {injection.id}", dim=True)
    if injection.prompt:
        yield wrap_paragraph(f"prompt: {cut_text(injection.prompt, 100)}")
    if injection.characters:
        yield f"   about {count_of(injection.tokens, 'token')}"
    for line in injection.lines:
        yield wrap_paragraph(f"- {line.text or '(its text has changed since then)'}")
        yield click.style(f"     {line.reason}; {line.id}", dim=True)


show.RENDERERS[conversation.InjectionList] = show.Renderer(
    lambda result, first: "\n".join(
        [
            _number_texts(("\n".join(injection_lines(each)) for each in result), first),
            show.injections_row(result.totals),
        ]
    ).strip(),
    lambda result: "" if result.injections else "no injection matches",
    lambda result: result.injections,
    is_numbered=True,
)
show.RENDERERS[conversation.RatedInjection] = show.Renderer(
    lambda result: (
        f"{result.id}: {result.outcome.replace('_', ' ')}\n{show.injections_row(result.totals)}"
    )
)


def _briefing_text(result: conversation.Briefed) -> str:
    """Return a briefing's text for agents, with reason and id of the source below each line, then edits."""
    lines = list(result.lines)
    shown = []
    for text in result.text.splitlines():
        shown.append(text)
        while lines and lines[0].text in text:
            line = lines.pop(0)
            shown.append(click.style(f"   {line.reason}; {line.id}", dim=True))
    if result.tokens:
        shown.append(f"about {count_of(result.tokens, 'token')}")
    shown += [f"{edit.id}: {_edit_text(edit)}" for edit in result.edits]
    return "\n".join(shown)


def _briefing_remark(result: conversation.Briefed) -> str:
    """Return a remark on a briefing without lines, and the lines that were left out for a prompt."""
    shown = [] if result.lines else ["nothing would be given here"]
    if result.missed:
        shown.append("left out, nearest first:")
    shown += (
        f"- {escape_line(line.text)}\n   {line.reason}; {line.id}"
        for line in result.missed
    )
    return "\n".join(shown)


def _edit_text(edit: injections.BriefingEdit) -> str:
    """Return in words how a person changed a line of the briefing: pinned, dropped or reworded."""
    parts = ["pinned"] * edit.pinned + ["dropped"] * edit.dropped
    parts += [f"given as: {edit.text}"] * bool(edit.text)
    return "; ".join(parts) or "as its source has it"


show.RENDERERS[conversation.Briefed] = show.Renderer(
    _briefing_text,
    _briefing_remark,
    lambda result: result.lines,
    is_as_written=True,
)
show.RENDERERS[injections.BriefingEdit] = show.Renderer(
    lambda edit: f"{edit.id}: {_edit_text(edit)}"
)
show.CELLS[injections.InjectedLine] = "id reason text".split()
show.CELLS[injections.Injection] = (
    "id created_at kind client session project outcome prompt".split()
)
