"""Take the pictures of `mnem web` in docs, and a minute's recording, in Chromium on a real daemon."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.daemon import BIN, Daemon, running

from mnemosyned import Client
from mnemosyned.web.application import FOLDER

CHECKOUT = Path(__file__).resolve().parents[2]
PICTURES = CHECKOUT / "docs" / "pictures"
WEEK = CHECKOUT / "tests" / "demo" / "week.jsonl"
WIDTH, HEIGHT, CAPTION = 1_024, 768, 44
RECORDED_WIDTH, RECORDED_HEIGHT = 800, 560
COLORS = 96
BYTES_MAX, RECORDING_BYTES_MAX = 150_000, 1_500_000
ACCENT = "#0b6262"
CARD = """<style>{style}
body {{ margin: 0; padding: 0 1rem; max-width: none; background: {accent}; color: #fff;
  height: {height}px; line-height: {height}px; overflow: hidden; white-space: nowrap; }}
</style><body>{text}"""


def remember_week(client: Client) -> None:
    """Remember the demo's week as if it ended today, sleep, and ask what agents ask."""
    said = [json.loads(line) for line in WEEK.read_text("utf-8").splitlines()]
    last = datetime.fromisoformat(said[-1]["created_at"])
    later = datetime.now(UTC) - timedelta(hours=20) - last
    for memory in said:
        moment = datetime.fromisoformat(memory["created_at"])
        memory["created_at"] = (moment + later).isoformat()
        memory.pop("pinned", None)
    client.remember_many(said)
    client.sleep(force=True)
    client.learn("Answers in metric units, with a 24-hour clock.", session="home")
    for question in ("When is the dentist?", "What did we decide on the release?"):
        client.context(question, session="home", source="chat")


@contextmanager
def opened(browser: Browser, daemon: Daemon, **options: Any) -> Iterator[Page]:  # noqa: ANN401 of Playwright
    command = [str(BIN / "mnem"), "--socket", str(daemon.socket), "web", "--no-browser"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            page = browser.new_context(**options).new_page()
            page.goto(process.stdout.readline().strip())
            yield page
        finally:
            process.terminate()


def take_pictures(page: Page, client: Client) -> None:
    cycle = client.log(limit=1).rows[0].cycle
    episode = max(
        client.list(level="episode", limit=100).episodes,
        key=lambda each: each.item_count if each.item_count <= 6 else 0,
    )
    pages = {
        "now": "/",
        "summary": f"/summary?id={episode.id}",
        "sleep": f"/cycle?cycle={cycle}",
        "injections": "/injections",
        "search": "/search?query=when+is+the+dentist",
        "subjects": "/subject?name=Mila",
    }
    start = page.url.rstrip("/")
    for name, path in pages.items():
        response = page.goto(start + path)
        if not response or not response.ok:
            print(f"left out: {name}, {response and response.status}")
            continue
        shown = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        file = PICTURES / f"web-{name}.png"
        shown.quantize(COLORS, dither=Image.Dither.NONE).save(file, optimize=True)
        print(f"{file.name}: {file.stat().st_size:,} bytes")
        assert file.stat().st_size <= BYTES_MAX


class Recording:
    """Pictures of a page one after another, each with a caption and for its time."""

    def __init__(self, page: Page, captions: Page) -> None:
        self._page = page
        self._captions = captions
        captions.set_viewport_size({"width": RECORDED_WIDTH, "height": CAPTION})
        self._caption = Image.new("RGB", (RECORDED_WIDTH, CAPTION), ACCENT)
        self._frames: list[Image.Image] = []
        self._times_ms: list[int] = []

    def say(self, text: str, *, command: bool = False) -> None:
        """Show a line below the pictures from now on."""
        words = f"<code>{text}</code>" if command else text
        style = (FOLDER / "static" / "page.css").read_text("utf-8")
        card = CARD.format(style=style, accent=ACCENT, height=CAPTION, text=words)
        self._captions.set_content(card)
        self._caption = Image.open(io.BytesIO(self._captions.screenshot()))

    def show(self, seconds: float, pointer: Locator | None = None) -> None:
        """Show the page for so long, with a ring around what is clicked next."""
        shown = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        box = pointer.bounding_box() if pointer else None
        if box:
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            ImageDraw.Draw(shown).ellipse(
                (x - 14, y - 14, x + 14, y + 14), outline="#d9480f", width=4
            )
        frame = Image.new("RGB", (RECORDED_WIDTH, RECORDED_HEIGHT + CAPTION))
        frame.paste(shown, (0, 0))
        frame.paste(self._caption, (0, RECORDED_HEIGHT))
        self._frames.append(frame)
        self._times_ms.append(round(seconds * 1_000))

    def click(self, target: Locator) -> None:
        target.scroll_into_view_if_needed()
        self.show(0.9, target)
        target.click()
        self._page.wait_for_load_state("networkidle")

    def save(self, file: Path) -> None:
        """Save the pictures as an animation that begins again after its end."""
        first, *others = self._frames
        first.save(
            file,
            save_all=True,
            append_images=others,
            duration=self._times_ms,
            loop=0,
            quality=60,
            method=6,
            minimize_size=True,
        )
        total_s = sum(self._times_ms) / 1_000
        print(f"{file.name}: {file.stat().st_size:,} bytes, {total_s:.0f} s")
        assert file.stat().st_size <= RECORDING_BYTES_MAX


def record(page: Page, captions: Page, client: Client) -> None:
    """Record that an agent's words are remembered, slept on, looked at and taken back."""
    film = Recording(page, captions)
    working = page.locator("dl.tiles .big").first
    film.say("mnem web: what your agents remember, in your browser")
    film.show(2.2)
    for count, text in enumerate(
        (
            "Ada decided: we deploy on Tuesdays, never on Fridays",
            "Ada wants the release notes in Markdown",
            "The build broke on main; commit 3f2a91c fixed it",
        ),
        start=1,
    ):
        film.say(f'$ mnem remember "{text}"', command=True)
        film.show(0.7)
        client.remember(text, session="release", source="codex", role="user")
        expect(working).to_have_text(f"{count}")
        film.show(1.0, working)
    film.say("Remembered: it shows at once")
    page.locator("#recent").scroll_into_view_if_needed()
    page.mouse.wheel(0, 700)
    page.wait_for_timeout(300)
    film.show(2.2)
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    film.say("$ mnem sleep --force", command=True)
    film.show(0.8)
    client.sleep(force=True)
    expect(working).to_have_text("0")
    film.show(1.6, working)

    film.say("Look: what a sleep made of it")
    film.click(page.get_by_role("link", name="Sleep").first)
    film.click(page.locator("main a.row").first)
    film.show(2.2)
    film.say("Each sentence of a summary, beside the exact words that say it")
    page.locator("section.group").first.scroll_into_view_if_needed()
    page.mouse.wheel(0, 600)
    page.wait_for_timeout(300)
    film.show(3.0)
    film.say("Found after the sleep as before it")
    page.keyboard.press("Home")
    page.get_by_role("link", name="Search").first.click()
    for typed in ("when do", "when do we deploy?"):
        page.locator("#query").fill(typed)
        page.wait_for_timeout(600)
        film.show(0.9 if typed == "when do" else 2.6)

    film.say("Not what you wanted? Take it back")
    page.get_by_role("link", name="Sleep").first.click()
    film.click(page.get_by_role("link", name="Undo").first)
    film.show(1.4)
    film.click(page.get_by_role("button", name="Undo this sleep"))
    film.show(1.6)
    film.say("All three are in working memory again, word for word")
    page.get_by_role("link", name="Now").first.click()
    page.wait_for_load_state()
    film.show(3.0, working)
    film.save(PICTURES / "web.webp")


def main() -> None:
    """Take all pictures; the memory is a daemon's of its own, in a folder that is removed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "m.db", {"MNEMOSYNE_WM_MAX": "10000"}) as daemon,
        daemon.client() as client,
        sync_playwright() as playwright,
    ):
        remember_week(client)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        size = {"width": WIDTH, "height": HEIGHT}
        with opened(browser, daemon, viewport=size, color_scheme="light") as page:
            take_pictures(page, client)
        size = {"width": RECORDED_WIDTH, "height": RECORDED_HEIGHT}
        with opened(browser, daemon, viewport=size, color_scheme="light") as page:
            record(page, browser.new_page(), client)
        browser.close()


if __name__ == "__main__":
    main()
