"""Models fetched from a real server that breaks off, lies or leads elsewhere; and `mnem model`."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.cases import each_case

from mnemosyned.cli.commands.model import model as command
from mnemosyned.errors import FetchFailed, InvalidRequest
from mnemosyned.models import catalog
from mnemosyned.models.catalog import CATALOG, DownloadRequest, ModelStore, check_url

CONTENT = b"GGUF" + bytes(range(256)) * 4_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Source:
    """What the server has, and how it behaves."""

    url: str = ""
    content: bytes = CONTENT
    etag: str | None = '"one"'
    break_after: int | None = None
    """Bytes after which each connection ends."""
    outage_after: int | None = None
    """Requests after which the server only says that it is busy."""
    ranges: bool = True
    status: int = 200
    redirects: int = 0
    location: str | None = None
    requests: list[str] = field(default_factory=list)
    """The range that each asked for."""


class Handler(BaseHTTPRequestHandler):
    source: Source

    def do_GET(self) -> None:
        source = self.source
        asked = self.headers.get("Range", "")
        source.requests.append(asked)
        if source.redirects:
            source.redirects -= 1
            self.send_response(302)
            self.send_header("Location", source.location or self.path)
            self.end_headers()
            return
        outage = (
            source.outage_after is not None
            and len(source.requests) > source.outage_after
        )
        if source.status != 200 or outage:
            self.send_error(503 if outage else source.status)
            return
        start = (
            int(asked.removeprefix("bytes=").rstrip("-"))
            if asked and source.ranges
            else 0
        )
        same = self.headers.get("If-Range") in (None, source.etag)
        if start >= len(source.content) and same:
            self.send_error(416)
            return
        self._send(start if same else 0)

    def _send(self, start: int) -> None:
        source = self.source
        whole = len(source.content)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        if source.etag:
            self.send_header("ETag", source.etag)
        self.send_header("Content-Length", str(whole - start))
        self.end_headers()
        end = whole if source.break_after is None else start + source.break_after
        self.wfile.write(source.content[start:end])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def source() -> Iterator[Source]:
    at_hand = Source()
    handler = type("Bound", (Handler,), {"source": at_hand})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        at_hand.url = f"http://127.0.0.1:{server.server_port}/some/tiny.gguf"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield at_hand
        server.shutdown()
        thread.join()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
        monkeypatch.delenv(f"{name}_DIRECTORY", raising=False)
    monkeypatch.delenv("CONFIGURATION_DIRECTORY", raising=False)
    return ModelStore()


def pull(
    shelf: ModelStore, name: str, *, sha256: str | None = None
) -> tuple[Path, str]:
    return shelf.pull(name, sha256=sha256, progress=lambda *_: None, pause_s=0)


def give_up(shelf: ModelStore, source: Source) -> None:
    """A first call that gets 1,000 bytes."""
    source.break_after, source.outage_after = 1_000, 1
    with pytest.raises(FetchFailed, match="1,000 bytes are kept"):
        pull(shelf, source.url)
    source.break_after = source.outage_after = None


def test_a_model_fetched_over_redirects_is_whole_and_leaves_nothing_beside_it(
    shelf: ModelStore, source: Source
) -> None:
    seen: list[tuple[int, int | None]] = []
    source.redirects = 3

    path, digest = shelf.pull(source.url, progress=lambda *at: seen.append(at))

    assert (path.read_bytes(), digest) == (CONTENT, DIGEST)
    kept = {file.name for file in shelf.folder.iterdir()}
    assert kept == {"tiny.gguf", "tiny.gguf.sha256"}
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_fetch_goes_on_where_the_connection_broke_off(
    shelf: ModelStore, source: Source
) -> None:
    source.break_after = 300_000

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT
    assert source.requests == ["", *(f"bytes={n * 300_000}-" for n in (1, 2, 3))]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(
    shelf: ModelStore, source: Source
) -> None:
    give_up(shelf, source)
    source.break_after = 600_000
    source.requests.clear()

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT
    assert source.requests[0] == "bytes=1000-"


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"content": b"GGUF" + bytes(5_000), "etag": '"two"'}, None),
        ({"ranges": False}, None),
        ({}, CONTENT + b"more"),
    ],
    ids=["another file", "a server without ranges", "a part longer than the file"],
)
def test_what_cannot_go_on_is_fetched_anew(
    shelf: ModelStore, source: Source, changed: dict[str, Any], part: bytes | None
) -> None:
    give_up(shelf, source)
    for name, value in changed.items():
        setattr(source, name, value)
    if part:
        (shelf.folder / "tiny.gguf.part").write_bytes(part)

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == source.content


@pytest.mark.parametrize(
    ("changed", "requests", "says"),
    [
        ({"status": 503}, 4, "503"),
        ({"status": 404}, 1, "404"),
        ({"content": b"<!DOCTYPE html>"}, 1, "not a model in GGUF"),
        ({"content": b"GGUF" + bytes(9)}, 1, DIGEST),
        ({"redirects": 1_000}, None, "302"),
        ({"redirects": 1, "location": "http://a.example/b.gguf"}, None, "https"),
    ],
    ids=["failing", "missing", "no model", "another digest", "a circle", "no TLS"],
)
def test_a_download_that_cannot_be_used_comes_to_an_end_and_leaves_nothing(
    shelf: ModelStore,
    source: Source,
    changed: dict[str, Any],
    requests: int | None,
    says: str,
) -> None:
    for name, value in changed.items():
        setattr(source, name, value)

    with pytest.raises((FetchFailed, InvalidRequest), match=says):
        pull(shelf, source.url, sha256=DIGEST)

    assert requests in (len(source.requests), None)
    assert not list(shelf.folder.iterdir())


def test_another_size_than_the_known_one_is_refused(
    shelf: ModelStore, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = DownloadRequest(url=source.url, size=len(CONTENT) + 1, license="none")
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known})

    with pytest.raises(FetchFailed, match="another file"):
        pull(shelf, "tiny")


def test_a_part_that_nobody_knows_is_not_gone_on_with(
    shelf: ModelStore, source: Source
) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "tiny.gguf.part").write_bytes(b"another model")

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT


@each_case(
    "url",
    [
        "http://models.example/a.gguf",
        "ftp://127.0.0.1/a.gguf",
        "file:///etc/a.gguf",
        "x://",
    ],
)
def test_only_tls_leaves_the_machine(url: str) -> None:
    with pytest.raises(InvalidRequest, match="https"):
        check_url(url)


def test_without_a_network_the_file_and_its_place_are_named(
    shelf: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://127.0.0.1:9/tiny.gguf"
    known = DownloadRequest(url=url, size=1_234, license="none")
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known})

    with pytest.raises(FetchFailed) as caught:
        pull(shelf, "tiny")

    for word in (known.url, "1,234 bytes", str(shelf.folder / "tiny.gguf")):
        assert word in caught.value.message


@pytest.mark.parametrize(
    "name",
    ["giantllama", "https://models.example/", "https://models.example/.hidden.gguf"],
)
def test_a_name_that_leads_nowhere_is_refused(shelf: ModelStore, name: str) -> None:
    with pytest.raises(InvalidRequest):
        shelf.resolve(name)


def test_no_address_leads_out_of_the_folder(shelf: ModelStore) -> None:
    _, target = shelf.resolve("https://models.example/x%2F..%2F..%2Fa.gguf?b=/c")

    assert target == shelf.folder / "a.gguf"


# `mnem model`: what it fetches, checks, chooses and removes.


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    if done.exception:
        raise done.exception
    return int(done.return_value or 0), done.output


def test_a_part_is_shown_and_can_be_removed(shelf: ModelStore) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "tiny.gguf.part").write_bytes(CONTENT[:1_000])

    _, listed = run("list")
    run("remove", "tiny", "--yes")

    assert re.search(r"tiny\.gguf +1,000 bytes +in part", listed)
    assert not list(shelf.folder.iterdir())


def test_a_model_is_pulled_verified_used_and_removed(
    shelf: ModelStore, source: Source
) -> None:
    _, pulled = run("pull", source.url)
    _, listed = run("list")
    whole, _ = run("verify", "tiny")
    (shelf.folder / "tiny.gguf").write_bytes(CONTENT[:-1] + b"!")
    changed, difference = run("verify", "tiny")
    _, used = run("use", "tiny")
    _, listed_in_use = run("list")
    _, as_json = run("list", "--json")
    with pytest.raises(InvalidRequest, match="in use"):
        run("remove", "tiny", "--yes")
    run("use", "none")
    run("remove", "tiny", "--yes")

    assert DIGEST in pulled
    assert "tiny.gguf" in listed
    assert (whole, changed) == (0, 1)
    assert "instead of" in difference
    model = str(shelf.folder / "tiny.gguf")
    assert model in used
    assert "in use" in listed_in_use
    assert json.loads(as_json) == {
        "models": [{"path": model, "bytes": len(CONTENT), "complete": True}],
        "in_use": model,
    }
    assert not list(shelf.folder.iterdir())


def test_nothing_is_fetched_to_say_how_it_is_done_by_hand(shelf: ModelStore) -> None:
    _, said = run("pull", "tinyllama", "--by-hand")

    assert CATALOG["tinyllama"].url in said
    assert "668,788,096" in said
    assert str(shelf.folder) in said
    assert not shelf.folder.exists()


def test_a_file_that_is_no_model_cannot_be_used(
    shelf: ModelStore, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("notes")

    with pytest.raises(InvalidRequest, match="GGUF"):
        run("use", str(tmp_path / "notes.txt"))
    with pytest.raises(InvalidRequest, match="mnem model list"):
        run("use", "absent")

    assert not list(shelf)
