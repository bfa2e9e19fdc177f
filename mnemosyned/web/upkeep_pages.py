"""Pages on the daemon's work: sleep cycles, undo, texts given to agents, briefings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.http_messages import Response
from mnemosyned.memory.consolidation import GroupReport, GroupStatus, LogEntry
from mnemosyned.memory.injections import InjectionOutcome
from mnemosyned.verbs.conversation import (
    Briefing,
    EditBriefing,
    Injections,
    Learnings,
    RateInjection,
)
from mnemosyned.verbs.upkeep import Log, Sleep, Status, Undo
from mnemosyned.web.application import Visit, make_change
from mnemosyned.web.memory_pages import read_provenance

CYCLE_ROWS = 1_000
"""Rows of the log read for a page of cycles; most cycles have far fewer."""
GROUPS = 6
"""Groups of a cycle on one page, each with its originals."""
DRAWN = 24
"""Groups drawn each by itself in the picture of a cycle: the largest."""
FLOW_HEIGHT, FLOW_GAP, RIBBON_MIN = 220.0, 2.0, 1.5
INJECTION_ROWS = 20
PROJECTS_OF = 100
"""Injections whose projects are suggested."""
INJECTION_FIELDS = ("session", "project", "since", "until", "rated", "after")


class Ribbon(NamedTuple):
    """Groups in the picture of a cycle: originals on the left flow into an episode on the right."""

    outline: str
    """Path of SVG, 100 wide; as high as the characters before on the left, after on the right."""
    end: float
    """Height of the picture down to the end of this ribbon."""
    kind: str
    """`written`, `verbatim`, `fallback`, `failed`, `undone` or `planned`."""
    groups: Sequence[LogEntry | GroupReport]
    place: int | None
    """Place of the group in the cycle, from 0; None for all small ones together."""


def draw_flow(groups: Sequence[LogEntry | GroupReport]) -> list[Ribbon]:
    """Return the picture of a cycle: a ribbon for each of the largest groups, one for others."""
    by_size = sorted(range(len(groups)), key=lambda place: -groups[place].chars_before)
    parts: list[tuple[list[LogEntry | GroupReport], int | None]]
    parts = [([groups[place]], place) for place in sorted(by_size[:DRAWN])]
    if len(groups) > DRAWN:
        parts.append(([groups[place] for place in by_size[DRAWN:]], None))
    total = sum(max(each.chars_before, each.chars_after) for each in groups)
    scale = FLOW_HEIGHT / max(total, 1)
    left = right = 0.0
    ribbons = []
    for members, place in parts:
        kinds = [_flow_kind(each) for each in members]
        kind = max(set(kinds), key=kinds.count)
        before = sum(each.chars_before for each in members)
        after = sum(each.chars_after for each in members)
        left_end = left + max(before * scale, RIBBON_MIN)
        kept = before if kind == "planned" else after
        right_end = right + (max(kept * scale, RIBBON_MIN) if kept else 0.0)
        outline = (
            f"M0 {left:.1f}C50 {left:.1f} 50 {right:.1f} 100 {right:.1f}V{right_end:.1f}"
            f"C50 {right_end:.1f} 50 {left_end:.1f} 0 {left_end:.1f}Z"
        )
        ribbons.append(Ribbon(outline, max(left_end, right_end), kind, members, place))
        left, right = left_end + FLOW_GAP, right_end + FLOW_GAP
    return ribbons


def _flow_kind(group: LogEntry | GroupReport) -> str:
    """Return how a group is drawn: as what became of it."""
    if isinstance(group, LogEntry) and group.undone_at:
        return "undone"
    if group.fallback_reason:
        return "fallback"
    named = (GroupStatus.VERBATIM, GroupStatus.FAILED, GroupStatus.PLANNED)
    return group.status.value if group.status in named else "written"


def show_sleep(visit: Visit) -> Response:
    """Show the sleep cycles, the newest first, the last if it is whole, and the next one."""
    rows = visit.ask(Log, ["after"], limit=str(CYCLE_ROWS)).rows
    cycles = [list(group) for _, group in groupby(rows, key=lambda row: row.cycle)]
    has_more = len(rows) == CYCLE_ROWS
    if has_more and len(cycles) > 1:
        cycles.pop()
    after = cycles[-1][-1].id if has_more else None
    return visit.show(
        "sleep.html", cycles=cycles, after=after, stats=visit.call(Status())
    )


def show_cycle(visit: Visit) -> Response:
    """Show a cycle: what each group became, its originals next to the sentences of its summary."""
    cycle = visit.field("cycle")
    rows = visit.call(Log(cycle=cycle, limit=CYCLE_ROWS)).rows
    if not rows:
        raise NotFound(f"no cycle has the id {cycle!r}; the page Sleep lists them")
    given = visit.fields.get("from", "0")
    if not (given.isascii() and given.isdecimal()):
        raise InvalidRequest("from is the number of a group; follow a link")
    groups = [row for row in reversed(rows) if row.level == 0]
    first = int(given[:6])
    page = groups[first : first + GROUPS]
    return visit.show(
        "cycle.html",
        rows=rows,
        flow=draw_flow(groups),
        groups=[(row, _read_group(visit, row)) for row in page],
        first=first,
        total=len(groups),
        next=first + GROUPS,
    )


def _read_group(visit: Visit, row: LogEntry) -> dict[str, Any] | None:
    """Return the summary that a row of the log led to, with its sources; None if there is none."""
    try:
        is_there = row.episode and not row.undone_at
        return read_provenance(visit, row.episode or "") if is_there else None
    except NotFound:  # it was forgotten
        return None


def show_plan(visit: Visit) -> Response:
    """Show what a cycle would do now; nothing is changed, and no model is asked."""
    plan = visit.ask(Sleep, ["force"], dry_run="true")
    flow = draw_flow(plan.groups)
    return visit.show("plan.html", plan=plan, flow=flow, undoes=False)


def show_undo(visit: Visit) -> Response:
    """Show what undoing a cycle would put back."""
    plan = visit.ask(Undo, action=visit.field("cycle"), dry_run="true").cycle
    return visit.show("plan.html", plan=plan, flow=(), undoes=True)


def undo(visit: Visit) -> Response:
    """Undo a cycle, and show what was put back."""
    done = visit.call(Undo(visit.field("cycle"))).cycle
    return visit.show("receipt.html", title="Undone", done=done, kind="undo", id="")


def show_injections(visit: Visit) -> Response:
    """Show what agents were given, newest first, with the reason for each line."""
    chosen = visit.pick(INJECTION_FIELDS)
    rated = {"outcome": chosen["rated"]} if "rated" in chosen else {}
    names = [name for name in chosen if name != "rated"]
    page = visit.ask(Injections, names, limit=str(INJECTION_ROWS + 1), **rated)
    injections = page.injections[:INJECTION_ROWS]
    return visit.show(
        "injections.html",
        kept=chosen,
        chosen={name: chosen[name] for name in chosen if name != "after"},
        rows=injections,
        totals=page.totals,
        after=injections[-1].id if len(page) > INJECTION_ROWS else None,
        outcomes=list(InjectionOutcome),
    )


def show_briefing(visit: Visit) -> Response:
    """Show what an agent would be given at the start of its next session."""
    injections = visit.call(Injections(limit=PROJECTS_OF)).injections
    briefed = visit.ask(Briefing, ["project"])
    # A line is cut to fit: rewording starts from all words, or from none.
    ids = [line.id for line in briefed.lines]
    learnings = visit.call(Learnings(id=ids, limit=1_000)) if ids else ()
    words = {each.id: each.text for each in learnings}
    words |= {each.id: each.text for each in briefed.edits if each.text}
    return visit.show(
        "briefing.html",
        briefed=briefed,
        project=visit.fields.get("project", ""),
        projects=sorted({each.project for each in injections} - {""}),
        words=words,
    )


UPKEEP_ROUTES = {
    "GET /sleep": show_sleep,
    "GET /cycle": show_cycle,
    "GET /plan": show_plan,
    "GET /undo": show_undo,
    "POST /undo": undo,
    "GET /injections": show_injections,
    "POST /rate": make_change(
        RateInjection, ["id", "outcome"], "/injections", INJECTION_FIELDS
    ),
    "GET /briefing": show_briefing,
    "POST /briefing": make_change(
        EditBriefing, ["id", "pin", "drop", "text"], "/briefing", ["project"]
    ),
}
