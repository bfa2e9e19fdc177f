"""The pages of `mnem web` on a large memory: how soon, how many bytes, and what others notice.

The first paint in Chromium is measured where `make test-web` has installed Playwright in `build/web`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.daemon import BIN, Daemon, embedded, resident_mb, running
from bench.databases import year
from bench.measure import asking, fill, latency, recall_each, say, timed
from bench.report import Report

MEMORIES = 100_000
VISITS = 5
READERS, READ_EVERY_S = 5, 1.0
QUESTIONS = 60
FIRST_MS, BYTES = 300.0, 150_000
CYCLES_MAX = 1_000
FIRST_PAINT = """new Promise(done => new PerformanceObserver(seen =>
    done(seen.getEntries()[0].startTime)).observe({type: "paint", buffered: true}))"""
"""Milliseconds from the request of a page to what is first painted of it."""


class Browser:
    """It opens the address, and then pages with the cookie that it got."""

    def __init__(self, address: str) -> None:
        self.address = address.partition("/enter")[0]
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", address)
        assert found
        self._port, self.cookie = int(found[1]), ""
        self.cookie = self._ask(found[2]).partition(b";")[0].decode()

    def _ask(self, path: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self.cookie})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status in (200, 303), (path, answer.status)
            return answer.headers.get("Set-Cookie", "").encode() or body
        finally:
            connection.close()

    def open(self, path: str) -> int:
        """Open a page; answers with its bytes."""
        return len(self._ask(path))


@contextmanager
def web(daemon: Daemon) -> Iterator[tuple[Browser, int]]:
    """A browser on the pages of a daemon, and the process that serves them."""
    command = [str(BIN / "mnem"), "--socket", str(daemon.socket), "web", "--no-browser"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield Browser(process.stdout.readline().strip()), process.pid
        finally:
            process.terminate()


def addresses(daemon: Daemon) -> dict[str, str]:
    """The address of each page by its name."""
    with daemon.client() as client:
        cycle = client.log(limit=1).rows[0].cycle
        month = client.list(level="month", limit=1).episodes[0]
        episode = client.list(level="episode", limit=1).episodes[0]
        (memory,) = client.list(limit=1).memories
        day = f"{month.covers_from:%Y-%m-%d}"
    return {
        "now": "/",
        "search": "/search?query=" + quote(memory.content[:60]),
        "list": "/search",
        "memory": f"/memory?id={memory.id}",
        "episode": f"/summary?id={episode.id}",
        "month's summary": f"/summary?id={month.id}",
        "timeline": "/timeline",
        "month": f"/month?day={day}",
        "week": f"/week?day={day}",
        "day": f"/day?day={day}",
        "subjects": "/subjects",
        "subject": "/subject?name=" + quote(max(memory.content.split(), key=len)),
        "sleep": "/sleep",
        "cycle": f"/cycle?cycle={cycle}",
        "injections": "/injections",
        "briefing": "/briefing",
        "learnings": "/learnings",
        "ended": "/ended",
        "health": "/state",
        "checks": "/checks",
        "settings": "/settings",
        "export": "/export",
    }


def measure_pages(browser: Browser, pages: dict[str, str], report: Report) -> None:
    rows: list[list[object]] = []
    for name, path in pages.items():
        visits = [timed(browser.open, path) for _ in range(VISITS)]
        milliseconds = statistics.median(seconds for seconds, _ in visits) * 1000
        report.figure(f"{name}, ms", milliseconds)
        rows.append([name, milliseconds, visits[0][1]])
        report.bar(f"bytes of {name}", visits[0][1], "<=", BYTES)
        if name == "now":
            report.bar("first page, ms", milliseconds, "<=", FIRST_MS)
    report.table("pages", ["page", "ms", "bytes"], rows)


def measure_first_paint(browser: Browser, report: Report) -> None:
    """The first paint of the first page in Chromium, at the median; nothing without Playwright."""
    if find_spec("playwright") is None:
        say("no first paint: make test-web installs what it takes")
        return
    # It is installed for the tests of the pages alone.
    playwright = import_module("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page()
        name, _, value = browser.cookie.partition("=")
        page.context.add_cookies(
            [{"name": name, "value": value, "url": browser.address}]
        )
        paints = []
        for _ in range(VISITS):
            page.goto(browser.address)
            paints.append(page.evaluate(FIRST_PAINT))
        chromium.close()
    report.bar("first paint in Chromium, ms", statistics.median(paints), "<=", FIRST_MS)


def measure_calls(daemon: Daemon, count: int) -> tuple[float, float]:
    """Milliseconds of a recall and of a remember over the socket, each at the median."""
    questions = year(count).questions(QUESTIONS)["person+code"]
    with daemon.client() as client:
        recalls = recall_each(asking(client), questions)
        remembers = [timed(client.remember, each.text)[0] for each in questions]
    return latency(recalls).p50_ms, latency(remembers).p50_ms


@contextmanager
def five_open_pages(browser: Browser) -> Iterator[None]:
    """Readers that refresh the first page all the time."""
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(READ_EVERY_S):
            browser.open("/")

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        ended.set()
        for reader in readers:
            reader.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    count = parser.parse_args().memories
    report = Report("bench-web")
    with tempfile.TemporaryDirectory(prefix="bench-web-") as room:
        database = Path(room, "memory.db")
        say(f"remembering {count:,}, and sleeping")
        with embedded(database) as memory:
            fill(memory, year(count))
            for _ in range(CYCLES_MAX):
                if not memory.sleep().remaining:
                    break
        with running(database) as daemon:
            measure_calls(daemon, count)  # which reads the file into memory
            before = resident_mb(daemon.pid)[0]
            alone = measure_calls(daemon, count)
            with web(daemon) as (browser, pid):
                measure_pages(browser, addresses(daemon), report)
                with five_open_pages(browser):
                    beside = measure_calls(daemon, count)
                measure_first_paint(browser, report)
                report.figure("mnem web, MB", resident_mb(pid)[0])
            report.figure("daemon before, MB", before)
            report.figure("daemon with five pages open, MB", resident_mb(daemon.pid)[0])
            for verb, first, second in zip(
                ("recall", "remember"), alone, beside, strict=True
            ):
                report.figure(f"{verb} p50 alone, ms", first)
                report.figure(f"{verb} p50 with five pages open, ms", second)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
