"""The ledger of injected context in words."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mnemosyned.cli.output.show import CELLS, RENDERERS, Renderer
from mnemosyned.cli.output.terminal import (
    count_of,
    cut_text,
    local_time,
    wrap_paragraph,
)
from mnemosyned.memory.injections import (
    BriefingEdit,
    InjectedLine,
    Injection,
    InjectionOutcome,
    InjectionTotals,
)
from mnemosyned.verbs.injections import Briefed, InjectionList, RatedInjection

PROMPT_CHARS = 100


def injections_row(totals: InjectionTotals) -> str:
    """Return the sums over all injections that are kept as one line; empty without any."""
    if not (totals.injections or totals.said_again):
        return ""
    row = f"{totals.injections:,} with about {count_of(totals.tokens, 'token')}"
    if totals.precision is not None:
        rated = totals.useful + totals.not_useful
        row += f"; {totals.useful:,} of {rated:,} rated useful ({totals.precision:.0%})"
    if totals.said_again:
        row += f"; {totals.said_again:,} times a user said again what was known"
    return row


def injection_lines(injection: Injection) -> Iterator[str]:
    """Yield an injection as lines: its head, the prompt, and each line with its reason."""
    where = (injection.client, injection.session, injection.project)
    head = f"{local_time(injection.created_at)}  {injection.kind}  {'  '.join(filter(None, where))}"
    if injection.outcome is not InjectionOutcome.UNKNOWN:
        head += f"  {injection.outcome.replace('_', ' ')}"
    yield click.style(f"{head}  {injection.id}", dim=True)
    if injection.prompt:
        yield f"prompt: {cut_text(injection.prompt, PROMPT_CHARS)}"
    if injection.characters:
        yield f"about {count_of(injection.tokens, 'token')}"
    for line in injection.lines:
        yield wrap_paragraph(f"- {line.text or '(its words changed since)'}")
        yield click.style(f"     {line.reason}; {line.id}", dim=True)


RENDERERS[InjectionList] = Renderer(
    lambda result: "\n".join(
        [
            *(line for each in result for line in injection_lines(each)),
            injections_row(result.totals),
        ]
    ).strip(),
    lambda result: "" if result.injections else "no injection matches",
    lambda result: result.injections,
)
RENDERERS[RatedInjection] = Renderer(
    lambda result: (
        f"{result.id}: {result.outcome.replace('_', ' ')}\n{injections_row(result.totals)}"
    )
)


def _briefing_text(result: Briefed) -> str:
    """Return a briefing as agents are given it, each line followed by its reason and id."""
    lines = iter(result.lines)
    shown = []
    for text in result.text.splitlines():
        shown.append(text)
        if text.startswith("- ") and (line := next(lines, None)):
            shown.append(click.style(f"   {line.reason}; {line.id}", dim=True))
    if result.tokens:
        shown.append(f"about {count_of(result.tokens, 'token')}")
    shown += [f"{edit.id}: {_edit_text(edit)}" for edit in result.edits]
    return "\n".join(shown)


def _edit_text(edit: BriefingEdit) -> str:
    """Return what a person decided about a line."""
    parts = ["pinned"] * edit.pinned + ["dropped"] * edit.dropped
    parts += [f"given as: {edit.text}"] * bool(edit.text)
    return "; ".join(parts) or "as its source has it"


RENDERERS[Briefed] = Renderer(
    _briefing_text,
    lambda result: "" if result.lines else "nothing would be given here",
    lambda result: result.lines,
    is_as_written=True,
)
RENDERERS[BriefingEdit] = Renderer(lambda edit: f"{edit.id}: {_edit_text(edit)}")
CELLS[InjectedLine] = "id reason text".split()
CELLS[Injection] = "id created_at kind client session project outcome prompt".split()
