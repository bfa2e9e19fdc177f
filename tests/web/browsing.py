"""A Chromium for tests: browsers that were let in, and the faults that they note or axe-core finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from web.crowd import fill
from web.visitor import (
    EmbeddedDaemon,
    database_of,
    end_events,
    events_of,
    make_home,
    settings_file,
)

from mnemosyned import Memory
from mnemosyned.web.access import WebAccess
from mnemosyned.web.server import serve_pages

WAIT_MS = 30_000
AXE = Path(__file__).parents[2] / "build/web-npm/node_modules/axe-core/axe.min.js"
RULES = [
    "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice",
]  # fmt: skip
COLORS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules about colors, which alone can fail in one color scheme and not in another."""
SIZES = {"type": "rule", "values": ["target-size", "scrollable-region-focusable"]}
"""The rules about sizes, which can fail at one width and not at another."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("web")
    with pytest.MonkeyPatch.context() as patch:
        make_home(home, patch)
        settings_file(home).write_text("sleep:\n  ttl_hours: 12  # a short day\n")
        with Memory(database_of(home)) as opened:
            yield opened


@pytest.fixture(scope="module")
def pages(memory: Memory) -> dict[str, str]:
    """The address of each page by a name of it, on a crowded memory."""
    return fill(memory)


@pytest.fixture(scope="module")
def server(memory: Memory) -> Iterator[WebAccess]:
    daemon = EmbeddedDaemon(memory)
    with serve_pages(daemon, events=lambda: events_of(memory)) as running:
        yield running
    end_events(memory)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            # Root may not use the sandbox; names for the attacker's pages lead here.
            args=["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1"],
        )
        yield started
        started.close()


class Watched:
    """A page in the browser that notes what should never happen there."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.faults: list[str] = []
        self.address = address
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._note_dialog)
        self.page.on("console", self._note_console)
        self.page.on("request", self._note_request)

    def _note_dialog(self, dialog: Any) -> None:  # noqa: ANN401 of Playwright
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_console(self, message: Any) -> None:  # noqa: ANN401 of Playwright
        if message.type == "error" and "status of 40" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _note_request(self, request: Any) -> None:  # noqa: ANN401 of Playwright
        if not request.url.startswith(self.address):
            self.faults.append(f"request: {request.url}")

    def open(self, path: str) -> Any:  # noqa: ANN401 of Playwright
        return self.page.goto(self.address + path)


def violations(page: Page, rules: object = RULES) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})",
        rules,
    )
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def is_too_wide(page: Page) -> bool:
    wide: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return wide


def enter(browser: Browser, server: WebAccess, **options: Any) -> Watched:  # noqa: ANN401
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    entry = server.new_address()
    watched = Watched(context, entry.partition("/enter")[0])
    watched.page.goto(entry)
    return watched


@pytest.fixture
def visitor(
    browser: Browser, server: WebAccess, pages: dict[str, str]
) -> Iterator[Watched]:
    assert pages
    watched = enter(browser, server)
    yield watched
    assert watched.faults == []
    watched.page.context.close()
