"""Pages on memories: now, search, one memory or summary, the timeline, and changes with their receipts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from typing import Any, TypeVar

from mnemosyned.cli.commands.look import PeriodReader
from mnemosyned.errors import (
    BatchChanged,
    InvalidRequest,
    Kind,
    MnemosynedError,
    NotFound,
)
from mnemosyned.http_messages import Response
from mnemosyned.instants import in_zone
from mnemosyned.memory.listing import ListOrder
from mnemosyned.memory.values import Episode, Learning, MemoryRecord, Tier
from mnemosyned.summary.grounding.check import SHARED_MIN, find_content_stems
from mnemosyned.text.sentences import split_sentences
from mnemosyned.verbs.conversation import Learnings
from mnemosyned.verbs.endings import UndoEnding
from mnemosyned.verbs.listing import (
    Days,
    DayTotals,
    ListMemories,
    Sessions,
    Sources,
)
from mnemosyned.verbs.memories import EditMemory, Expand, Get, Pin, Recall, Unpin
from mnemosyned.verbs.request import Request, parse_text
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.times import local_now
from mnemosyned.verbs.upkeep import Status
from mnemosyned.web.application import PageRoute, Visit, redirect_to

V = TypeVar("V", bound=Request[Any])

RECENT_MAX = 12
HITS, HITS_MAX = 20, 100
ROWS = 50
NAMES_MAX = 200
"""Names of sessions and sources that a filter suggests."""
PREVIEWED_MAX = 100
MONTHS = 12
RECENT_WEEKS = 12
SEARCH_FIELDS = ("query", "session", "source", "role", "tier", "since", "until")
SELECTING_FIELDS = (
    "id",
    "session",
    "source",
    "person",
    "query",
    "tag",
    "since",
    "until",
)
LEARNINGS_MAX = 1_000


def pick_fields(visit: Visit, names: Sequence[str]) -> dict[str, str]:
    """Return those of a visit's fields that have one of these names and are not blank."""
    return {
        name: visit.fields[name] for name in names if visit.fields.get(name, "").strip()
    }


# --------------------------------------------------------------------- now


def show_now(visit: Visit) -> Response:
    """Show the state: tiers, sleep, working memory, hooks, and thirty days in bars."""
    return visit.show(
        "now.html",
        stats=visit.call(Status()),
        recent=visit.call(ListMemories(tier=Tier.WORKING, limit=RECENT_MAX)).memories,
        days=visit.call(Days()).days,
    )


# ------------------------------------------------------------------ search


def search(visit: Visit) -> Response:
    """Show the hits of a question with the reasons for each; without one, a list of memories.

    A mistake in a filter is shown in place of the hits, as a person is still typing.
    """
    chosen = pick_fields(visit, SEARCH_FIELDS)
    values: dict[str, Any] = {
        "chosen": chosen,
        "found": None,
        "page": None,
        "problem": "",
    }
    try:
        if "query" in chosen:
            limit = visit.fields.get("limit", str(HITS))
            asked = parse_text(Recall, {**chosen, "limit": limit, "explain": "true"})
            values["found"] = visit.call(asked)
            values["limit"] = asked.limit
        else:
            values["page"] = list_page(visit, ListMemories, chosen)
    except MnemosynedError as error:
        if error.kind is not Kind.INVALID:
            raise
        values["problem"] = error.message
    if not visit.is_fragment:  # the filters stay as they are while a person types
        values["sessions"] = visit.call(Sessions(limit=NAMES_MAX)).sessions
        values["sources"] = visit.call(Sources(limit=NAMES_MAX)).sources
    return visit.show("search.html", hits_max=HITS_MAX, tiers=list(Tier), **values)


def list_page(
    visit: Visit, verb: type[V], fields: Mapping[str, str], rows: int = ROWS
) -> Any:  # noqa: ANN401 the verb's result
    """Return a page of a list, from the cursor in the address on."""
    cursor = pick_fields(visit, ["after"])
    return visit.call(parse_text(verb, {**fields, **cursor, "limit": str(rows)}))


# ------------------------------------------------------------------ memory


@dataclass(frozen=True, slots=True)
class TracedSentence:
    """A sentence of a summary, with the source that says it."""

    text: str
    starts_line: bool
    source: int
    """The number of that source, from 1; 0 where none says most of it."""
    share: float
    """Share of the sentence's content words that this source has."""


def trace_sentences(summary: str, sources: Sequence[str]) -> Iterator[TracedSentence]:
    """Yield the sentences of a summary, each with the source that has most of its content words."""
    stems = [find_content_stems([source]) for source in sources]
    for sentence, starts_line in split_sentences(summary):
        wanted = find_content_stems([sentence])
        shares = [
            len(wanted & found) / len(wanted) if wanted else float(sentence in source)
            for found, source in zip(stems, sources, strict=True)
        ]
        share = max(shares, default=0.0)
        number = shares.index(share) + 1 if share >= SHARED_MIN else 0
        yield TracedSentence(sentence, starts_line, number, share)


def show_memory(visit: Visit) -> Response:
    """Show a memory, a summary with what it was made of, or a learning, by its id."""
    id = visit.field("id")
    try:
        got = visit.call(Get(id, history=True))
    except NotFound:
        learnings: list[Learning] = visit.call(
            Learnings(limit=LEARNINGS_MAX, superseded=True)
        ).learnings
        learning = next((each for each in learnings if each.id == id), None)
        if learning is None:
            raise
        return visit.show("learning.html", learning=learning)
    if got.memory:
        return visit.show("memory.html", memory=got.memory, got=got)
    return visit.show("summary.html", **read_provenance(visit, id))


def read_provenance(visit: Visit, id: str) -> dict[str, Any]:
    """Return a summary, its sources one level below, and its sentences traced to them."""
    expanded = visit.call(Expand(id, depth=1))
    sources: Sequence[Episode | MemoryRecord] = expanded.summaries or expanded.originals
    traced = list(
        trace_sentences(
            expanded.episode.content, [source.content for source in sources]
        )
    )
    return {"episode": expanded.episode, "sources": sources, "sentences": traced}


def show_edit(visit: Visit) -> Response:
    """Show the form to edit a memory; secrets are not masked, as they would be stored so."""
    memory = _read_whole(visit)
    return visit.show("edit.html", memory=memory, mark=_mark_of(memory))


def edit(visit: Visit) -> Response:
    """Change the words of a memory, or where it belongs, unless it changed meanwhile."""
    memory = _read_whole(visit)
    if _mark_of(memory) != visit.field("mark"):
        raise BatchChanged(
            "it was changed meanwhile: go back, reload the form, and edit it again"
        )
    text, tags = visit.field("text"), visit.fields.get("tags", "")
    changes: dict[str, Any] = {
        name: visit.fields.get(name, "")
        for name in ("session", "source", "role")
        # A field of one line comes back without line breaks, the words with those of Unix.
        if visit.fields.get(name, "")
        != re.sub("[\r\n]", "", getattr(memory, name) or "")
    }
    if tags != ",".join(memory.tags):
        changes["tags"] = [tag for tag in tags.split(",") if tag.strip()]
    if text != re.sub("\r\n?", "\n", memory.content):
        changes["text"] = text
    if not changes:
        return redirect_to("/memory", id=memory.id)
    done = visit.call(EditMemory([memory.id], if_text=memory.content, **changes))
    return visit.show(
        "receipt.html", title="Edited", done=done, kind="edit", id=memory.id
    )


def _read_whole(visit: Visit) -> MemoryRecord:
    """Return the memory with the id in the address, with its secrets. Raises `InvalidRequest`."""
    memory = visit.call(Get(visit.field("id"), reveal=True)).memory
    if memory is None:
        raise InvalidRequest(
            "a summary is not edited: edit the memories that it was made of"
        )
    return memory


def _mark_of(memory: MemoryRecord) -> str:
    """Return a mark that differs once the memory was edited."""
    fields = (memory.content, memory.session, memory.source, memory.role, memory.tags)
    return sha256(repr(fields).encode()).hexdigest()


def pin(visit: Visit) -> Response:
    """Pin a memory, or unpin it."""
    id = visit.field("id")
    visit.call(Pin([id]) if visit.field("pinned") == "true" else Unpin([id]))
    return redirect_to("/memory", id=id)


def restore(visit: Visit) -> Response:
    """Bring an original back to working memory."""
    done = visit.call(Restore(visit.field("id")))
    return redirect_to("/memory", id=done.id)


def change_ending(visit: Visit) -> Response:
    """Say that the ended statements of a memory still apply, or no longer."""
    id = visit.field("id")
    visit.call(UndoEnding(id, redo=visit.fields.get("redo") == "true"))
    return redirect_to("/memory", id=id)


def show_forget(visit: Visit) -> Response:
    """Show what forgetting would delete; without a selection, the form for one."""
    chosen = pick_fields(visit, SELECTING_FIELDS)
    preview = None
    if chosen:
        preview = visit.call(parse_text(Forget, {**chosen, "dry_run": "true"}))
    return visit.show(
        "forget.html", chosen=chosen, preview=preview, previewed_max=PREVIEWED_MAX
    )


def forget(visit: Visit) -> Response:
    """Forget just what a preview showed, and show the receipt."""
    chosen = pick_fields(visit, SELECTING_FIELDS)
    if chosen.keys() != {
        "id"
    }:  # an id selects the same always: its preview has no mark
        chosen["mark"] = visit.field("mark")
    done = visit.call(parse_text(Forget, chosen))
    return visit.show(
        "receipt.html", title="Forgotten", done=done, kind="forget", id=""
    )


# ---------------------------------------------------------------- timeline


def show_timeline(visit: Visit) -> Response:
    """Show the months with their summaries, and the last weeks as a calendar."""
    today = local_now().date()
    first = today - timedelta(days=today.weekday() + 7 * (RECENT_WEEKS - 1))
    return visit.show(
        "timeline.html",
        months=list_page(visit, ListMemories, {"level": "month"}, MONTHS),
        days=[] if "after" in visit.fields else read_days(visit, first, today),
        today=today,
    )


def read_days(visit: Visit, first: date, last: date) -> list[DayTotals]:
    """Return the counts of each day from `first` to `last`."""
    fields = {"since": first.isoformat(), "until": last.isoformat()}
    return visit.call(parse_text(Days, fields)).days


def show_period(visit: Visit) -> Response:
    """Show a month or week: its calendar, its summary, and its weeks and days."""
    unit = "week" if visit.path == "/week" else "month"
    asked = _read_day(visit)
    view = PeriodReader(visit.caller, ListMemories()).read_period(
        asked.isoformat(), "week" if unit == "week" else "month"
    )
    days = read_days(visit, view.first, view.last)
    before, after = view.first - timedelta(days=1), view.last + timedelta(days=1)
    return visit.show("period.html", view=view, days=days, before=before, after=after)


def show_day(visit: Visit) -> Response:
    """Show a day: its summary, its episodes, and its memories in order."""
    day = _read_day(visit)
    since, until = (
        in_zone(datetime.combine(midnight, time()), None)
        for midnight in (day, day + timedelta(days=1))
    )
    within: dict[str, Any] = {"since": since, "until": until, "order": ListOrder.OLDEST}
    cursor = visit.fields.get("after")
    page = visit.call(ListMemories(**within, after=cursor, limit=ROWS))
    reader = PeriodReader(visit.caller, ListMemories())
    return visit.show(
        "day.html",
        day=day,
        summary=reader.read_summaries("day", day, day).get(day),
        episodes=visit.call(ListMemories(**within, level="episode", limit=ROWS)),
        page=page,
        before=day - timedelta(days=1),
        after=day + timedelta(days=1),
    )


def _read_day(visit: Visit) -> date:
    """Return the day in the address. Raises `InvalidRequest` for a text that is none."""
    try:
        day = date.fromisoformat(visit.field("day"))
    except ValueError:
        day = date.min
    # The days around it are shown, too.
    if not date.min + timedelta(days=40) < day < date.max - timedelta(days=40):
        raise InvalidRequest(
            "day is a date such as 2026-03-09; follow a link of the timeline"
        )
    return day


MEMORY_ROUTES = {
    "/": PageRoute(show_now),
    "/search": PageRoute(search),
    "/memory": PageRoute(show_memory),
    "/edit": PageRoute(show_edit, edit),
    "/pin": PageRoute(change=pin),
    "/restore": PageRoute(change=restore),
    "/applies": PageRoute(change=change_ending),
    "/forget": PageRoute(show_forget, forget),
    "/timeline": PageRoute(show_timeline),
    "/month": PageRoute(show_period),
    "/week": PageRoute(show_period),
    "/day": PageRoute(show_day),
}
