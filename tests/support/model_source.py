"""A server that has a model, and the folder that it is fetched to."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mnemosyned.models.catalog import ModelStore

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
