"""Memories, hits and summaries as people read them in the shell, cut to the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click

from mnemosyned.cli.answers.highlight import highlighted
from mnemosyned.domain.memory import (
    Acknowledged,
    Detail,
    DetailKind,
    Episode,
    MemoryRecord,
    Revision,
    Tier,
)
from mnemosyned.domain.search.results import Hit, Line
from mnemosyned.terminal import (
    LINE_CHARS,
    counted,
    cut,
    cut_line,
    ellipsis,
    flowed,
    indented,
    level_name,
    pairs,
    when,
    width,
    wrapped,
    wrapped_lines,
)
from mnemosyned.verbs.memories import Expanded, Got, Recalled

TITLE_CHARS = 100
"""Characters of a first line that counts as a title."""
SUMMARY_LINES_MAX = 12
"""Lines shown of a summary that answers by itself, such as a day."""


def acknowledged(result: Acknowledged) -> str:
    """The id of a memory that was stored."""
    return result.id


def on_acknowledged(result: Acknowledged) -> str:
    """Remarks on a memory that was stored."""
    notes = [] if result.stored else ["already known"]
    if result.forgotten:
        notes = ["it was forgotten, and stays so"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return "; ".join(notes)


def recalled(result: Recalled, first: int = 1) -> str:
    """The hits, numbered."""
    return "\n\n".join(
        _hit(number, hit, result.matching)
        for number, hit in enumerate(result.hits, first)
    )


def on_recalled(result: Recalled) -> str:
    """A remark on an answer that lacks something."""
    return "\n".join(
        filter(None, ["" if result.hits else "nothing found", result.note])
    )


def _hit(number: int, hit: Hit, matching: Sequence[str]) -> str:
    where = "  ".join(
        part for part in (hit.session, hit.source or "", hit.role) if part
    )
    head = click.style(
        f"{number}. {when(hit.created_at)}  {hit.tier.value}  {where}", bold=True
    )
    lines = [head, click.style(f"   {hit.id}", dim=True)]
    if hit.superseded_at:
        lines.append(f"   superseded {_superseded(hit.superseded_at)}")
    lines += [highlighted(line, matching) for line in _hit_text(hit)]
    lines += _more(hit)
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
        return [*_title(hit), wrapped_lines(hit.snippet)]
    if hit.lines:
        return [_quote(hit, line) for line in hit.lines]
    summary = hit.content.split("\n")
    if len(summary) == 1:
        return [wrapped(hit.snippet)]
    return [wrapped(cut(line, LINE_CHARS)) for line in summary[:SUMMARY_LINES_MAX]]


def _title(hit: Hit) -> list[str]:
    """The first line of a long text, where the part that matches begins behind it."""
    title, _, further = hit.content.partition("\n")
    is_title = further and 0 < len(title.strip()) <= TITLE_CHARS
    is_shown = not hit.snippet.startswith("…") or title in hit.snippet
    return [wrapped(title)] if is_title and not is_shown else []


def _quote(hit: Hit, line: Line) -> str:
    """An original that matched: who said it when, and its words, code with its line breaks."""
    who = f"{line.role}: " if line.role else ""
    stamp = "" if len(hit.summary_of) == 1 else f"{when(line.created_at)}  "
    stamp += "superseded  " if line.superseded_at else ""
    if "\n" not in line.content.strip():
        return wrapped(f"{stamp}{who}“{cut(line.content, LINE_CHARS)}”")
    lines = line.content.strip("\n").split("\n")
    shown = [cut_line(text, LINE_CHARS) for text in lines[:SUMMARY_LINES_MAX]]
    if len(lines) > len(shown):
        shown.append(ellipsis())
    head = [wrapped(f"{stamp}{who}".rstrip())] if stamp or who else []
    return "\n".join([*head, wrapped_lines("\n".join(shown))])


def _more(hit: Hit) -> list[str]:
    """The command that shows all of a summary, where the text above is not all of it."""
    if hit.tier is not Tier.EPISODIC:
        return []
    if not hit.lines:
        left_out = hit.content.count("\n") + 1 - SUMMARY_LINES_MAX
        more = counted(left_out, "more line") if left_out > 0 else "made of others"
        is_whole = "\n" not in hit.content
        return [] if is_whole else [_dim(f"{more}: mnem expand {hit.id} --depth 1")]
    if len(hit.summary_of) <= 1:
        return []
    count = f"{len(hit.lines)} of {len(hit.summary_of)}"
    return [_dim(f"{count} originals: mnem expand {hit.id}")]


def _dim(note: str) -> str:
    return click.style(f"   {note}", dim=True)


def _notes(hit: Hit) -> list[str]:
    """Number of duplicates of a hit, and the parts of its score."""
    notes = []
    if hit.duplicates:
        says = "says" if hit.duplicates == 1 else "say"
        notes.append(f"   and {hit.duplicates} more that {says} the same")
    if hit.explanation is not None:
        parts = "  ".join(
            f"{name} {part:+.2f}" for name, part in hit.explanation.items()
        )
        notes.append(f"   score {hit.score:.2f} = {parts}")
    return [click.style(note, dim=True) for note in notes]


def got(result: Got) -> str:
    """One memory or episode in full."""
    if result.memory:
        earlier = [_revision(revision) for revision in result.revisions]
        return "\n\n".join([_memory(result.memory), *earlier])
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
        ("tags", ", ".join(memory.tags)),
        ("edited", _edited(memory)),
        ("metadata", str(dict(memory.metadata)) if memory.metadata else ""),
        ("episode", memory.episode or ""),
        ("valid until", _until(memory.valid_until)),
        ("superseded", _superseded(memory.superseded_at, memory.superseded_by)),
    ]
    return f"{pairs(rows)}\n\n{flowed(_words(memory))}"


def _edited(memory: MemoryRecord) -> str:
    if not memory.edited_at:
        return ""
    return f"{when(memory.edited_at)}; mnem get {memory.id} --history shows what it was"


def _revision(revision: Revision) -> str:
    """The line of what a memory was until a change."""
    head = click.style(f"until {when(revision.changed_at)}", dim=True)
    fields = [f"   {name}: {value}" for name, value in revision.fields.items()]
    text = [] if revision.text is None else [indented(revision.text)]
    return "\n".join([head, *fields, *text])


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
    return f"{pairs(rows)}\n\n{flowed(episode.content)}{_details(episode.details)}"


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


def expanded(result: Expanded) -> str:
    """A summary and what it was made of."""
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
        if memory.edited_at:
            stamp += f"  edited {_edited(memory)}"
        lines.append(f"{stamp}\n{indented(_words(memory))}")
    return "\n".join(lines)
