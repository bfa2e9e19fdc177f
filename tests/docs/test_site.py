"""The site of the documentation: built strictly, whole in its links, and read in a real browser."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pytest
from docs.build import STAGED, build
from playwright.sync_api import Browser, Route, expect
from support.pages import DOCS
from web.browsing import COLORS, RULES, Watched, is_too_wide, violations

from mnemosyned.cli.registry import COMMANDS
from mnemosyned.config.settings import KEYS
from mnemosyned.errors import error_classes_by_code
from mnemosyned.verbs.facade import VERBS

pytestmark = pytest.mark.docs

BYTES_MAX = 150_000
FIRST_PAINT_GOAL_MS = 300
WAIT_MS = 60_000
WIDTHS = (360, 1_440)
READ_ALOUD = (
    "index.html", "getting-started.html", "agents/claude-code.html", "settings.html",
    "reference/cli/everyday.html", "reference/verbs/memories.html", "reference/errors.html",
    "benchmarks.html",
)  # fmt: skip
"""A page of each kind, which axe-core looks at."""


class _Page(HTMLParser):
    """The ids of a page, and the places that it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in ("href", "src") and value:
                self.places.add(value)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, _Page]:
    """Each page of the site by its place, read."""
    read = {}
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text("utf-8"))
        read[path.relative_to(site).as_posix()] = page
    return read


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_each_page_of_the_checkout_is_one_of_the_site(pages: dict[str, _Page]) -> None:
    assert {f"{path.stem}.html" for path in DOCS.glob("*.md")} <= pages.keys()
    assert {"index.html", "contributing.html", "changelog.html"} <= pages.keys()


def test_links_lead_to_a_file_and_an_anchor(
    site: Path, pages: dict[str, _Page]
) -> None:
    broken = []
    for name, page in pages.items():
        for place in page.places:
            link = urlsplit(place)
            if link.scheme or place.startswith("//") or name == "404.html":
                continue
            path = (
                (site / name).parent / unquote(link.path) if link.path else site / name
            )
            target = path.resolve()
            if not target.is_file():
                broken.append(f"{name}: {place}")
            elif link.fragment and target.suffix == ".html":
                ids = pages[target.relative_to(site.resolve()).as_posix()].ids
                if unquote(link.fragment) not in ids:
                    broken.append(f"{name}: {place}")

    assert broken == []


def test_no_page_is_heavy(site: Path, pages: dict[str, _Page]) -> None:
    sizes = {name: (site / name).stat().st_size for name in pages}

    assert {name: size for name, size in sizes.items() if size > BYTES_MAX} == {}


def test_the_reference_has_all_that_the_code_has(pages: dict[str, _Page]) -> None:
    commands = set().union(
        *(page.ids for name, page in pages.items() if name.startswith("reference/cli/"))
    )
    verbs = set().union(
        *(
            page.ids
            for name, page in pages.items()
            if name.startswith("reference/verbs/")
        )
    )

    assert {f"mnem-{name}" for name in COMMANDS} <= commands
    assert VERBS.keys() <= verbs
    assert error_classes_by_code().keys() <= pages["reference/errors.html"].ids
    settings = pages["settings.html"].ids
    assert {key.replace(".", "-") for key in KEYS} <= settings


def test_agents_get_a_list_and_the_texts_of_all_pages(site: Path) -> None:
    listed = re.findall(r"\]\(([^)]+\.md)\)", (site / "llms.txt").read_text("utf-8"))

    assert {
        path.relative_to(STAGED).as_posix() for path in STAGED.rglob("*.md")
    } == set(listed)
    assert [name for name in listed if not (site / name).is_file()] == []
    whole = (site / "llms-full.txt").read_text("utf-8")
    assert all(f"<!-- {name} -->" in whole for name in listed)


def test_every_page_fits_a_telephone(
    browser: Browser, address: str, pages: dict[str, _Page]
) -> None:
    watched = _open(browser, address, width=WIDTHS[0], java_script_enabled=False)
    wide = []

    for name in pages:
        watched.open(f"/{name}")
        if is_too_wide(watched.page):
            wide.append(name)

    assert watched.faults == []
    assert wide == []


# The dark colors are seen where a page shows most.
@pytest.mark.parametrize(
    ("scheme", "width"), [*(("light", width) for width in WIDTHS), ("dark", WIDTHS[-1])]
)
def test_pages_read_aloud_and_ask_nothing_elsewhere(
    browser: Browser, address: str, scheme: Literal["light", "dark"], width: int
) -> None:
    watched = _open(browser, address, width=width, color_scheme=scheme)
    watched.page.route("**/search_index.json", _answer_with_a_small_index)
    rules = RULES if scheme == "light" else COLORS
    problems = []

    for name in READ_ALOUD:
        watched.open(f"/{name}")
        problems += [f"{name}: {each}" for each in violations(watched.page, rules)]
        if is_too_wide(watched.page):
            problems.append(f"{name}: too wide")

    assert problems == []
    assert watched.faults == []


def _answer_with_a_small_index(route: Route) -> None:
    """Answer with one text: each page builds the index of the search, which takes long."""
    index = route.fetch().json()
    route.fulfill(json={**index, "docs": index["docs"][:1]})


@pytest.mark.parametrize("way", ["server", "disk"])
def test_search_finds_a_word(
    browser: Browser, address: str, site: Path, way: str
) -> None:
    root = address if way == "server" else site.as_uri()
    watched = _open(browser, root, width=WIDTHS[1])
    watched.open("/index.html")

    watched.page.get_by_role("textbox", name="Search").press_sequentially("forget")

    results = watched.page.locator(".md-search-result__link")
    expect(results.filter(has_text="Forget").first).to_be_visible(timeout=WAIT_MS)
    places = results.evaluate_all("links => links.map(link => link.href)")
    assert any("/forgetting.html" in place for place in places)
    assert watched.faults == []


def test_the_first_page_paints(browser: Browser, site: Path) -> None:
    page = browser.new_page()

    page.goto((site / "index.html").as_uri())
    painted = page.evaluate(
        "new Promise(done => new PerformanceObserver(list =>"
        " done(list.getEntriesByName('first-contentful-paint')[0].startTime))"
        ".observe({type: 'paint', buffered: true}))"
    )

    assert painted > 0
    print(f"first paint from disk: {painted:.0f} ms (goal: {FIRST_PAINT_GOAL_MS} ms)")
    page.close()


def test_the_pictures_of_concepts_are_as_they_are_drawn() -> None:
    from docs.pictures import DRAWN, PICTURES  # noqa: PLC0415

    for name, picture in DRAWN.items():
        assert (PICTURES / f"{name}.svg").read_text("utf-8") == picture, name


def _open(browser: Browser, address: str, *, width: int, **options: Any) -> Watched:  # noqa: ANN401
    """A browser on the site that notes errors and requests elsewhere."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(WAIT_MS)
    return Watched(context, address)
