"""The line of time in a browser: bars are links for the mouse and the keyboard alike."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from web.browsing import Watched

pytestmark = pytest.mark.web


def test_the_line_zooms_by_clicks_and_by_the_keyboard(visitor: Watched) -> None:
    visitor.open("/timeline")
    page = visitor.page
    bars = page.locator(".line svg a")
    bars.nth(1).click(position={"x": 5, "y": 5})
    page.wait_for_url(re.compile(r"/month\?day="))

    busy = page.locator(".line svg a:not([aria-label$=nothing])").first
    busy.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/day\?day="))
    page.locator(".line svg a:not([aria-label$=nothing])").first.click()

    expect(page.locator(".line [aria-current]")).to_have_count(1)
    expect(page.locator("main .rows").last.locator("a.row").first).to_be_visible()
    page.get_by_role("link", name="its month").click()
    page.get_by_role("link", name="all months").click()
    expect(page.locator("h1")).to_have_text("Timeline")


def test_a_name_leads_to_all_about_it(visitor: Watched) -> None:
    visitor.open("/subjects")
    page = visitor.page
    page.locator("#name").fill("Keiko")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text(re.compile("About\\s+Keiko"))
    expect(page.locator("mark").first).to_have_text("Keiko")
    page.get_by_role("link", name="Forget").first.click()
    expect(page.locator("h2").first).to_have_text("This would be deleted")
