"""Everything about a name, a project or a source, and the list of these."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from support.cases import each_case
from web.test_web_zoom import bars
from web.visitor import Visitor, inject, say

from mnemosyned import Memory
from mnemosyned.memory.capture import AgentSession
from mnemosyned.web.memory_pages import BARS_MAX, count_by_period, count_names

GIVEN = {
    "session": "shop",
    "project": "git:example.org/shop",
    "prompt": "who does releases?",
}
NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
PROJECT = "git:example.org/shop"
TOPICS = (
    "tabs invoices disks keyboards bread tests lights maps trains songs rivers chairs"
).split()


def keep_session(memory: Memory) -> None:
    """Let the session `shop` be one of the project."""
    memory._caller.store.agents.keep_session(  # type: ignore[attr-defined]  # noqa: SLF001 a hook does so
        AgentSession(
            session="shop",
            client="codex",
            conversation="1",
            started_at=NOON,
            seen_at=NOON,
            project=PROJECT,
        )
    )


def test_all_about_a_name_stands_on_one_page(visitor: Visitor, memory: Memory) -> None:
    later = NOON + timedelta(days=9)
    say(memory, "The API of Ada listens on port 8080.", id="old", created_at=NOON)
    say(memory, "The API of Ada now listens on port 9090.", id="new", created_at=later)
    say(memory, "Bob likes tea.", id="other")
    lesson = memory.learn("Ask Ada before a release.").learning.id
    memory.endings()
    inject(memory, "old", "The API of Ada listens on port 8080.", at=NOON, **GIVEN)

    page = visitor.get("/subject", name="Ada")

    state = page.text[page.text.index("What bears on it") :]
    assert state.index("port 9090") < state.index("port 8080")
    assert "No longer applies: The API of Ada listens on port 8080." in state
    assert {f"/memory?id={id}" for id in ("old", "new", lesson)} <= set(page.links)
    assert "/memory?id=other" not in page.links
    assert len(bars(page)) == 10
    assert "who does releases?" in page.text
    assert {"/search?query=Ada", "/forget?person=Ada"} <= set(page.links)
    older = page.text[page.text.index("All memories") :]
    assert older.index("port 9090") < older.index("port 8080")


def test_projects_and_sources_have_pages(visitor: Visitor, memory: Memory) -> None:
    keep_session(memory)
    shop = {"session": "shop", "source": "codex"}
    say(memory, "Always use tabs in this shop.", id="rule", **shop)
    say(memory, "We moved to Postgres.", id="moved", **shop)
    memory.remember("Never call me Bob.", id="home", session="home", source="chat")
    inject(memory, "rule", "Always use tabs in this shop.", at=NOON, **GIVEN)

    project = visitor.get("/subject", project=PROJECT)
    source = visitor.get("/subject", source="codex")

    for page in (project, source):
        assert "/memory?id=moved" in page.links
        assert "/memory?id=home" not in page.links
        assert "Never call me Bob" not in page.text
        assert "who does releases?" in page.text
        assert "Learnings in force" in page.text
    assert any(link.startswith("/briefing?project=") for link in project.links)
    subjects = visitor.get("/subjects")
    for link in ("project=git%3Aexample.org%2Fshop", "source=codex", "name=Postgres"):
        assert f"/subject?{link}" in subjects.links
    page = visitor.get("/memory", id="moved")
    assert "/subject?source=codex" in page.links


def test_lists_say_what_they_leave_out(visitor: Visitor, memory: Memory) -> None:
    for word in TOPICS[:8]:
        memory.learn(f"{word} concern Ada.", source="chat")
    memory.remember("Ada likes tea.", id="old")
    for _ in range(13):
        inject(memory, "old", "Ada likes tea.", at=NOON, **GIVEN)

    name = visitor.get("/subject", name="Ada")
    project = visitor.get("/subject", project=PROJECT)
    source = visitor.get("/subject", source="chat")

    for page, link in ((name, "query=Ada"), (source, "source=chat")):
        assert "and 3 more, among all learnings" in page.text
        assert f"/learnings?{link}" in page.links
    for page, address in (
        (name, "/injections"),
        (project, "/injections?project=git%3Aexample.org%2Fshop"),
    ):
        assert "and 3 more, among all injections" in page.text
        assert address in page.links


def test_all_learnings_of_a_project_are_shown(visitor: Visitor, memory: Memory) -> None:
    keep_session(memory)
    for word in TOPICS:
        memory.remember(f"Always use {word} in this shop.", session="shop", role="user")

    page = visitor.get("/subject", project=PROJECT)

    for word in TOPICS:
        assert f"use {word}" in page.text[: page.text.index("All memories")]


def test_the_line_of_a_name_says_if_it_is_cut(visitor: Visitor, memory: Memory) -> None:
    for number in range(202):
        memory.remember(
            f"Ada wrote line {number}.",
            id=f"n{number}",
            created_at=NOON - timedelta(days=number // 8),
        )

    first = visitor.get("/subject", name="Ada")
    memory.forget(["n0", "n1"])
    second = visitor.get("/subject", name="Ada")

    assert "The newest 200 memories; each bar" in first.text
    assert "When 200 memories; each bar" in second.text


def test_an_unknown_subject_is_empty_and_none_is_refused(visitor: Visitor) -> None:
    assert "Nothing is kept of it." in visitor.get("/subject", name="Zzyzx").text
    assert "Nothing is kept of it." in visitor.get("/subject", project="none").text
    assert "Nothing is remembered yet." in visitor.get("/subjects").text
    for fields in ({}, {"name": "a", "source": "b"}, {"name": "!?"}):
        assert visitor.get("/subject", **fields).status == 400


def test_names_are_counted_by_texts_and_speakers() -> None:
    texts = [
        (NOON, "user", "We met Keiko and Keiko in the office on Fridays."),
        (NOON + timedelta(days=1), "Noor", "I told Keiko about it."),
        (NOON, "assistant", "昨日、田中さんと話した。"),
    ]

    found = {name: (count, last) for name, count, last in count_names(texts)}

    assert found == {
        "Keiko": (2, NOON + timedelta(days=1)),
        "Noor": (1, NOON + timedelta(days=1)),
        "田中": (1, NOON),
    }


def test_of_many_names_those_in_one_text_are_left_out() -> None:
    texts = [
        (NOON, "", f"It was Ada's idea, and Name{at:c} knew.") for at in range(65, 90)
    ]

    assert [name for name, *_ in count_names(texts)] == ["Ada"]


@each_case(
    ("days", "unit", "bars"),
    [
        (["2026-03-09"], "day", 1),
        (["2026-03-01", "2026-03-05", "2026-03-05"], "day", 5),
        (["2026-01-01", "2026-06-30"], "week", 27),
        (["2020-01-31", "2026-03-09"], "month", 75),
        (["0001-01-01", "9999-12-31"], "month", BARS_MAX),
    ],
)
def test_periods_fit_the_line(days: list[str], unit: str, bars: int) -> None:
    found, periods = count_by_period(map(date.fromisoformat, days))

    assert (found, len(periods)) == (unit, bars)
    if bars < BARS_MAX:
        assert sum(each.memories for each in periods) == len(days)
