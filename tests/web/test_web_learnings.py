"""The pages on what was learned and on facts that ended: what they show, change and refuse."""

from __future__ import annotations

import pytest
from web.visitor import Visitor, inject, say

from mnemosyned import Memory
from mnemosyned.memory.values import LearningKind

# ------------------------------------------------------------------ learnings


def test_an_empty_memory_says_how_it_learns(visitor: Visitor) -> None:
    assert "Nothing was learned yet" in visitor.get("/learnings").text
    assert "No newer statement ended" in visitor.get("/ended").text


def test_the_list_says_where_a_learning_applies(
    visitor: Visitor, memory: Memory
) -> None:
    (said,) = say(memory, "In this repo we use pnpm, never npm.")
    stated = memory.learn("Always taste the soup first.", source="cook").learning.id
    memory.edit_briefing(stated, pin=True)

    page = visitor.get("/learnings")

    assert "In this repo we use pnpm, never npm." in page.text
    assert "instruction in every project · team · chat" in page.text
    assert "lesson in every project · default · cook pinned" in page.text
    assert f"/memory?id={said}" in page.links
    assert f"/unlearn?id={stated}" in page.links


def test_learnings_are_filtered_by_four_fields(
    visitor: Visitor, memory: Memory
) -> None:
    say(memory, "I prefer tabs over spaces.", "I prefer spaces over tabs.")
    memory.learn("Always taste the soup first.", source="cook")

    def shown(**fields: str) -> list[bool]:
        text = visitor.get("/learnings", **fields).text
        return [each in text for each in ("tabs over", "spaces over", "the soup")]

    assert shown() == [False, True, True]
    assert shown(superseded="true") == [True, True, True]
    assert shown(query="SOUP taste") == [False, False, True]
    assert shown(source="cook") == [False, False, True]
    assert shown(kind="preference") == [False, True, False]
    assert "Nothing matches" in visitor.get("/learnings", query="nobody").text
    assert visitor.get("/learnings", kind="nonsense").status == 400
    assert visitor.get("/learnings", after="nonsense").status == 400


def test_a_learning_shows_what_it_replaced(visitor: Visitor, memory: Memory) -> None:
    say(memory, "I prefer tabs over spaces.", "I prefer spaces over tabs.")
    new, old = memory.learnings(superseded=True)

    page = visitor.get("/memory", id=new.id)
    former = visitor.get("/memory", id=old.id)

    assert "I prefer spaces over tabs." in page.text
    assert "team · chat · user" in page.text
    assert "What it replaced" in page.text
    assert f"/memory?id={old.id}" in page.links
    assert "A newer learning replaced it" in former.text
    assert f"/memory?id={new.id}" in former.links


def test_an_added_learning_is_shown(visitor: Visitor, memory: Memory) -> None:
    memory.learn("Always use tabs.", kind=LearningKind.INSTRUCTION)

    page = visitor.post(
        "/learn", content="Always use spaces.", kind="instruction", source=""
    )

    (learning,) = memory.learnings()
    assert (page.status, page.headers["Location"]) == (303, f"/memory?id={learning.id}")
    assert (learning.text, learning.kind) == ("Always use spaces.", "instruction")
    assert learning.source is None
    assert "Always use tabs." in visitor.follow(page.headers["Location"]).text
    assert visitor.post("/learn", content="  ", kind="lesson").status == 400
    assert visitor.post("/learn", content="x", kind="nonsense").status == 400


def test_a_learning_is_reworded_once(visitor: Visitor, memory: Memory) -> None:
    text = "Taste\u202e the soup:\nalways first."
    id = memory.learn(text).learning.id
    mark = visitor.get("/memory", id=id).field("mark")

    done = visitor.post("/reword", id=id, mark=mark, text="Taste it\r\nfirst.")
    late = visitor.post("/reword", id=id, mark=mark, text="Taste it last.")

    assert (done.status, done.headers["Location"]) == (303, f"/memory?id={id}")
    assert late.status == 409
    assert [each.text for each in memory.learnings()] == ["Taste it\nfirst."]


def test_removing_removes_just_what_it_showed(visitor: Visitor, memory: Memory) -> None:
    say(memory, "I prefer tabs over spaces.", "I prefer spaces over tabs.")
    memory.learn("Always taste the soup first.")
    (wrong,) = memory.learnings(query="spaces over")
    inject(memory, wrong.id, prompt="tabs?")
    memory.edit_briefing(wrong.id, pin=True)

    page = visitor.get("/unlearn", id=wrong.id)
    gone, _, back = page.text.partition("This would be in force again")

    assert "Prefers spaces over tabs" in gone
    assert "your changes to it in briefings" in gone
    assert "Prefers tabs over spaces" in back
    assert len(memory.learnings()) == 2

    done = visitor.post("/unlearn", id=wrong.id, mark=page.field("mark"))

    assert (done.status, done.headers["Location"]) == (303, "/learnings")
    assert {each.text for each in memory.learnings()} == {
        "Prefers tabs over spaces",
        "Always taste the soup first.",
    }
    assert memory.injections().injections[0].lines == ()
    assert visitor.get("/unlearn", id=wrong.id).status == 404
    assert visitor.post("/unlearn", id=wrong.id, mark=page.field("mark")).status == 404


def test_a_changed_learning_is_not_removed(visitor: Visitor, memory: Memory) -> None:
    say(memory, "I prefer tabs over spaces.", "I prefer spaces over tabs.")
    new, old = memory.learnings(superseded=True)
    mark = visitor.get("/unlearn", id=new.id).field("mark")

    memory.edit_learning(old.id, text="Prefers tabs over all.")
    page = visitor.post("/unlearn", id=new.id, mark=mark)

    assert page.status == 409
    assert "it has changed: go back" in page.text
    assert len(memory.learnings(superseded=True)) == 2


# ---------------------------------------------------------------------- ended


@pytest.fixture
def ended(memory: Memory) -> list[str]:
    """The ids of two memories, of which the newer one ended what the older one says."""
    ids = say(
        memory, "The API listens on port 8080.", "The API now listens on port 9090."
    )
    memory.endings()
    return ids


def test_both_sentences_of_an_ending_show(visitor: Visitor, ended: list[str]) -> None:
    page = visitor.get("/ended")

    older, newer = "The API listens on port 8080.", "The API now listens"
    assert page.text.index(older) < page.text.index(newer)
    assert "another from then on" in page.text
    assert {f"/memory?id={id}" for id in ended} <= set(page.links)


def test_what_still_applies_is_said_by_a_button_and_taken_back(
    visitor: Visitor, memory: Memory, ended: list[str]
) -> None:
    old, _ = ended

    done = visitor.post("/ended", id=old)

    assert (done.status, done.headers["Location"]) == (303, f"/ended?id={old}")
    assert "you said that it still applies" in visitor.follow(f"/ended?id={old}").text
    assert memory.get(old).ended == []
    assert "No newer statement ended an older one." in visitor.get("/ended").text
    for undone in ("true", "all"):
        page = visitor.get("/ended", undone=undone)
        assert "It no longer applies" in page.text

    visitor.post("/ended", id=old, redo="true")

    assert len(memory.get(old).ended) == 1
    assert "still applies of nothing" not in visitor.get("/ended").text
    assert (
        "You said of nothing that it still" in visitor.get("/ended", undone="true").text
    )
    assert visitor.post("/ended", id=old, redo="true").status == 404
    assert visitor.post("/ended", id="unknown").status == 404
    assert visitor.get("/ended", undone="nonsense").status == 400
