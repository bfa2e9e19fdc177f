"""Memories, hits and summaries as people read them in the shell, cut to the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from datetime import UTC, datetime

import click

from mnemosyned.domain.memory import (
    Acknowledged,
    Detail,
    DetailKind,
    Episode,
    MemoryRecord,
    Tier,
)
from mnemosyned.domain.search.results import Hit
from mnemosyned.terminal import (
    LINE_CHARS,
    cut,
    indented,
    level_name,
    pairs,
    when,
    width,
    wrapped,
)
from mnemosyned.verbs.memories import Expanded, Got, Recalled

SUMMARY_LINES_MAX = 12
"""Lines shown of a summary that answers by itself, such as a day."""


def acknowledged(result: Acknowledged) -> str:
    """The id of a memory that was stored."""
    return result.id


def on_acknowledged(result: Acknowledged) -> str:
    """What else is to be said of a memory that was stored."""
    notes = [] if result.stored else ["already known"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return "; ".join(notes)


def recalled(result: Recalled) -> str:
    """The hits, numbered."""
    return "\n\n".join(_hit(number, hit) for number, hit in enumerate(result.hits, 1))


def on_recalled(result: Recalled) -> str:
    """A remark on an answer that lacks something."""
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


def got(result: Got) -> str:
    """One memory or episode in full."""
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
        ("tags", ", ".join(memory.tags)),
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
        lines.append(f"{stamp}\n{indented(_words(memory))}")
    return "\n".join(lines)
