"""Changes with a preview of both texts: an edit, and a newer memory that supersedes one."""

from __future__ import annotations

import re

from support.cases import each_case
from web.visitor import Page, Visitor

from mnemosyned import Memory
from mnemosyned.conversation.archived import WHOLE
from mnemosyned.web.application import COMPARED_MAX, mark_changes


def words_in(page: Page, element: str) -> list[str]:
    return re.findall(rf"<{element}[^>]*>(.*?)</{element}>", page.source)


@each_case(
    ("before", "after", "removed", "added"),
    [
        ("We deploy on Tuesday.", "We deploy on Monday.", ["Tuesday"], ["Monday"]),
        ("来週の火曜日です", "来週の水曜日です", ["火"], ["水"]),
        ("one two three", "one three", ["two "], []),
        ("one two", "four five", ["one two"], ["four five"]),
        ("a  b", "a b", ["  "], [" "]),
        ("", "a < b", [], ["a &lt; b"]),
        ("same", "same", [], []),
        ("left \u202eright", "left", [" \\u202eright"], []),
    ],
)
def test_the_words_that_changed_are_marked(
    before: str, after: str, removed: list[str], added: list[str]
) -> None:
    old, new = mark_changes(before, after)

    assert re.findall("<del>(.*?)</del>", old) == removed
    assert re.findall("<ins>(.*?)</ins>", new) == added


def test_a_long_change_is_marked_as_a_whole() -> None:
    words = COMPARED_MAX // 100
    before, after = "a " + "b c " * words + "z", "a " + "d e " * words + "z"

    old, new = mark_changes(before, after)

    assert old == f"a <del>{'b c ' * words}</del>z".replace(" </del>", "</del> ")
    assert new.count("<ins>") == 1


def test_an_edit_shows_both_texts_first(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesday.\nAda", id="m", session="work", tags=["a"])
    form = visitor.get("/edit", id="m")
    fields = {"id": "m", "mark": form.field("mark"), "tags": "a"}
    text = 'We deploy on "Monday".\nAda'

    shown = visitor.post("/edit/preview", text=text, session="ops", **fields)

    assert words_in(shown, "del") == ["Tuesday", "work"]
    assert words_in(shown, "ins") == ["&#34;Monday&#34;", "ops"]
    assert memory.get("m").memory.edited_at is None  # type: ignore[union-attr]
    assert (shown.field("text"), shown.field("session")) == (text, "ops")

    sent = {name: shown.field(name) for name in ("text", "session", "source", "role")}
    assert "Changed 1 memory" in visitor.post("/edit", **fields, **sent).text
    assert memory.get("m").memory.content == text  # type: ignore[union-attr]


def test_the_preview_of_an_edit_refuses_what_changed_meanwhile(
    visitor: Visitor, memory: Memory
) -> None:
    memory.remember("first", id="m", session="s")
    mark = visitor.get("/edit", id="m").field("mark")
    memory.edit(["m"], text="second")

    late = {"id": "m", "mark": mark, "text": "third", "session": "s"}
    for path in ("/edit/preview", "/edit"):
        assert visitor.post(path, **late).status == 409
    assert memory.get("m").memory.content == "second"  # type: ignore[union-attr]
    unchanged = visitor.get("/edit", id="m").field("mark")
    same = {"id": "m", "mark": unchanged, "text": "second", "session": "s"}
    assert visitor.post("/edit/preview", **same).status == 303


def test_a_memory_is_superseded_and_back(visitor: Visitor, memory: Memory) -> None:
    memory.remember(
        "The API listens on port 8080.",
        id="old",
        session="team",
        source="chat",
        importance=0.9,
        pinned=True,
        metadata={"ticket": 7, WHOLE: {"content": "The API listens on port 8080."}},
        tags=["api"],
    )
    memory.remember("The API of the shop listens on port 9090.", id="later")

    form = visitor.get("/supersede", id="old")
    (since,) = [link for link in form.links if "query=" in link]
    assert "later" in " ".join(visitor.follow(since).links)
    assert (
        "No later memory is clearly relevant"
        in visitor.get("/supersede", id="old", query="volcanoes").text
    )
    taken = visitor.get("/supersede", id="old", **{"from": "later"})
    assert "The API of the shop listens on port 9090.</textarea>" in taken.source

    text = "The API listens on port 9090."
    shown = visitor.post("/supersede/preview", id="old", text=text)
    assert (words_in(shown, "del"), words_in(shown, "ins")) == (["8080"], ["9090"])
    assert memory.get("old").memory.superseded_at is None  # type: ignore[union-attr]

    fields = {name: shown.field(name) for name in ("id", "mark", "new", "text")}
    for _ in range(2):  # a button that is pressed twice stores one memory
        done = visitor.post("/supersede", **fields)
        assert done.headers["Location"] == "/memory?id=old"
    again = visitor.post("/supersede", **{**fields, "new": "another"})
    assert "no newer one supersedes" in again.text
    newer = memory.get(fields["new"]).memory
    assert newer
    assert (newer.content, newer.session, newer.source) == (text, "team", "chat")
    assert (newer.role, newer.tags) == ("user", ("api",))
    assert (newer.importance, newer.pinned, newer.metadata) == (
        0.9,
        True,
        {"ticket": 7},
    )
    assert len(memory.list().memories) == 2  # the older one is listed no more

    after = visitor.get("/memory", id="old")
    assert "Superseded" in after.text
    assert "says otherwise" not in after.text
    preview = visitor.follow(
        next(link for link in after.links if link.startswith("/forget?id=" + newer.id))
    )
    assert "Hold again old" in preview.text
    receipt = visitor.post("/forget", id=newer.id, mark=preview.field("mark"))
    assert "Holds again old" in receipt.text
    assert memory.get("old").memory.superseded_at is None  # type: ignore[union-attr]


def test_only_words_that_hold_are_superseded(visitor: Visitor, memory: Memory) -> None:
    memory.remember("first", id="a", session="s")
    memory.remember("second", id="b", session="s", supersedes="a")
    memory.sleep(force=True)
    episode = memory.list(level="episode").episodes[0]

    for id in ("a", episode.id):
        assert visitor.get("/supersede", id=id).status == 400
    assert visitor.get("/supersede", id="missing").status == 404
    mark = visitor.post("/supersede/preview", id="b", text="third").field("mark")
    empty = visitor.post("/supersede", id="b", mark=mark, new="n", text=" ")
    assert (empty.status, len(memory.list().memories)) == (400, 1)


def test_a_changed_memory_is_not_superseded(visitor: Visitor, memory: Memory) -> None:
    memory.remember("The API listens on port 8080.", id="old", session="s")
    preview = visitor.post("/supersede/preview", id="old", text="On port 9090.")
    memory.edit(["old"], text="The API and the shop listen on port 8080.")

    fields = {name: preview.field(name) for name in ("id", "mark", "new", "text")}
    assert visitor.post("/supersede", **fields).status == 409
    assert memory.get("old").memory.superseded_at is None  # type: ignore[union-attr]


def test_a_superseded_secret_is_masked(visitor: Visitor, memory: Memory) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"  # noqa: S105 made up
    metadata = {"note": f"It was {secret}"}
    memory.remember(f"The API key is {secret}", id="m", metadata=metadata)

    assert secret not in visitor.get("/supersede", id="m").source
    preview = visitor.post("/supersede/preview", id="m", text="It has no key.")
    assert secret not in preview.source
    fields = {name: preview.field(name) for name in ("id", "mark", "new", "text")}
    assert visitor.post("/supersede", **fields).status == 303
    newer = memory.get(fields["new"], reveal=True).memory
    assert newer
    assert newer.metadata == metadata
