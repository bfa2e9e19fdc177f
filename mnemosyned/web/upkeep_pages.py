"""Pages on the daemon's work: sleep cycles with their undo, what agents were told, and briefings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from mnemosyned.errors import NotFound
from mnemosyned.http_messages import Response
from mnemosyned.memory.consolidation import GroupStatus, LogEntry
from mnemosyned.memory.injections import InjectionOutcome
from mnemosyned.verbs.injections import (
    Briefing,
    EditBriefing,
    Injections,
    RateInjection,
)
from mnemosyned.verbs.listing import Sessions
from mnemosyned.verbs.request import parse_text
from mnemosyned.verbs.upkeep import Log, Sleep, Status, Undo
from mnemosyned.web.application import PageRoute, Visit, redirect_to
from mnemosyned.web.memory_pages import (
    NAMES_MAX,
    list_page,
    pick_fields,
    read_provenance,
)

CYCLE_ROWS = 1_000
"""Rows of the log read for a page of cycles; most cycles have far fewer."""
GROUPS = 8
"""Groups of a cycle on one page, each with its originals."""
TOLD_ROWS = 20
TOLD_FIELDS = ("session", "project", "outcome", "since")
UPPER_GROUPS_MAX = 100


class CycleSums(msgspec.Struct, frozen=True, kw_only=True):
    """A sleep cycle in sums over its rows of the log."""

    cycle: str
    rows: list[LogEntry]
    is_whole: bool
    """Whether all its rows were read."""
    memories: int
    episodes: int
    rollups: int
    refused: int
    """Groups for which a model's answer was not kept."""
    failed: int
    undone: int
    chars_before: int
    chars_after: int


def sum_cycles(rows: Sequence[LogEntry], *, has_more: bool) -> Iterator[CycleSums]:
    """Yield the cycles of rows of the log, the newest first.

    With `has_more`, the last cycle may have further rows: it is left out, unless it is the only one.
    """
    cycles = [list(group) for _, group in groupby(rows, key=lambda row: row.cycle)]
    if has_more and len(cycles) > 1:
        cycles.pop()
        has_more = False
    for members in cycles:
        groups = [row for row in members if row.level == 0]
        yield CycleSums(
            cycle=members[0].cycle,
            rows=members,
            is_whole=not has_more,
            memories=sum(row.items_consolidated for row in groups),
            episodes=sum(row.episode is not None for row in groups),
            rollups=len(members) - len(groups),
            refused=sum(row.fallback_reason is not None for row in members),
            failed=sum(row.status is GroupStatus.FAILED for row in members),
            undone=sum(row.undone_at is not None for row in members),
            chars_before=sum(row.chars_before for row in groups),
            chars_after=sum(row.chars_after for row in groups),
        )


def show_sleep(visit: Visit) -> Response:
    """Show the sleep cycles, the newest first, and when the next one is due."""
    rows = list_page(visit, Log, {}, CYCLE_ROWS).rows
    has_more = len(rows) == CYCLE_ROWS
    cycles = list(sum_cycles(rows, has_more=has_more))
    return visit.show(
        "sleep.html",
        cycles=cycles,
        after=cycles[-1].rows[-1].id if has_more else None,
        stats=visit.call(Status()),
    )


def show_cycle(visit: Visit) -> Response:
    """Show a cycle: what each group became, its originals beside the sentences of its summary."""
    cycle = visit.field("cycle")
    rows = visit.call(Log(cycle=cycle, limit=CYCLE_ROWS)).rows
    sums = next(sum_cycles(rows, has_more=len(rows) == CYCLE_ROWS), None)
    if sums is None:
        raise NotFound(f"no cycle has the id {cycle!r}; the page Sleep lists them")
    groups = [row for row in reversed(rows) if row.level == 0]
    first = int(pick_fields(visit, ["from"]).get("from", "0")[:6].strip() or "0")
    page = groups[first : first + GROUPS]
    return visit.show(
        "cycle.html",
        sums=sums,
        groups=[(row, _read_group(visit, row)) for row in page],
        upper=[row for row in rows if row.level > 0][:UPPER_GROUPS_MAX],
        first=first,
        total=len(groups),
        next=first + GROUPS if first + GROUPS < len(groups) else None,
    )


def _read_group(visit: Visit, row: LogEntry) -> dict[str, Any] | None:
    """Return the summary that a row of the log led to, with its sources; None if there is none."""
    if row.episode is None or row.undone_at is not None:
        return None
    try:
        return read_provenance(visit, row.episode)
    except NotFound:  # it was forgotten, or rewritten under another id
        return None


def show_plan(visit: Visit) -> Response:
    """Show what a cycle would do now; nothing is changed, and no model is asked."""
    force = "force" in visit.fields
    plan = visit.call(Sleep(dry_run=True, force=force))
    return visit.show("plan.html", plan=plan, force=force, undoes=False)


def show_undo(visit: Visit) -> Response:
    """Show what undoing a cycle would put back."""
    plan = visit.call(Undo(visit.field("cycle"), dry_run=True))
    return visit.show("plan.html", plan=plan, force=False, undoes=True)


def undo(visit: Visit) -> Response:
    """Undo a cycle, and show what was put back."""
    done = visit.call(Undo(visit.field("cycle")))
    return visit.show("receipt.html", title="Undone", done=done, kind="undo", id="")


# -------------------------------------------------------------------- told


def show_told(visit: Visit) -> Response:
    """Show what agents were told, the newest first, with the reason for each line."""
    chosen = pick_fields(visit, TOLD_FIELDS)
    page = list_page(visit, Injections, chosen, TOLD_ROWS)
    is_full = len(page.injections) == TOLD_ROWS
    return visit.show(
        "told.html",
        chosen=chosen,
        page=page,
        after=page.injections[-1].id if is_full else None,
        outcomes=list(InjectionOutcome),
    )


def rate(visit: Visit) -> Response:
    """Say whether what an agent was told was useful; the browser stays where it is in the list."""
    fields = pick_fields(visit, ["id", "outcome"])
    visit.call(parse_text(RateInjection, fields))
    back = pick_fields(visit, (*TOLD_FIELDS, "after"))
    back["outcome"] = visit.fields.get("back_outcome", "")
    return redirect_to("/told", **back)


def show_briefing(visit: Visit) -> Response:
    """Show what an agent would be told at the start of its next session."""
    project = visit.fields.get("project")
    sessions = visit.call(Sessions(limit=NAMES_MAX)).sessions
    projects = sorted({session.project for session in sessions if session.project})
    briefed = visit.call(Briefing(project=project))
    edits = {edit.id: edit for edit in briefed.edits}
    return visit.show(
        "briefing.html",
        briefed=briefed,
        edits=edits,
        project=project,
        projects=projects,
    )


def edit_briefing(visit: Visit) -> Response:
    """Pin, drop or reword a line of briefings, or take that back."""
    id, action = visit.field("id"), visit.field("action")
    changes: dict[str, dict[str, Any]] = {
        "pin": {"pin": True, "drop": False},
        "unpin": {"pin": False},
        "drop": {"drop": True, "pin": False},
        "reword": {"text": visit.fields.get("text", "")},
        "undo": {"pin": False, "drop": False, "text": ""},
    }
    visit.call(EditBriefing(id, **changes.get(action, {})))
    return redirect_to("/briefing", project=visit.fields.get("project"))


UPKEEP_ROUTES = {
    "/sleep": PageRoute(show_sleep),
    "/cycle": PageRoute(show_cycle),
    "/plan": PageRoute(show_plan),
    "/undo": PageRoute(show_undo, undo),
    "/told": PageRoute(show_told),
    "/rate": PageRoute(change=rate),
    "/briefing": PageRoute(show_briefing),
    "/rephrase": PageRoute(change=edit_briefing),
}
