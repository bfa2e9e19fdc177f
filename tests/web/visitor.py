"""A browser without a window: it keeps the cookie, sends forms, and reads pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import msgspec
import pytest
from msgspec.structs import replace as replace_struct

from mnemosyned import Memory
from mnemosyned.cli.maintenance import service
from mnemosyned.client.connection import Connection
from mnemosyned.client.streams import read_export
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.memory.injections import InjectedLine, InjectionKind
from mnemosyned.service.briefing import make_injection
from mnemosyned.service.events import Subscription
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Event, EventKind
from mnemosyned.web.access import WebAccess
from mnemosyned.web.application import FORM, WebApplication
from mnemosyned.web.server import ROUTES

R = TypeVar("R")
PORT = 7470
TAKE_S = 0.05
WAIT_S = 60.0
LISTS_MAX = 40
"""Pages of one list that are followed."""
SAID = {"session": "team", "source": "chat", "role": "user"}
INLINE = frozenset("a bdi code del ins kbd mark q span time".split())
VOID = frozenset("meta link input br img".split())


def new_memory(folder: Path) -> Memory:
    """An empty memory in a folder, from a copy of its file: five times as fast as to make one."""
    file = folder / "m.db"
    file.write_bytes(_empty_file())
    return Memory(file)


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "m.db"
        with Memory(file):
            pass
        return file.read_bytes()


class PageReader(HTMLParser):
    """Reads a page: its elements, their attributes, and its text. Fails where it is not well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += "" if tag in INLINE else " "
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def with_attribute(self, name: str) -> list[str]:
        return [
            attributes[name] or ""
            for _, attributes in self.elements
            if name in attributes
        ]


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was shown, or a response that leads on."""

    response: Response

    @property
    def status(self) -> int:
        return self.response.status.value

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.response.headers)

    @property
    def source(self) -> str:
        return self.response.body.decode()

    @property
    def text(self) -> str:
        return " ".join(PageReader(self.source).text.split())

    @property
    def links(self) -> list[str]:
        return PageReader(self.source).with_attribute("href")

    @property
    def older(self) -> str:
        """The address of the next page of a list."""
        for _, attributes in PageReader(self.source).elements:
            address = attributes.get("href") or ""
            if attributes.get("rel") == "next" and "after=" in address:
                return address
        return ""

    def field(self, name: str) -> str:
        """The value of a field in a form of the page."""
        for tag, attributes in PageReader(self.source).elements:
            if tag == "input" and attributes.get("name") == name:
                return attributes["value"] or ""
        raise AssertionError(f"no field {name}")


def say(memory: Memory, *texts: str, **fields: Any) -> list[str]:  # noqa: ANN401
    """Remember what a user says; return the ids of the memories."""
    return [memory.remember(text, **{**SAID, **fields}).id for text in texts]


def inject(
    memory: Memory,
    line: str,
    text: str = "We deploy on Tuesdays.",
    *,
    reason: str = "words: deploy",
    at: datetime | None = None,
    **fields: Any,  # noqa: ANN401
) -> str:
    """Put into the ledger that an agent was given a line; return the id of the injection."""
    given: dict[str, Any] = {
        "client": "codex",
        "session": "work",
        "prompt": "when do we deploy?",
    }
    injection = make_injection(
        at or datetime.now(UTC),
        InjectionKind.PROMPT,
        text=text,
        lines=[InjectedLine(id=line, text=text, reason=reason)],
        **(given | fields),
    )
    memory._caller.store.injections.add(injection)  # type: ignore[attr-defined]  # noqa: SLF001 a hook does so
    return injection.id


def events_of(memory: Memory) -> Iterator[Event]:
    """The events of a memory from now on, as a client reads those of a daemon."""
    bus = memory._caller.events  # type: ignore[attr-defined]  # noqa: SLF001 as a daemon does
    subscription: Subscription = bus.subscribe()

    def read() -> Iterator[Event]:
        kinds = set[EventKind]()
        try:
            while EventKind.STOPPING not in kinds:
                for event in subscription.take(TAKE_S):
                    kinds.add(event.kind)
                    yield event
        finally:
            bus.unsubscribe(subscription)

    return read()


def end_events(memory: Memory) -> None:
    """End the events of a memory, as a daemon does that stops."""
    memory._caller.events.publish(EventKind.STOPPING)  # type: ignore[attr-defined]  # noqa: SLF001 as a daemon does


def make_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Make an empty folder the home of this user, whose settings name `database_of` it."""
    patch.setenv("HOME", str(home))
    for kind in ("STATE", "CONFIG", "DATA"):
        patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    patch.setenv("XDG_RUNTIME_DIR", str(home))
    # The kernel keeps the environment that this process began with.
    patch.setattr(service, "daemon_environment", lambda _: os.environ)
    for file in (database_of(home), settings_file(home)):
        file.parent.mkdir(parents=True, mode=0o700)


def database_of(home: Path) -> Path:
    return home / "state/mnemosyned/memory.db"


def settings_file(home: Path) -> Path:
    return home / "config/mnemosyned/mnemosyned.yaml"


@dataclass(frozen=True, slots=True)
class Changed:
    """A caller whose results of one type have other fields."""

    caller: Caller
    kind: type[object]
    fields: Callable[[Any], dict[str, object]]

    def call(self, request: Request[Any]) -> Any:  # noqa: ANN401 the verb's result
        result = self.caller.call(request)
        if not isinstance(result, self.kind):
            return result
        change = replace_struct if isinstance(result, msgspec.Struct) else replace
        return change(result, **self.fields(result))  # type: ignore[type-var]


class EmbeddedDaemon(Connection):
    """A memory in this process that is reached as a daemon is: by a socket, or by a URL."""

    identity = ""

    def __init__(self, memory: Caller, *, url: str = "") -> None:
        self.memory = memory
        self.identity = url

    def call(self, request: Request[R]) -> R:
        return self.memory.call(request)

    def transfers(self) -> Any:  # noqa: ANN401 as much of them as pages use
        return self

    @contextmanager
    def export(self, request: Export) -> Iterator[Iterator[bytes]]:
        service: Any = self.memory._caller  # type: ignore[attr-defined]  # noqa: SLF001 as a daemon does
        with closing(service.export(request)) as chunks:
            yield read_export(chunks)


@dataclass
class Visitor:
    """Someone who was let in, or not yet."""

    caller: Caller
    access: WebAccess = field(default_factory=lambda: WebAccess(PORT))
    application: WebApplication = field(init=False)
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.application = WebApplication(self.caller, self.access, ROUTES)

    @classmethod
    def let_in(cls, caller: Caller, access: WebAccess | None = None) -> Self:
        """Someone who has opened the address of the pages."""
        visitor = cls(caller, access or WebAccess(PORT))
        visitor.enter()
        return visitor

    def enter(self) -> Page:
        page = self.follow(self.access.new_address().removeprefix(self.access.address))
        self.headers["cookie"] = page.headers["Set-Cookie"].partition(";")[0]
        return page

    def get(self, path: str, *, method: str = "GET", **fields: str) -> Page:
        return self.follow(f"{path}?{urlencode(fields)}", method=method)

    def follow(self, address: str, *, method: str = "GET") -> Page:
        path, _, query = address.partition("?")
        return self.send(
            HttpRequest(method, path, query, b"", self.headers, local=False)
        )

    def pages(self, address: str) -> Iterator[tuple[str, Page]]:
        """Yield the pages of a list with their addresses, the next ones by its own link."""
        for _ in range(LISTS_MAX):
            page = self.follow(address)
            yield address, page
            address = page.older
            if not address:
                return

    def post(self, path: str, **fields: str) -> Page:
        """Send a form as a page would, with the session's token unless one is given."""
        headers = {**self.headers, "content-type": FORM, "origin": self.access.address}
        body = urlencode({"token": self.token(), **fields}).encode()
        return self.send(HttpRequest("POST", path, "", body, headers, local=False))

    def token(self) -> str:
        session = self.access.find_session(self.headers)
        assert session
        return session.form_token

    def send(self, request: HttpRequest) -> Page:
        return Page(self.application.answer(request))


def seen_by(
    visitor: Visitor, kind: type[object], fields: Callable[[Any], dict[str, object]]
) -> Visitor:
    """The visitor of a memory whose results of this type have other fields."""
    return Visitor(
        Changed(visitor.caller, kind, fields), visitor.access, headers=visitor.headers
    )


@contextmanager
def fetched(
    server: WebAccess,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    body: str = "",
) -> Iterator[HTTPResponse]:
    """The response of a server of pages on its port."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
    with closing(connection):
        connection.request(method, path, body or None, headers or {})
        yield connection.getresponse()


def enter(server: WebAccess) -> dict[str, str]:
    """The header of a browser that was let in."""
    path = server.new_address().removeprefix(server.address)
    with fetched(server, path) as entered:
        return {"Cookie": entered.headers["Set-Cookie"].partition(";")[0]}
