"""Results of verbs on memories in words: remember, recall, get, expand, edit, tag and pin."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain

import click

from mnemosyned.cli.output.show import CELLS, RENDERERS, Renderer
from mnemosyned.cli.output.terminal import (
    LINE_CHARS,
    count_of,
    cut_line,
    cut_text,
    ellipsis,
    indent_lines,
    key_lines,
    local_time,
    width,
    wrap_lines,
    wrap_paragraph,
    wrap_prose,
)
from mnemosyned.memory import values
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.display import cut_before_match, find_matching_words
from mnemosyned.verbs import listing, memories as verbs


def highlight(text: str, matching: Sequence[str]) -> str:
    """Return a text with each word bold and underlined that matches one of `matching`, a query's words."""
    parts: list[str] = []
    end = 0
    for start, stop in find_matching_words(text, matching):
        word = click.style(text[start:stop], bold=True, underline=True)
        parts += [text[end:start], word]
        end = stop
    return "".join([*parts, text[end:]])


TITLE_CHARS = 100
"""Characters of a first line that counts as a title."""
SUMMARY_LINES_MAX = 12
"""Maximum lines shown of a summary that is itself the hit, such as a day."""


def _storing_remark(result: values.Acknowledged) -> str:
    """Return a remark if a memory was known or forgotten before, or had a secret; else empty."""
    notes = [] if result.stored else ["already known"]
    if result.forgotten:
        notes = ["it was forgotten, and stays so"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return "; ".join(notes)


def _recall_text(result: verbs.Recalled, first: int) -> str:
    """Return hits as paragraphs numbered from `first`; without hits, the nearest memories, marked `~`."""
    hits = [
        _hit_text(f"{number}.", hit, result.matching)
        for number, hit in enumerate(result.hits, first)
    ]
    return "\n\n".join(
        hits or [_hit_text("~", hit, result.matching) for hit in result.nearest]
    )


def _recall_remark(result: verbs.Recalled) -> str:
    """Return the note of a search; without hits, a remark comes before it."""
    remark = "" if result.hits else "nothing found"
    if result.nearest and not result.hits:
        remark = "no memory is clearly relevant; a table marks the nearest with ~, JSON has them in nearest"
    return "\n".join(filter(None, [remark, result.note]))


def _hit_text(label: str, hit: values.Hit, matching: Sequence[str]) -> str:
    """Return a hit as a paragraph: heading, id, text with `matching` words bold, and notes."""
    # An agent's session begins with its source.
    source = "" if hit.session.startswith(f"{hit.source}:") else hit.source
    when = f"{local_time(hit.created_at)}  {hit.tier.value}"
    parts = filter(None, (when, hit.owner, hit.member, hit.session, source, hit.role))
    head = f"{label} {wrap_lines('  '.join(parts)).lstrip()}"
    lines = [click.style(head, bold=True), click.style(f"   {hit.id}", dim=True)]
    if hit.superseded_at:
        lines.append(f"   superseded {_superseding_note(hit.superseded_at)}")
    lines += [wrap_paragraph(_ended_text(ended)) for ended in hit.ended]
    texts, hint = _hit_lines(hit, matching)
    lines += [highlight(line, matching) for line in texts]
    lines += [_dim_note(hint)] if hint else []
    lines += [
        click.style(wrap_paragraph(_history_text(older)), dim=True)
        for older in hit.history
    ]
    if hit.duplicates:
        says = "says" if hit.duplicates == 1 else "say"
        lines.append(_dim_note(f"and {hit.duplicates} more that {says} the same"))
    if score := _score_text(hit, gap="  "):
        lines.append(_dim_note(score))
        lines.append(_dim_note(f"confidence {hit.confidence:.2f}  {hit.why}".rstrip()))
    return "\n".join(lines)


def _history_text(older: values.Line) -> str:
    """Return the statement that a hit superseded, in quotes and with its time."""
    quoted = f"“{cut_text(older.content, LINE_CHARS)}”"
    return f"before, {local_time(older.created_at)}: {quoted}"


def _hit_lines(hit: values.Hit, matching: Sequence[str]) -> tuple[list[str], str]:
    """Return a hit's snippet, matching originals or summary as paragraphs, and a command for the rest or ""."""
    if hit.tier is not values.Tier.EPISODIC:
        title, _, further = hit.content.partition("\n")
        is_title = further and 0 < len(title.strip()) <= TITLE_CHARS
        is_hidden = hit.snippet.startswith("…") and title not in hit.snippet
        head = [wrap_paragraph(title)] if is_title and is_hidden else []
        return [*head, wrap_lines(hit.snippet)], ""
    if hit.lines:
        count = len(hit.summary_of)
        own = sum(line.id in hit.summary_of for line in hit.lines)  # others repeat it
        hint = f"{own} of {count} originals: mnem expand {hit.id}"
        quoted = [_quote_original(hit, line, matching) for line in hit.lines]
        return quoted, hint if count > 1 else ""
    summary = hit.content.split("\n")
    if len(summary) == 1:
        return [wrap_paragraph(hit.snippet)], ""
    shown = [cut_text(line, LINE_CHARS) for line in summary[:SUMMARY_LINES_MAX]]
    left_out = len(summary) - len(shown)
    more = count_of(left_out, "more line") if left_out else "made from others"
    return [*map(wrap_paragraph, shown)], f"{more}: mnem expand {hit.id} --depth 1"


def _quote_original(hit: values.Hit, line: values.Line, matching: Sequence[str]) -> str:
    """Return a quote of `line`, with time and speaker, cut around `matching` words; `hit` is the summary."""
    content = cut_before_match(line.content, matching, room=LINE_CHARS // 2)
    speaker = " ".join(filter(None, (line.member, line.role)))
    who = f"{speaker}: " if speaker else ""
    stamp = "" if len(hit.summary_of) == 1 else f"{local_time(line.created_at)}  "
    stamp += "superseded  " if line.superseded_at else ""
    notes = [wrap_paragraph(_ended_text(ended)) for ended in line.ended]
    if "\n" not in content.strip():
        quoted = wrap_paragraph(f"{stamp}{who}“{cut_text(content, LINE_CHARS)}”")
        return "\n".join([*notes, quoted])
    lines = content.strip("\n").split("\n")
    shown = [cut_line(text, LINE_CHARS) for text in lines[:SUMMARY_LINES_MAX]]
    if len(lines) > len(shown):
        shown.append(ellipsis())
    head = [wrap_paragraph(f"{stamp}{who}".rstrip())] if stamp or who else []
    return "\n".join([*notes, *head, wrap_lines("\n".join(shown))])


def _ended_text(ended: values.EndedStatement) -> str:
    """Return until when a statement or clause applied, and the newer statement, on one line."""
    successor = cut_text(ended.successor, LINE_CHARS)
    clause = f"“{cut_text(ended.clause, LINE_CHARS)}” " if ended.clause else ""
    return f"{clause}until {local_time(ended.at)}, then: “{successor}”"


def _dim_note(note: str) -> str:
    """Return a note as a dim line, indented by three blanks."""
    return click.style(f"   {note}", dim=True)


def _record_text(result: verbs.Got) -> str:
    """Return a memory in full, with its earlier revisions, or a summary in full."""
    if (memory := result.memory) is None:
        return _episode_text(result.episode) if result.episode else ""
    valid_until = local_time(memory.valid_until)
    if memory.valid_until and memory.valid_until <= datetime.now(UTC):
        valid_until += ", so it is not recalled any more"
    rows = [
        ("id", memory.id),
        ("tier", memory.tier.value),
        ("when", local_time(memory.created_at)),
        ("session", memory.session),
        ("source", memory.source or ""),
        ("role", memory.role),
        ("importance", f"{memory.importance:g}"),
        ("pinned", "yes" if memory.pinned else ""),
        ("tags", ", ".join(memory.tags)),
        ("edited", _edit_note(memory)),
        (
            "metadata",
            json.dumps(dict(memory.metadata), ensure_ascii=False)
            if memory.metadata
            else "",
        ),
        ("episode", memory.episode or ""),
        ("valid until", valid_until),
        ("superseded", _superseding_note(memory.superseded_at, memory.superseded_by)),
    ]
    parts = [f"{key_lines(rows)}\n\n{wrap_prose(_content_or_note(memory))}"]
    parts += [wrap_paragraph(_ended_text(ended)) for ended in result.ended]
    for revision in result.revisions:
        lines = [click.style(f"until {local_time(revision.changed_at)}", dim=True)]
        for name, value in revision.fields.items():
            shown = ", ".join(value) if isinstance(value, list) else value
            if name == "created_at":
                shown = local_time(datetime.fromisoformat(value))
            lines.append(f"   {name}: {'none' if shown in (None, '') else shown}")
        lines += [] if revision.text is None else [indent_lines(revision.text)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _edit_note(memory: values.MemoryRecord) -> str:
    """Return when a memory was edited, and how to see its history; empty if it never was."""
    if not memory.edited_at:
        return ""
    return f"{local_time(memory.edited_at)}; mnem get {memory.id} --history shows what it was"


def _content_or_note(memory: values.MemoryRecord) -> str:
    """Return the content of a memory, or a note that its words were pruned."""
    if memory.pruned_at:
        return click.style(f"(pruned on {local_time(memory.pruned_at)})", dim=True)
    return memory.content


def _superseding_note(moment: datetime | None, by: str | None = None) -> str:
    """Return when a memory was superseded, and by which id; empty if it was not."""
    return f"on {local_time(moment)}{f' by {by}' if by else ''}" if moment else ""


def _episode_text(episode: values.Episode) -> str:
    """Return a summary in full: a line for each field, its content, and exact values."""
    rows = [
        ("id", episode.id),
        ("tier", episode.tier.value),
        ("covers", _covered_times(episode)),
        ("session", episode.session),
        ("source", episode.source or ""),
        ("level", listing.LEVELS[episode.level] if episode.level else ""),
        ("originals", str(episode.item_count)),
        ("summarizer", episode.summarizer),
    ]
    return f"{key_lines(rows)}\n\n{wrap_prose(episode.content)}{_details_text(episode.details)}"


def _covered_times(episode: values.Episode) -> str:
    """Return the times of the first and the last memory in a summary: `… to …`."""
    return f"{local_time(episode.covers_from)} to {local_time(episode.covers_until)}"


def _details_text(details: Iterable[Detail]) -> str:
    """Return exact values as a line for each kind, without repetitions; empty without any."""
    values_by_kind: dict[DetailKind, dict[str, None]] = {
        kind: {} for kind in DetailKind
    }
    for detail in details:
        values_by_kind[detail.kind][detail.value] = None
    if not any(values_by_kind.values()):
        return ""
    indent = " " * 15
    lines = [click.style("Exact values:", bold=True)]
    for kind, kind_values in values_by_kind.items():
        if kind_values:
            line = textwrap.fill(
                "; ".join(cut_text(value, LINE_CHARS) for value in kind_values),
                width(),
                initial_indent=f"   {kind.replace('_', ' '):<12}",
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines.append(line)
    return "\n\n" + "\n".join(lines)


def _expanded_text(result: verbs.Expanded) -> str:
    """Return a summary, then the summaries or the originals that it was made from."""
    lines = [_episode_text(result.episode), ""]
    if result.summaries:
        lines.append(
            click.style("Made from these; mnem expand goes on from each:", bold=True)
        )
    for summary in result.summaries:
        stamp = f"{_covered_times(summary)}  {summary.id}"
        lines.append(f"{click.style(stamp, dim=True)}\n{indent_lines(summary.content)}")
    if result.originals:
        lines.append(click.style("Originals, word for word:", bold=True))
    for memory in result.originals:
        who = f"  {memory.role}" if memory.role else ""
        stamp = click.style(
            f"{local_time(memory.created_at)}{who}  {memory.id}", dim=True
        )
        if memory.superseded_at:
            stamp += f"  superseded {_superseding_note(memory.superseded_at, memory.superseded_by)}"
        if memory.edited_at:
            stamp += f"  edited {_edit_note(memory)}"
        lines.append(f"{stamp}\n{indent_lines(_content_or_note(memory))}")
    return "\n".join(lines)


def preview_lines(result: verbs.SelectionPreview) -> Iterator[str]:
    """Yield a paragraph for each memory of a dry run, and options to see further memories."""
    for line in result.lines:
        who = "  ".join(filter(None, (line.session, line.role)))
        words = line.snippet or "(its words were pruned)"
        yield wrap_paragraph(f"{local_time(line.created_at)}  {who}: {words}")
    if result.further:
        yield f"   … and {result.further:,} more: --dry-run --after {result.lines[-1].id}"


def _edit_text(result: verbs.Edited) -> str:
    """Return how many memories an edit changed, or would change in a dry run, as text."""
    if not result.memories:
        return "no memory matches"
    memories = count_of(result.memories, "memory")
    if result.dry_run:
        return "\n".join([f"would edit {memories}", *preview_lines(result)])
    if result.id:
        return f"{result.id} is edited" if result.changed else "nothing was changed"
    return f"{result.changed:,} of {memories} edited"


def _edit_remark(result: verbs.Edited) -> str:
    """Return the consequences of an edit: secrets that were masked, and where originals are now."""
    notes = []
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    if result.restored:
        restored = count_of(result.restored, "original")
        place = "the next sleep consolidates where it belongs now"
        notes.append(f"{restored} back in working memory; {place}")
    if result.kept:
        kept = count_of(result.kept, "original")
        notes.append(f"{kept} left: its summary is all that pruning left")
    return "\n".join(filter(None, [*notes, result.note]))


def _tag_text(result: verbs.Tagged) -> str:
    """Return how many memories were tagged, or would be in a dry run, with their tags."""
    tags = ", ".join(result.tags)
    memories = count_of(result.memories, "memory")
    if not result.memories:
        return "no memory matches"
    verb = "tag" if result.tagged else "untag"
    if result.dry_run:
        return "\n".join([f"would {verb} {memories}: {tags}", *preview_lines(result)])
    as_before = result.memories - result.changed
    state = "had them already" if result.tagged else "had none of them"
    note = f"; {as_before:,} {state}" if as_before else ""
    return f"{verb}ged {count_of(result.changed, 'memory')}: {tags}{note}"


def _pin_text(result: verbs.Pinned) -> str:
    """Return how many memories were pinned or unpinned, or would be in a dry run."""
    state = "pinned" if result.pinned else "no longer pinned"
    memories = count_of(result.memories, "memory")
    if result.dry_run:
        head = f"would be {state}: {memories}"
        return "\n".join([head, *preview_lines(result)])
    if result.id:
        return f"{result.id} is {state}"
    if not result.archived:
        return f"{memories} {state}"
    archived = count_of(result.archived, "archived memory")
    return f"{memories} {state}; {archived} cannot be: only working memories can"


def _hit_words(hit: values.Hit) -> str:
    """Return a hit on one line: its snippet, or a summary's matching originals or text."""
    if not hit.summary_of:
        return hit.snippet
    return " ".join(line.content for line in hit.lines) or hit.content


def _validity_text(hit: values.Hit) -> str | None:
    """Return on one line a hit's ended statements, supersession and earlier statements; None without any."""
    ended = chain(hit.ended, *(line.ended for line in hit.lines))
    notes = list(dict.fromkeys(map(_ended_text, ended)))
    if hit.superseded_at:
        notes.append(f"superseded {_superseding_note(hit.superseded_at)}")
    notes += map(_history_text, hit.history)
    return "; ".join(notes) or None


def _score_text(hit: values.Hit, gap: str = " ") -> str | None:
    """Return a hit's score as a sum of named parts; None if no explanation was asked for."""
    if hit.explanation is None:
        return None
    parts = (f"{name} {part:+.2f}" for name, part in hit.explanation.items())
    return f"score {hit.score:.2f} = {gap.join(parts)}"


RENDERERS[values.Acknowledged] = Renderer(lambda result: result.id, _storing_remark)
RENDERERS[verbs.Recalled] = Renderer(
    _recall_text,
    _recall_remark,
    lambda result: result.hits,
    is_nothing=lambda result: not result.hits,
    is_numbered=True,
)
RENDERERS[verbs.Got] = Renderer(_record_text, is_as_written=True)
RENDERERS[verbs.Expanded] = Renderer(_expanded_text, is_as_written=True)
RENDERERS[verbs.Edited] = Renderer(_edit_text, _edit_remark)
RENDERERS[verbs.Tagged] = Renderer(_tag_text)
RENDERERS[verbs.Pinned] = Renderer(_pin_text)
CELLS[values.Hit] = [
    *"id created_at tier session source role".split(),
    *(_hit_words, _score_text, _validity_text),
]
