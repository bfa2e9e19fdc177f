"""The line of time: from all months by links to a day and its hours, in the zone of this machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC

import pytest
import tzlocal
from web.visitor import Page, Visitor

from mnemosyned import Memory
from mnemosyned.web import memory_pages


def bars(page: Page) -> dict[str, str]:
    """The link of each bar of a page's line by its name."""
    line = re.findall(r'<figure class="bars line">.*?</figure>', page.source, re.DOTALL)
    found = re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"', "".join(line))
    return {name: link.replace("&amp;", "&") for link, name in found}


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
    monkeypatch.setattr("mnemosyned.service.reading.get_localzone", lambda: UTC)
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
    monkeypatch.setattr(memory_pages, "zone_name", lambda: "Moon/Base")
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
