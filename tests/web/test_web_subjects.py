"""Everything about a name, a project or a source, the list of these, and the line of time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
import tzlocal
from support.cases import each_case
from support.fakes import agent_session
from web.visitor import Page, Visitor, inject, say

from mnemosyned import Memory, Remember
from mnemosyned.web import memory_pages
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


def bars(page: Page) -> dict[str, str]:
    """The link of each bar of a page's line by its name."""
    line = re.findall(r'<figure class="bars line">.*?</figure>', page.source, re.DOTALL)
    found = re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"', "".join(line))
    return {name: link.replace("&amp;", "&") for link, name in found}


def keep_session(memory: Memory) -> None:
    """Let the session `shop` be one of the project."""
    memory._caller.store.agents.keep_session(  # type: ignore[attr-defined]  # noqa: SLF001 a hook does so
        agent_session("shop", PROJECT, NOON)
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

    state = page.text[page.text.index("Relevant memories") :]
    assert state.index("port 9090") < state.index("port 8080")
    assert ": The API of Ada listens on port 8080. Then: " in state
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
    (forget,) = (each for each in project.links if each.startswith("/forget?project="))
    preview = visitor.get("/forget", project=PROJECT)
    assert forget == "/forget?project=git%3Aexample.org%2Fshop"
    assert "Forget 2 memories and 1 learning" in preview.text


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
    moments = [NOON - timedelta(days=number // 8) for number in range(202)]
    memory.remember_many(
        [
            Remember(f"Ada wrote line {number}.", id=f"n{number}", created_at=moment)
            for number, moment in enumerate(moments)
        ]
    )

    first = visitor.get("/subject", name="Ada")
    memory.forget(["n0", "n1"])
    second = visitor.get("/subject", name="Ada")

    assert "The newest 200 memories; each bar" in first.text
    assert "When 200 memories; each bar" in second.text


def test_an_unknown_subject_is_empty_and_none_is_refused(visitor: Visitor) -> None:
    assert "No memory is about it." in visitor.get("/subject", name="Zzyzx").text
    assert "No memory is about it." in visitor.get("/subject", project="none").text
    assert "Nothing is remembered yet." in visitor.get("/subjects").text
    for fields in ({}, {"name": "a", "source": "b"}, {"name": "!?"}):
        assert visitor.get("/subject", **fields).status == 400


def test_names_are_counted_by_texts_and_speakers() -> None:
    texts = [
        (NOON, "user", "We met Keiko and Keiko in the office on Fridays."),
        (NOON + timedelta(days=1), "Noor", "I told Keiko about it."),
        (NOON, "assistant", "昨日、田中さんと話した。"),
        (NOON, "user", "Drop Noor. The disk has 64 GB."),
        (NOON, "user", "Yes, we met KEIKO there, and Frau Kessler."),
        (NOON, "user", "Die Heizung ist kaputt. Herr Kessler kommt mit."),
        (NOON, "user", "Schönes Wochenende!"),
        (NOON, "user", "Zahnarzt 9 Uhr 30, Probe eine Stunde"),
    ]

    found = {name: (count, last) for name, count, last in count_names(texts)}

    assert found == {
        "Keiko": (3, NOON + timedelta(days=1)),
        "Kessler": (2, NOON),
        "Noor": (2, NOON + timedelta(days=1)),
        "田中": (1, NOON),
    }


def test_of_many_names_those_in_one_text_are_left_out() -> None:
    texts = [
        (NOON, "", f"It was Ada's idea, and Name{at:c} knew.") for at in range(65, 90)
    ]

    assert [name for name, *_ in count_names(texts)] == ["Ada"]


@pytest.mark.thorough
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


# The line of time: from all months by links to a day and its hours, in the zone of this machine.


def test_the_line_zooms_from_months_to_hours(visitor: Visitor, memory: Memory) -> None:
    memory.remember("the first", created_at="2025-12-30T10:00:00Z")
    for minute in range(3):
        memory.remember(
            f"tea {minute}",
            id=f"tea{minute}",
            created_at=f"2026-03-09T17:0{minute}:00Z",
        )
    memory.remember("later", id="later", created_at="2026-03-09T18:00:00Z")

    months = bars(visitor.get("/timeline"))
    assert list(months)[:2] == ["December 2025: 1 memory", "January 2026: nothing"]
    days = bars(visitor.follow(months["March 2026: 4 memories"]))
    assert len(days) == 31
    hours = bars(visitor.follow(days["Monday 9 March 2026: 4 memories"]))
    assert len(hours) == 24
    page = visitor.follow(hours["17:00: 3 memories"])

    assert [link for link in page.links if link.startswith("/memory?")] == [
        f"/memory?id=tea{minute}" for minute in range(3)
    ]
    assert 'aria-current="true"><title>17:00' in page.source
    assert {"/month?day=2026-03-09", "/day?day=2026-03-09"} <= set(page.links)
    week = visitor.get("/week", day="2026-03-09")
    assert "/month?day=2026-03-09" in week.links
    assert "/timeline" in visitor.get("/month", day="2026-03-09").links
    for hour in ("24", "9", "x"):
        wrong = visitor.get("/day", day="2026-03-09", hour=hour)
        assert (wrong.status, "such as 09" in wrong.text) == (400, True)


def test_a_memory_of_nothing_has_no_line(visitor: Visitor) -> None:
    assert bars(visitor.get("/timeline")) == {}
    assert "nothing" in "".join(bars(visitor.get("/day", day="2026-03-09")))


def test_a_line_shows_the_last_thirty_years(visitor: Visitor, memory: Memory) -> None:
    memory.remember("very old", created_at="1970-01-01T00:00:00Z")
    memory.remember("new", created_at="2026-03-09T17:00:00Z")

    months = list(bars(visitor.get("/timeline")))

    assert months[-1] == "March 2026: 1 memory"
    assert months[0].startswith("March 1996")


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tokyo as the zone of this machine, and UTC as that of the daemon."""
    monkeypatch.setattr("mnemosyned.service.reading.local_zone", lambda: UTC)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    tzlocal.reload_localzone()
    yield
    monkeypatch.undo()
    time.tzset()
    tzlocal.reload_localzone()


def test_a_daemon_that_does_not_know_the_zone_counts_in_its_own(
    visitor: Visitor, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_pages, "local_zone", lambda: "Moon/Base")
    memory.remember("tea", created_at="2026-03-08T20:00:00Z")

    assert visitor.get("/").status == 200
    assert "March 2026: 1 memory" in bars(visitor.get("/timeline"))
    assert visitor.get("/day", day="2026-03-09").status == 200


@pytest.mark.usefixtures("tokyo")
def test_days_are_those_of_this_machine(visitor: Visitor, memory: Memory) -> None:
    memory.remember("tea", created_at="2026-03-08T20:00:00Z")

    page = visitor.get("/day", day="2026-03-09")

    assert "05:00: 1 memory" in bars(page)
    assert "2026-03-09 05:00" in page.text
    assert "Monday 9 March 2026: 1 memory" in bars(
        visitor.get("/month", day="2026-03-09")
    )
