"""Tasks of people who never saw the pages: each is done in three clicks from the first page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect
from web.browsing import Watched, enter
from web.visitor import EmbeddedDaemon, database_of, inject, make_home

from mnemosyned import Memory
from mnemosyned.cli.maintenance import doctor
from mnemosyned.cli.maintenance.checks import problem
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.times import local_now
from mnemosyned.web.server import serve_pages

pytestmark = pytest.mark.web

CLICKS_MAX = 3


@dataclass
class Stranger:
    """A person who counts clicks; what is typed into a form and sent by Enter is one."""

    watched: Watched
    clicks: int = 0

    @property
    def main(self) -> Locator:
        return self.watched.page.locator("main")

    def click(
        self, name: str | re.Pattern[str], *, within: str | Locator = "body"
    ) -> None:
        """Click the first link or button with a name, in a part of the page."""
        self._count()
        page = self.watched.page
        part = page.locator(within).first if isinstance(within, str) else within
        link = part.get_by_role("link", name=name)
        link.or_(part.get_by_role("button", name=name)).first.click()

    def type(self, **fields: str) -> None:
        """Type into fields by their labels, and send the last one by Enter."""
        self._count()
        for label, text in fields.items():
            field = self.watched.page.get_by_label(label.replace("_", " ")).first
            field.fill(text)
        field.press("Enter")

    def sees(self, *texts: str | re.Pattern[str], within: str = "main") -> None:
        for text in texts:
            expect(self.watched.page.locator(within).first).to_contain_text(text)

    def _count(self) -> None:
        self.clicks += 1
        assert self.clicks <= CLICKS_MAX, "too far from the first page"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A small memory of a shop's team: decisions, a person, a sleep."""
    with Memory(tmp_path / "m.db") as opened:
        told = [
            ("Ada decided: the API listens on port 8080.", "ada", "port"),
            ("We ship the checkout on Tuesdays, said Ada Lovelace.", "bob", "ship"),
            ("The invoice job failed with error E4711.", "bob", "invoice"),
            ("Keiko moved the backups to host vault-3.", "keiko", "backups"),
        ]
        for text, role, id in told:
            opened.remember(text, id=id, session="team", source="chat", role=role)
        yield opened


@pytest.fixture
def stranger(browser: Browser, memory: Memory) -> Iterator[Stranger]:
    with serve_pages(memory) as server:
        made = Stranger(enter(browser, server))
        expect(made.watched.page.locator("h1")).to_have_text("Now")
        yield made
        assert made.watched.faults == []
        made.watched.page.context.close()


def move_port(memory: Memory) -> None:
    """Remember what ends the first decision of the team."""
    text = "Ada decided: the API now listens on port 9090."
    memory.remember(text, id="later", session="team", source="chat", role="ada")
    assert len(memory.endings()) == 1


def test_what_did_it_tell_my_agent_at_14_02(stranger: Stranger, memory: Memory) -> None:
    yesterday = local_now().replace(hour=14, minute=2, second=30) - timedelta(days=1)
    words, reason = "We ship the checkout on Tuesdays.", "words: ship, checkout"
    inject(memory, "ship", words, reason=reason, prompt="may I ship?", at=yesterday)
    for number in range(40):
        moment = yesterday + timedelta(minutes=number - 60 if number < 20 else number)
        inject(memory, "port", "The API listens.", prompt=f"{number}?", at=moment)

    stranger.click("Injections")
    stranger.type(Since="yesterday 14:02", Until="yesterday 14:03")

    expect(stranger.main.locator(".injections > li")).to_have_count(1)
    stranger.sees("may I ship?", words, reason)


def test_take_back_last_nights_sleep(stranger: Stranger, memory: Memory) -> None:
    memory.sleep(force=True)
    assert memory.list(tier=Tier.WORKING).memories == []

    stranger.click("Sleep")
    stranger.click("Undo")
    stranger.sees("team", "4 memories")
    stranger.click("Undo this sleep")

    stranger.sees("Undone", "4 memories")
    found = {each.id for each in memory.list(tier=Tier.WORKING).memories}
    assert found == {"port", "ship", "invoice", "backups"}


def test_forget_this_person(stranger: Stranger, memory: Memory) -> None:
    memory.sleep(force=True)

    stranger.type(Search_memories="Keiko")
    stranger.click(re.compile("Forget"))
    stranger.sees("Keiko moved the backups to host vault-3.")
    stranger.click(re.compile("Forget 1 memory"))

    stranger.sees("Forgotten")
    kept = str(memory.recall("Who moved the backups to vault-3?").hits)
    assert "vault-3" not in kept
    assert "Keiko" not in kept
    assert memory.get("ship").memory


def test_which_decision_replaced_this_one(stranger: Stranger, memory: Memory) -> None:
    move_port(memory)

    stranger.type(Search_memories="port 8080")
    stranger.sees("Then: ", "the API now listens on port 9090.")
    stranger.click(re.compile("now listens"))

    stranger.sees("Ada decided: the API now listens on port 9090.", within="blockquote")
    stranger.sees("ada", "later")


def test_where_does_this_sentence_come_from(stranger: Stranger, memory: Memory) -> None:
    cycle = memory.sleep(force=True)

    stranger.click("Sleep")
    stranger.click(re.compile(r"^\d{4}-"), within="main")
    sentence = stranger.main.locator(".traced li").filter(has_text="E4711")
    stranger.click(re.compile("said in"), within=sentence)

    stranger.sees("The invoice job failed with error E4711.", within="blockquote")
    stranger.sees("bob")
    assert memory.expand(cycle.groups[0].episodes[0]).originals[2].id == "invoice"


def test_what_would_sleep_do_now(stranger: Stranger, memory: Memory) -> None:
    stranger.click("Sleep", within="header")
    stranger.click(re.compile("would do"))
    stranger.click("Include memories that are too new")

    stranger.sees("team", "4")
    assert len(memory.list(tier=Tier.WORKING).memories) == 4


def test_what_will_my_next_session_be_told(stranger: Stranger, memory: Memory) -> None:
    memory.learn("Always answer in British English.")
    wrong = memory.learn("Prefer tabs over spaces.").learning.id

    stranger.click("Injections")
    stranger.click(re.compile("next session"))
    stranger.sees("Always answer in British English.", "Prefer tabs over spaces.")
    line = stranger.main.locator("ol.rows > li").filter(has_text="tabs")
    stranger.click("Drop", within=line)

    stranger.sees("Lines that you changed", "dropped")
    assert wrong not in [each.id for each in memory.briefing().lines]
    expect(stranger.main.locator("ol.rows")).not_to_contain_text("tabs")


def test_what_happened_last_tuesday(stranger: Stranger, memory: Memory) -> None:
    today = local_now()
    tuesday = (today - timedelta(days=(today.weekday() - 1) % 7 or 7)).date()
    noon = datetime(tuesday.year, tuesday.month, tuesday.day, 12, tzinfo=UTC)
    later = noon + timedelta(days=1)
    memory.remember("The search index was rebuilt.", created_at=noon, session="ops")
    memory.remember("The day after, it was quiet.", created_at=later, session="ops")

    stranger.click("Timeline")
    stranger.click(re.compile(rf"^{tuesday.day} {tuesday:%B %Y}: 1 memor"))

    stranger.sees("The search index was rebuilt.")
    expect(stranger.main).not_to_contain_text("The day after, it was quiet.")


def test_say_that_a_fact_still_applies(stranger: Stranger, memory: Memory) -> None:
    move_port(memory)

    stranger.click("Endings")
    stranger.sees("the API listens on port 8080.", "now listens on port 9090.")
    stranger.click("It still applies")

    stranger.sees("you said that it still applies")
    assert memory.get("port").ended == []


def test_everything_about_ada(stranger: Stranger) -> None:
    stranger.click("Subjects")
    stranger.type(name="Ada")

    stranger.sees("We ship the checkout on Tuesdays, said Ada Lovelace.")
    stranger.sees("Ada decided: the API listens on port 8080.")
    expect(stranger.main).not_to_contain_text("vault-3")


def test_is_everything_well_and_what_do_i_run_if_not(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_home(tmp_path, monkeypatch)
    finding = problem("disk", "the disk is full", "df -h")
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: [finding])
    with (
        Memory(database_of(tmp_path)) as memory,
        serve_pages(EmbeddedDaemon(memory)) as server,
    ):
        stranger = Stranger(enter(browser, server))

        stranger.click("Health")

        stranger.sees("The daemon reports no problem.", "the disk is full")
        stranger.sees("df -h", within="#checks")
        assert stranger.watched.faults == []
        stranger.watched.page.context.close()
