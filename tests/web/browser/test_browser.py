"""The pages in a real browser: every width, keys, people with a screen reader, and attackers."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, expect
from web.browsing import (
    COLORS,
    RULES,
    SIZES,
    Watched,
    enter,
    is_too_wide,
    violations,
)
from web.hostile import HOSTILE
from web.test_web_hostility import fill as attack
from web.visitor import end_events, events_of

from mnemosyned import Memory, Remember
from mnemosyned.verbs.upkeep import Event
from mnemosyned.web.access import WebAccess
from mnemosyned.web.server import ROUTES, serve_pages

pytestmark = pytest.mark.web

WIDTHS = {360: RULES, 1_024: None, 1_920: SIZES}
"""The rules that a page has to meet at a width, which it fits in any case."""
SHOTS = os.environ.get("SHOTS")
BYTES_MAX = 150_000


def test_every_page_fits_every_width_and_reads_aloud(
    browser: Browser, server: WebAccess, pages: dict[str, str]
) -> None:
    # A color that still changes would be taken for one that stays.
    watched = enter(browser, server, reduced_motion="reduce")
    page, problems = watched.page, []

    def check(name: str, width: int, scheme: str, rules: object) -> None:
        page.set_viewport_size({"width": width, "height": 900})
        if is_too_wide(page):
            problems.append(f"{name}: too wide at {width}")
        if rules:
            found = violations(page, rules)
            problems.extend(f"{name} at {width}, {scheme}: {each}" for each in found)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png")

    for name, path in pages.items():
        page.emulate_media(color_scheme="light")
        response = watched.open(path)
        if response.status != (404 if name == "missing" else 200):
            problems.append(f"{name}: {response.status}")
        if len(response.body()) > BYTES_MAX:
            problems.append(f"{name}: {len(response.body())} bytes")
        for width, rules in WIDTHS.items():
            check(name, width, "light", rules)
        # The scheme changes colors alone, and letters are smallest where the page is narrow.
        page.emulate_media(color_scheme="dark")
        check(name, min(WIDTHS), "dark", COLORS)

    assert problems == []
    assert watched.faults == []


def test_every_page_reads_without_scripts(
    browser: Browser, server: WebAccess, pages: dict[str, str]
) -> None:
    watched = enter(browser, server, java_script_enabled=False)

    for name, path in pages.items():
        watched.open(path)
        assert watched.page.locator("h1").inner_text().strip(), name
        assert watched.page.locator("nav a").count() >= 5, name
        # The keys that it names would do nothing.
        assert not watched.page.locator("footer").is_visible(), name
    assert watched.faults == []


# ------------------------------------------------------------------- using it


def test_a_search_answers_while_it_is_typed(visitor: Watched) -> None:
    visitor.open("/search")
    page = visitor.page
    page.keyboard.press("/")
    page.keyboard.type("billing", delay=20)

    expect(page.locator("#results mark").first).to_have_text(
        re.compile("billing", re.IGNORECASE)
    )
    expect(page).to_have_url(re.compile(r"/search\?query=billing$"))
    expect(page.locator("#query")).to_be_focused()
    expect(page.locator("#said")).to_have_text(re.compile(r"^\d+ hits?$"))

    page.locator("#session").fill("no-such-session")
    expect(page.locator("#results")).to_contain_text("No memory is clearly relevant")


def test_keys_can_be_turned_off_for_all_pages(visitor: Watched) -> None:
    visitor.open("/")
    page = visitor.page
    page.locator("#keys-on").uncheck()
    visitor.open("/search")
    page.locator("main").focus()

    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_hidden()
    page.locator("#keys-on").check()
    page.keyboard.press("?")  # its box is a field
    expect(page.locator("dialog")).to_be_hidden()
    page.locator("main").focus()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()


def test_the_keyboard_leads_to_every_page_and_row(visitor: Watched) -> None:
    visitor.open("/")
    page = visitor.page
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("a.row:focus")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Memory")
    page.wait_for_load_state()  # the script listens from then

    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    for key, title in {
        "t": "Timeline",
        "p": "Subjects",
        "l": "Sleep",
        "i": "What agents were given",
        "h": "Health",
        "e": "Learnings",
        "f": "Statements that ended",
        "n": "Now",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(title)
        page.wait_for_load_state()  # the script listens from then


def test_new_memories_appear_by_themselves(visitor: Watched, memory: Memory) -> None:
    visitor.open("/")
    memory.remember("It appeared by itself.", session="live")

    expect(visitor.page.locator("main")).to_contain_text(
        "It appeared by itself.", timeout=12_000
    )


def test_what_changed_before_the_stream_shows(browser: Browser, memory: Memory) -> None:
    def events() -> Iterator[Event]:
        memory.remember("It came before the stream.", session="early")
        return events_of(memory)

    with serve_pages(memory, events=events) as running:
        watched = enter(browser, running)
        expect(watched.page.locator("main")).to_contain_text(
            "It came before the stream."
        )
        watched.page.context.close()
    end_events(memory)


def test_many_changes_are_few_refreshes(visitor: Watched, memory: Memory) -> None:
    visitor.open("/")
    asked: list[float] = []
    visitor.page.on(
        "request",
        lambda request: (
            asked.append(monotonic())
            if request.headers.get("x-fragment") == "live"
            else None
        ),
    )
    for number in range(20):
        memory.remember(f"Line {number} of a busy agent.", session="busy")
        visitor.page.wait_for_timeout(100)

    expect(visitor.page.locator("main")).to_contain_text("Line 19 of a busy agent.")
    assert 1 <= len(asked) <= 2 + asked[-1] - asked[0]


def test_a_page_is_refreshed_without_a_stream(browser: Browser, memory: Memory) -> None:
    with serve_pages(memory) as silent:
        watched = enter(browser, silent)
        memory.remember("It appeared without a stream.", session="live")
        expect(watched.page.locator("main")).to_contain_text(
            "It appeared without a stream.", timeout=20_000
        )
        assert watched.faults == []
        watched.page.context.close()


def test_a_page_says_that_it_is_no_longer_new(browser: Browser, memory: Memory) -> None:
    with serve_pages(memory, events=lambda: events_of(memory)) as ending:
        watched = enter(browser, ending)
        expect(watched.page.locator("#ended")).to_be_hidden()

    expect(watched.page.locator("#ended")).to_be_visible(timeout=12_000)
    expect(watched.page.locator("dl.tiles")).to_be_visible()
    watched.page.context.close()


def test_a_page_says_when_its_browser_is_let_in_no_more(
    browser: Browser, server: WebAccess, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = enter(browser, server)
    monkeypatch.setattr(server, "sessions", [])
    memory.remember("It is not shown.", session="live")

    expect(watched.page.locator("#ended")).to_be_visible(timeout=20_000)
    watched.page.wait_for_timeout(2_000)
    expect(watched.page.locator("#ended")).to_be_visible()
    watched.page.context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_memory_is_edited_pinned_and_forgotten_by_clicks(
    browser: Browser, server: WebAccess, memory: Memory, *, scripts: bool
) -> None:
    id = f"clicks-{scripts}"
    memory.remember("We depoly on Tuesdays.", id=id, session="clicks")
    watched = enter(browser, server, java_script_enabled=scripts)
    page = watched.page

    watched.open(f"/memory?id={id}")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Words").fill("We deploy on Tuesdays.\nNever on Fridays.")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("del")).to_have_text("depoly")
    expect(page.locator("ins")).to_have_text(["deploy", ".\nNever on Fridays"])
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Go on").click()
    expect(page.locator("blockquote")).to_have_text(
        "We deploy on Tuesdays.\nNever on Fridays."
    )
    page.get_by_role("button", name="Pin").click()
    expect(page.locator("h1")).to_contain_text("pinned")
    page.get_by_role("link", name="Forget").click()
    expect(page.locator("main")).to_contain_text("1 (1 working, 0 archived)")
    page.get_by_role("button", name="Forget 1 memory").click()

    expect(page.locator("h1")).to_have_text("Forgotten")
    assert memory.list(session="clicks").memories == []
    assert watched.faults == []


def test_what_was_told_is_rated_by_a_click(
    visitor: Watched, memory: Memory, pages: dict[str, str]
) -> None:
    visitor.open(pages["injections"])
    before = memory.injections().totals.useful

    visitor.page.get_by_role("button", name="Useful", exact=True).first.click()

    pressed = visitor.page.locator("button[aria-pressed=true]")
    expect(pressed).to_have_text("Useful")
    expect(visitor.page.locator(".injections > li").first).to_be_focused()
    visitor.page.wait_for_load_state()  # the script listens from then
    visitor.page.keyboard.press("x")
    expect(pressed).to_have_text("Not useful")
    visitor.page.wait_for_load_state()
    visitor.page.keyboard.press("u")
    expect(pressed).to_have_text("Useful")
    assert memory.injections().totals.useful == before + 1


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


# ---------------------------------------------------------------- attackers


def test_no_hostile_text_runs(
    browser: Browser, server: WebAccess, memory: Memory, pages: dict[str, str]
) -> None:
    memory.remember_many(
        [
            Remember(text, session=f"hostile-{number % 7}", role=text[:60])
            for number, text in enumerate(HOSTILE)
        ]
    )
    attack(memory)
    watched = enter(browser, server)
    pages = {
        **{f"list{number}": f"/search?session=hostile-{number}" for number in range(7)},
        **pages,
    }
    for text in HOSTILE[::12]:
        watched.page.goto(watched.address + "/search")
        watched.page.locator("#query").fill(text.replace("\0", ""))
        watched.page.wait_for_timeout(260)
    for path in pages.values():
        watched.open(path)
        for _ in range(4):
            assert watched.page.evaluate("window.ran === undefined")
            assert watched.page.title().endswith("· mnemosyned")
            watched.page.mouse.wheel(0, 2_000)
            older = watched.page.get_by_role("link", name="Older")
            if not older.count():
                break
            older.first.click()

    assert watched.faults == []


ATTACK = """<!doctype html><title>nice page</title><pre id="got"></pre>
<iframe id="frame" src="{page}/"></iframe>
<img id="image" src="{page}/icon.svg">
{forms}
<iframe name="sink"></iframe>
<script>
const got = [];
const wait = (ms) => new Promise((wake) => setTimeout(wake, ms));
async function steal() {{
  for (const mode of ["cors", "no-cors", "same-origin"]) {{
    for (const path of ["/", "/page.js", "/memory?id=victim", "/events", "/download?format=jsonl"]) {{
      try {{
        const answer = await fetch("{page}" + path, {{ mode, credentials: "include" }});
        const text = await answer.text();
        if (text) got.push(path + ": " + text.slice(0, 80));
      }} catch (error) {{}}
    }}
  }}
  for (const path of {posts}) {{
    try {{
      await fetch("{page}" + path, {{ method: "POST", mode: "no-cors", credentials: "include",
        headers: {{ "Content-Type": "application/x-www-form-urlencoded" }},
        body: "id=victim&text=stolen&key=auto_sleep&value=false" }});
    }} catch (error) {{}}
  }}
  for (const form of document.forms) {{ form.submit(); await wait(60); }}
  const events = new EventSource("{page}/events", {{ withCredentials: true }});
  events.onopen = events.onmessage = () => got.push("events");
  try {{ new WebSocket("{page}/events".replace("http", "ws")).onopen = () => got.push("websocket"); }}
  catch (error) {{}}
  try {{ new Worker("{page}/page.js").onmessage = () => got.push("worker"); got.push("worker began"); }}
  catch (error) {{}}
  try {{ await navigator.serviceWorker.register("{page}/page.js"); got.push("service worker"); }}
  catch (error) {{}}
  const script = document.createElement("script");
  script.onload = () => got.push("script");
  script.src = "{page}/page.js";
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.onload = () => got.push("style");
  style.href = "{page}/page.css";
  document.head.append(script, style);
  const opened = window.open("{page}/");
  await wait(900);
  try {{ if (opened.document.body.innerHTML) got.push("window"); }} catch (error) {{}}
  try {{ if (opened.length) got.push("frames of the window"); }} catch (error) {{}}
  try {{
    const shown = document.getElementById("frame").contentDocument.body.innerHTML;
    if (shown) got.push("frame: " + shown);
  }} catch (error) {{}}
  if (document.getElementById("image").naturalWidth) got.push("image");
  document.getElementById("got").textContent = JSON.stringify(got);
}}
steal();
</script>"""
POSTS = [name[5:] for name in ROUTES if name.startswith("POST")]
FORM = """<form method="post" action="{page}{path}" target="sink">
<input name="id" value="victim"><input name="mark" value="x"><input name="text" value="stolen">
<input name="cycle" value="last"><input name="pin" value="true"></form>"""


@pytest.fixture(scope="module")
def attacker(server: WebAccess) -> Iterator[int]:
    """The port of an attacker's pages."""
    page = server.new_address().partition("/enter")[0]
    forms = "".join(FORM.format(page=page, path=path) for path in POSTS)
    body = ATTACK.format(page=page, forms=forms, posts=json.dumps(POSTS)).encode()

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_port
        running.shutdown()


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "localhost"])
def test_an_attackers_page_in_the_same_browser_gets_nothing(
    browser: Browser, server: WebAccess, memory: Memory, attacker: int, host: str
) -> None:
    memory.remember("the victim's words", id="victim", session="victim")
    tiers = memory.status().tiers
    watched = enter(browser, server)
    page = watched.page.context.new_page()

    page.goto(f"http://{host}:{attacker}/")
    expect(page.locator("#got")).not_to_be_empty(timeout=20_000)

    assert json.loads(page.locator("#got").inner_text()) == []
    assert memory.status().tiers == tiers
    victim = memory.get("victim").memory
    assert victim
    assert (victim.content, victim.pinned) == ("the victim's words", False)
    watched.open("/memory?id=victim")
    assert "the victim's words" in watched.page.locator("blockquote").inner_text()
    watched.page.context.close()
