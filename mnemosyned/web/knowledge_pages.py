"""Pages on what is known: learnings, ended facts, and all about a name, a project or a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Any

from mnemosyned.errors import BatchChanged, InvalidRequest, NotFound
from mnemosyned.http_messages import Response
from mnemosyned.instants import day_at, in_zone
from mnemosyned.memory.forgetting import name_matcher
from mnemosyned.memory.values import LearningKind
from mnemosyned.summary.grounding.names import find_unknown_names
from mnemosyned.summary.rollup import SPEAKERS
from mnemosyned.text.languages.tables import WEEKDAYS
from mnemosyned.verbs.conversation import (
    EditLearning,
    Endings,
    Injections,
    Learn,
    Learnings,
    RemoveLearning,
    UndoEnding,
)
from mnemosyned.verbs.listing import DayTotals, ListMemories, Projects
from mnemosyned.verbs.memories import Get, Recall
from mnemosyned.web.application import Visit, make_change, redirect_to

LEARNING_ROWS = "30"


def show_learnings(visit: Visit) -> Response:
    """Show what was learned, the newest first, with the form to add to it."""
    chosen = visit.pick(("query", "source", "kind", "superseded"))
    page = visit.ask(Learnings, chosen | visit.pick(["after"]), limit=LEARNING_ROWS)
    kinds = list(LearningKind)
    return visit.show("learnings.html", chosen=chosen, page=page, kinds=kinds)


def learn(visit: Visit) -> Response:
    """Store a learning, and lead to its page with the replaced learnings."""
    learned = visit.ask(Learn, ("content", "kind", "source"))
    return redirect_to("/memory", id=learned.learning.id)


def read_learning(visit: Visit) -> dict[str, Any]:
    """Return a learning, the replaced learnings, and a mark of their words. Raises `NotFound`."""
    id = visit.field("id")
    page = visit.call(Learnings(id=id))
    for learning in page:
        if learning.id == id:
            replaced = [each for each in page if each.superseded_by == id]
            words = [(each.id, each.text) for each in (learning, *replaced)]
            mark = sha256(repr(words).encode()).hexdigest()
            return {
                "page": page,
                "learning": learning,
                "replaced": replaced,
                "mark": mark,
            }
    raise NotFound(f"no memory, summary or learning has the id {id!r}; search for it")


def show_learning(visit: Visit) -> Response:
    """Show a learning with the memory it was said in, and the form to reword it; or its removal."""
    shown = read_learning(visit)
    if visit.request.path == "/unlearn":
        return visit.show("unlearn.html", **shown)
    said = None
    with suppress(NotFound):  # it was forgotten just now
        if shown["learning"].memory:
            said = visit.call(Get(shown["learning"].memory)).memory
    return visit.show("learning.html", said=said, **shown)


def change_learning(visit: Visit) -> Response:
    """Reword or remove a learning, unless it changed since the page of the form was shown."""
    shown = read_learning(visit)
    if shown["mark"] != visit.field("mark"):
        raise BatchChanged("it has changed: go back, and reload the page")
    if visit.request.path == "/unlearn":
        visit.call(RemoveLearning(visit.field("id")))
        return redirect_to("/learnings")
    visit.ask(EditLearning, ("id", "text"))
    return redirect_to("/memory", id=visit.field("id"))


def show_ended(visit: Visit) -> Response:
    """Show what newer statements ended: all in force, of one memory, or those that were undone."""
    chosen = visit.pick(("id", "undone"))
    asked = {"undone": "all" if "id" in chosen else "false", **chosen}
    if asked["undone"] == "all":
        del asked["undone"]
    asked |= visit.pick(["after"])
    page = visit.ask(Endings, asked, limit=LEARNING_ROWS, at_once="true")
    return visit.show("ended.html", chosen=chosen, page=page)


NEWEST, MONTHS, DAYS = 200, 12, 30
"""Memories and summaries whose names are listed, the newest ones."""
READ_CHARS_MAX = 4_000
NAMES_MAX, FEW_NAMES = 60, 20
ROWS, FURTHER = "50", "150"
"""Memories of a page, and those after them whose days are drawn on the first."""
BARS_MAX = 360
LEDGER_ROWS = "200"
KINDS = {"name": "query", "project": "project", "source": "source"}
"""Filter of lists by the kind of a subject."""


_NO_NAMES = frozenset(f"{day}s" for day in WEEKDAYS)


def count_names(
    texts: Iterable[tuple[datetime, str, str]],
) -> list[tuple[str, int, datetime]]:
    """Return names in texts with their number and newest time, the most named first.

    Each text comes with its time and its speaker. Beyond `FEW_NAMES`, those in one text are left out.
    """
    moments: dict[str, list[datetime]] = {}
    for moment, speaker, text in texts:
        found = find_unknown_names(text[:READ_CHARS_MAX], _NO_NAMES, "")
        names = {name.removesuffix("'s") for name in found}
        if speaker.casefold() not in SPEAKERS:
            names.add(speaker)
        for name in names:
            if len(name) > 1 or not name.isascii():
                moments.setdefault(name, []).append(moment)
    # One text alone often has a word that only looks like a name.
    least = 1 if len(moments) <= FEW_NAMES else 2
    listed = [
        (name, len(said), max(said))
        for name, said in moments.items()
        if len(said) >= least
    ]
    return sorted(listed, key=lambda each: (-each[1], each[0]))[:NAMES_MAX]


def count_by_period(days: Iterable[date]) -> tuple[str, list[DayTotals]]:
    """Return a unit, as short as 60 bars allow, and how many days are in each such period."""
    ordered = sorted(days)
    span = (ordered[-1] - ordered[0]).days
    unit, length = next(
        (each for each in (("day", 1), ("week", 7)) if span <= 60 * each[1]),
        ("month", 31),
    )

    def begin_of(day: date) -> date:
        """Return the first day of the period of a day."""
        if unit == "month":
            return day.replace(day=1)
        return day - timedelta(days=day.weekday()) if unit == "week" else day

    counts = Counter(map(begin_of, ordered))
    periods, begin = list[DayTotals](), begin_of(ordered[0])
    while begin <= ordered[-1]:
        periods.append(DayTotals(begin, counts[begin], 0))
        following = day_at(begin, length)
        if following is None:
            break
        begin = begin_of(following)
    return unit, periods[-BARS_MAX:]


def show_subjects(visit: Visit) -> Response:
    """Show projects, and the names and sources in the newest memories and summaries."""
    newest = visit.call(ListMemories(limit=NEWEST)).memories
    months = visit.call(ListMemories(level="month", limit=MONTHS)).episodes
    days = visit.call(ListMemories(level="day", limit=DAYS)).episodes
    texts = [(each.created_at, each.role, each.content) for each in newest]
    texts += [(each.covers_until, "", each.content) for each in (*days, *months)]
    return visit.show(
        "subjects.html",
        projects=visit.call(Projects()).projects,
        names=count_names(texts),
        sources=sorted({each.source for each in newest if each.source}),
    )


def show_subject(visit: Visit) -> Response:
    """Show a name, project or source: facts, when it came up, and memories, page by page."""
    subject = visit.pick(KINDS)
    if len(subject) != 1:
        raise InvalidRequest(
            "give one name, project or source; the page Subjects has them"
        )
    ((kind, name),) = subject.items()
    within = {KINDS[kind]: name}
    page = visit.ask(ListMemories, within | visit.pick(["after"]), limit=ROWS)
    values: dict[str, Any] = {"kind": kind, "name": name, "page": page, "episodes": []}
    if "after" not in visit.fields:
        drawn, next = list(page.memories), page.next
        if next:
            further = visit.ask(ListMemories, within, after=next, limit=FURTHER)
            drawn, next = [*drawn, *further.memories], further.next
        days = [in_zone(each.created_at, None).date() for each in drawn]
        values["line"] = count_by_period(days) if days else None
        values |= {"drawn": len(days), "is_cut": bool(next)}
        asked = {} if kind == "project" else within  # learnings have no such filter
        learned = visit.ask(Learnings, asked, limit="1000")
        values["learnings"] = [
            each
            for each in learned.learnings
            if kind != "project" or learned.projects.get(each.id) == name
        ]
        values["found"] = visit.ask(Recall, within) if kind == "name" else None
        if kind != "name":
            listed = visit.ask(ListMemories, within, level="episode", limit="10")
            values["episodes"] = listed.episodes
        asked = within if kind == "project" else {}
        is_named = name_matcher(name)
        values["injections"] = [
            injection
            for injection in visit.ask(Injections, asked, limit=LEDGER_ROWS).injections
            if asked
            or is_named(
                " ".join([injection.client, *(one.text for one in injection.lines)])
            )
        ]
    return visit.show("subject.html", **values)


KNOWLEDGE_ROUTES = {
    "GET /learnings": show_learnings,
    "POST /learn": learn,
    "POST /reword": change_learning,
    "GET /unlearn": show_learning,
    "POST /unlearn": change_learning,
    "GET /ended": show_ended,
    "POST /ended": make_change(UndoEnding, ["id", "redo"], "/ended", ["id"]),
    "GET /subjects": show_subjects,
    "GET /subject": show_subject,
}
