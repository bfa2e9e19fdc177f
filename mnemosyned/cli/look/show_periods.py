"""Days, weeks and months in words."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mnemosyned.cli.look.periods import Part, PeriodView
from mnemosyned.cli.look.rows import day_title, period_name, rows_by_origin
from mnemosyned.domain.memory import Episode
from mnemosyned.terminal import counted, cut_line, indented, width, wrapped_lines

LINES_OF_A_PART = 3
"""Lines shown of a summary below the period's own."""
INDENT = " " * 6


def view(period: PeriodView, first: int = 1) -> str:
    """A title, the period's summary, and its parts, all that can be opened numbered."""
    number = first
    blocks = [_title(period)]
    if period.summary:
        blocks[0] += f"\n{_overview(period.summary, number)}"
        number += 1
    for part in period.parts:
        blocks.append("\n".join(_part(part, number, period)))
        number += bool(part.summary) + len(part.memories)
    if not period.records:
        return ""
    close = period.unit == "day" and not period.summary
    return ("\n" if close else "\n\n").join(blocks)


def on_view(period: PeriodView) -> str:
    """Remarks on what is missing."""
    if not period.records:
        nothing = "nothing matches in" if period.narrowed else "nothing is kept of"
        return f"{nothing} {_name(period)}"
    if period.summary or period.unit == "day" or period.narrowed:
        return ""
    return (
        f"no summary of this {period.unit} yet: a sleep cycle after its end writes it"
    )


def _title(period: PeriodView) -> str:
    return click.style(_name(period), bold=True)


def _name(period: PeriodView) -> str:
    return period_name(period.unit, period.first)


def _overview(summary: Episode, number: int) -> str:
    memories = counted(summary.item_count, "memory")
    counts = f"   summary of {memories}, number {number}:"
    return f"{click.style(counts, dim=True)}\n{wrapped_lines(summary.content)}"


def _part(part: Part, number: int, period: PeriodView) -> Iterator[str]:
    """A week or a day by its summary, or a day by its memories."""
    if part.summary is None:
        if period.unit != "day":
            yield click.style(day_title(part.first), bold=True)
        yield from rows_by_origin(part.memories, number)
        if part.more:
            yield _dim(f"and more: {_further(part.first.isoformat(), period)}")
        return
    count = counted(part.summary.item_count, "memory")
    name = _part_name(part)
    head = click.style(f"{number:>4}  {name}", bold=True)
    yield f"{head}  {click.style(count, dim=True)}"
    lines = [line for line in part.summary.content.splitlines() if line.strip()]
    room = max(width() - len(INDENT), 1)
    for line in lines[:LINES_OF_A_PART]:
        yield f"{INDENT}{cut_line(line, room)}"
    if len(lines) > LINES_OF_A_PART:
        unit = "day" if part.first == part.last else "week"
        left = counted(len(lines) - LINES_OF_A_PART, "more line")
        yield _dim(f"{left}: mnem {unit} {part.first.isoformat()}")


def _further(day: str, period: PeriodView) -> str:
    """The command that shows a day's memories, of which a view has the first alone."""
    filters = " with the same filters" if period.narrowed else ""
    if period.unit == "day":
        return f"mnem list --since {day} --until {day} --all{filters}"
    return f"mnem day {day}{filters}"


def _part_name(part: Part) -> str:
    return period_name("day" if part.first == part.last else "week", part.first)


def _dim(text: str) -> str:
    return click.style(indented(f"   {text}"), dim=True)
