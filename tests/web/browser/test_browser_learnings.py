"""Learnings and facts that ended, changed by clicks in Chromium, with and without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from web.browsing import Watched, enter

from mnemosyned import Memory
from mnemosyned.web.access import WebAccess

pytestmark = pytest.mark.web


@pytest.mark.parametrize("scripts", [True, False])
def test_a_learning_is_added_reworded_and_removed_by_clicks(
    browser: Browser, server: WebAccess, memory: Memory, *, scripts: bool
) -> None:
    memory.learn("Keep the novel's title short.", source=f"writer-{scripts}")
    watched = enter(browser, server, java_script_enabled=scripts)
    page = watched.page

    watched.open("/learnings")
    page.get_by_text("Add a learning").click()
    page.get_by_label("Words, in one sentence").fill("Keep the novel's title long.")
    page.get_by_label("Only for this source").fill(f"writer-{scripts}")
    page.locator("#newkind").select_option("instruction")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("blockquote")).to_have_text("Keep the novel's title long.")

    watched.open(f"/learnings?source=writer-{scripts}")
    page.locator("ol.rows > li").filter(has_text="long").get_by_role(
        "link", name="Reword"
    ).click()
    page.get_by_label("Words").fill(
        "Keep the novel's title as it is: \u05d0\u05d1\u05d2"
    )
    page.get_by_role("button", name="Save").click()
    expect(page.locator("blockquote")).to_contain_text("as it is: \u05d0\u05d1\u05d2")

    page.get_by_role("link", name="Remove").click()
    expect(page.locator("main")).to_contain_text("This would be deleted")
    page.get_by_role("button", name="Remove this learning").click()
    expect(page.locator("h1")).to_have_text("Learnings")
    page.get_by_label("Source").first.fill(f"writer-{scripts}")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).not_to_contain_text("as it is")
    left = memory.learnings(source=f"writer-{scripts}")
    assert [each.text for each in left] == ["Keep the novel's title short."]
    assert watched.faults == []
    page.context.close()


def test_an_ended_fact_applies_again_until_that_is_taken_back(
    visitor: Watched, memory: Memory, pages: dict[str, str]
) -> None:
    visitor.open(pages["ended of one"])
    page = visitor.page

    page.get_by_role("button", name="It still applies").first.click()
    expect(page.locator("main")).to_contain_text("you said that it still applies")
    assert memory.get("hebrew").ended == []

    page.get_by_role("button", name="It no longer applies").click()
    expect(page.locator("main")).not_to_contain_text("you said")
    assert len(memory.get("hebrew").ended) == 1


def test_the_keyboard_leads_to_learnings_and_ended_facts(visitor: Watched) -> None:
    visitor.open("/")
    page = visitor.page
    for key, title in {"e": "Learnings", "f": "Facts that ended"}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(title)
        page.wait_for_load_state()
