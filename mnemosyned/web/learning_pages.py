"""Pages on what was learned, and on facts that newer ones ended, with their changes."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Any

from mnemosyned.errors import BatchChanged, NotFound
from mnemosyned.http_messages import Response
from mnemosyned.memory.values import LearningKind
from mnemosyned.verbs.conversation import (
    EditLearning,
    Endings,
    Learn,
    Learnings,
    RemoveLearning,
    UndoEnding,
)
from mnemosyned.verbs.memories import Get
from mnemosyned.web.application import Visit, make_change, redirect_to

ROWS = "30"


def show_learnings(visit: Visit) -> Response:
    """Show what was learned, the newest first, with the form to add to it."""
    chosen = visit.pick(("query", "source", "kind", "superseded"))
    page = visit.ask(Learnings, chosen | visit.pick(["after"]), limit=ROWS)
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
    page = visit.ask(Endings, asked, limit=ROWS, at_once="true")
    return visit.show("ended.html", chosen=chosen, page=page)


LEARNING_ROUTES = {
    "GET /learnings": show_learnings,
    "POST /learn": learn,
    "POST /reword": change_learning,
    "GET /unlearn": show_learning,
    "POST /unlearn": change_learning,
    "GET /ended": show_ended,
    "POST /ended": make_change(UndoEnding, ["id", "redo"], "/ended", ["id"]),
}
