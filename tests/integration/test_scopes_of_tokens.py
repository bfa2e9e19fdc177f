"""A token reads what its scopes allow, and only for as long as it is valid: answers and streams."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.cases import each_case
from support.settings import config_by_words

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.assembly.owners import OwnerMemory
from mnemosyned.config.settings import OwnersConfig
from mnemosyned.daemon.http.server import make_handler
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.daemon.owners import KEPT_S, OwnerResources, TokenCache
from mnemosyned.daemon.resources import HEARTBEAT, HOOKS_PATH, MemoryRoutes
from mnemosyned.errors import StorageFailed
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.memory.engine_ports import Scope, TokenHolder
from mnemosyned.service.owners import OwnerLimiter
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.upkeep import EventKind

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners

MARK = "zebrafinch"
PREVIEWS = ("edit", "tag", "untag", "pin", "unpin", "forget", "prune", "undo", "sleep")


class Owners:
    """Owners of which only tokens are known: the scopes of each."""

    def __init__(self) -> None:
        self.scopes: dict[str, frozenset[Scope]] = {}
        self.fails = False

    def holder(self, secret: str) -> TokenHolder | None:
        if self.fails:
            raise StorageFailed("the database is away")
        scopes = self.scopes.get(secret)
        if not scopes:
            return None
        return TokenHolder(
            owner=1, token=secret, scopes=scopes, name="laptop", expires_at=None
        )

    def note_use(self, owner: int, token: str) -> None:
        """Nobody reads it here."""


class Service:
    """One memory, served to whoever has a token."""

    def __init__(self, memory: OpenMemory) -> None:
        self.memory = memory
        self.owners = Owners()
        self.seconds = 0.0
        tokens = TokenCache(
            cast("PostgresOwners", self.owners), now=lambda: self.seconds
        )
        self.answer = make_handler(
            {},
            ServerActivity(),
            tcp_resources=OwnerResources(
                tokens=tokens,
                memory_of=lambda _: memory,
                limits=OwnerLimiter(OwnersConfig, lambda _: ("anna", 0)),
                common={},
            ),
        )

    def token(self, *scopes: Scope) -> str:
        name = "+".join(scopes)
        self.owners.scopes[name] = frozenset(scopes)
        return name

    def ask(self, token: str, path: str, fields: object = None) -> Response:
        return self.answer(
            HttpRequest(
                method="GET" if fields is None else "POST",
                path=path,
                query="",
                body=json.dumps(fields).encode(),
                headers={"authorization": f"Bearer {token}"},
                local=False,
            )
        )

    def call(self, token: str, verb: str, **fields: object) -> tuple[int, str]:
        response = self.ask(token, f"/v1/{verb}", fields)
        return response.status.value, response.body.decode()

    def stream(self, token: str, path: str) -> Iterator[bytes]:
        stream = self.ask(token, path).stream
        assert stream is not None
        return stream

    def events(self, token: str) -> Iterator[bytes]:
        """The stream of events, behind the comment with which it begins."""
        stream = self.stream(token, "/v1/events")
        assert next(stream) == HEARTBEAT
        return stream


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with open_memory(config_by_words(tmp_path / "memory.db")) as memory:
        yield Service(memory)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A filled memory that tests share, as none of them changes it."""
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    with open_memory(config_by_words(database)) as memory:
        service = Service(memory)
        fill(service)
        yield service


def fill(service: Service) -> dict[str, str]:
    """Keep something marked in every tier; the ids of a learning, a cycle and an injection."""
    token = service.token(*Scope)
    for number in range(6):
        service.call(
            token,
            "remember",
            content=f"{MARK} {number} sang in the oak",
            id=f"old-{number}",
            session="aviary",
        )
    slept = json.loads(service.call(token, "sleep", force=True)[1])
    service.call(token, "remember", content=f"{MARK} is fresh", id="fresh")
    learned = json.loads(
        service.call(token, "learn", content=f"Always feed {MARK}.")[1]
    )
    for id, port in (
        ("port", "listens on port 8080"),
        ("moved", "now listens on 9090"),
    ):
        content = f"The cage of {MARK} {port}."
        service.call(token, "remember", content=content, id=id, role="user")
    service.call(token, "endings")
    service.call(token, "context", message=f"what of {MARK}?", messages=[])
    given = json.loads(service.call(token, "injections")[1])["injections"]
    service.call(token, "edit_briefing", id="fresh", text=f"{MARK} in other words")
    return {
        "cycle": slept["cycle"],
        "learning": learned["learning"]["id"],
        "injection": given[0]["id"],
    }


def test_the_handlers_of_a_dropped_memory_do_not_keep_it(service: Service) -> None:
    memory = OwnerMemory(1, service.memory.service)
    table = MemoryRoutes(memory.service, memory.hooks, memory.service).resources()
    kept = weakref.ref(memory)

    del memory

    assert HOOKS_PATH in table
    assert kept() is None


@each_case("path", ["/health", "/readyz"])
def test_a_probe_by_another_method_is_told_the_methods(
    filled: Service, path: str
) -> None:
    response = filled.ask(filled.token(Scope.READ), path, {})

    assert response.status == 405
    assert ("Allow", "GET, HEAD, OPTIONS") in response.headers


@each_case("verb", PREVIEWS)
@each_case("scopes", [(Scope.WRITE,), (Scope.FORGET,), (Scope.READ,)])
def test_a_preview_needs_the_scope_of_its_verb_and_read(
    filled: Service, verb: str, scopes: tuple[Scope, ...]
) -> None:
    selects = {} if verb in ("prune", "undo", "sleep") else {"query": MARK}
    further = {
        "tag": {"tags": ["x"]},
        "untag": {"tags": ["x"]},
        "edit": {"tags": ["x"]},
    }
    fields = {**selects, **further.get(verb, {}), "dry_run": True}
    own = Scope.FORGET if VERBS[verb].deletes else Scope.WRITE

    code, answer = filled.call(filled.token(*scopes), verb, **fields)
    assert code == 403
    assert MARK not in answer
    missing = own if own not in scopes else Scope.READ
    assert f"needs the scope {missing}" in answer
    code, answer = filled.call(filled.token(own, Scope.READ), verb, **fields)
    assert code == 200, answer


@each_case(
    ("scope", "code"), [(Scope.READ, 200), (Scope.WRITE, 403), (Scope.FORGET, 403)]
)
def test_what_can_be_undone_is_shown_to_who_may_read(
    filled: Service, scope: Scope, code: int
) -> None:
    assert filled.call(filled.token(scope), "undo", list=True)[0] == code


def test_every_verb_with_a_preview_is_among_these() -> None:
    having = {
        name for name, verb in VERBS.items() if "dry_run" in verb.__struct_fields__
    }

    # The dry run of a batch shows what the caller sent, and nothing that is kept.
    assert having == {*PREVIEWS, "remember_many"}


def test_no_answer_of_a_write_shows_what_is_kept(service: Service) -> None:
    ids = fill(service)
    calls: dict[str, dict[str, Any]] = {
        "remember": {"content": "a new bell", "supersedes": "fresh"},
        "remember_many": {"memories": [{"content": "a bell"}], "dry_run": True},
        "edit": {"id": "old-1", "text": "other words"},
        "tag": {"id": "old-2", "tags": ["loud"]},
        "untag": {"id": "old-2", "tags": ["loud"]},
        "pin": {"id": "fresh"},
        "unpin": {"id": "fresh"},
        "restore": {"id": "old-3"},
        "sleep": {"force": True},
        "undo": {"action": ids["cycle"]},
        "learn": {"content": "Never feed the cat."},
        "edit_learning": {"id": ids["learning"], "text": "Feed nobody."},
        "remove_learning": {"id": ids["learning"]},
        "compact": {
            "messages": [{"role": "user", "content": "hello"}],
            "force": True,
            "session": "aviary",
        },
        "forget": {"session": "aviary"},
        "prune": {"keep_days": 1},
        "edit_briefing": {"id": "fresh", "pin": True},
        "rate_injection": {"id": ids["injection"], "outcome": "useful"},
        "undo_ending": {"id": "port"},
        "backup": {"file": str(service.memory.config.location.file) + ".copy"},
    }
    writing = {
        name for name, verb in VERBS.items() if verb.writes and not verb.local_only
    }
    assert set(calls) == writing

    blind = service.token(Scope.WRITE, Scope.FORGET)
    for verb, fields in calls.items():
        code, answer = service.call(blind, verb, **fields)
        assert code == 200 or verb == "undo", (verb, answer)
        assert MARK not in answer, verb


def test_an_agent_previews_what_it_may_read_alone(filled: Service) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "forget", "arguments": {"id": "fresh"}},
    }

    refused = filled.ask(filled.token(Scope.FORGET), "/mcp", message)
    shown = filled.ask(filled.token(Scope.FORGET, Scope.READ), "/mcp", message)

    assert b"needs the scope read" in refused.body
    assert MARK.encode() not in refused.body
    assert MARK.encode() in shown.body


def until_end(stream: Iterator[bytes]) -> bytes:
    """All that a stream has left; it ends within some turns."""
    chunks = []
    for _ in range(20):
        try:
            chunks.append(next(stream))
        except StopIteration:
            return b"".join(chunks)
    raise AssertionError(f"the stream goes on: {chunks}")


@pytest.mark.parametrize(
    ("scopes", "code"),
    [(frozenset(), "unauthorized"), (frozenset([Scope.WRITE]), "scope_missing")],
)
def test_events_end_with_the_right_to_read_them(
    service: Service, scopes: frozenset[Scope], code: str
) -> None:
    token = service.token(Scope.READ, Scope.WRITE)
    stream = service.events(token)
    service.call(token, "remember", content="said before")
    assert b"said before" in next(stream)

    service.owners.scopes[token] = scopes
    service.seconds += KEPT_S
    service.memory.service.events.publish(EventKind.CHANGED, verb="said after")
    rest = until_end(stream)

    assert b"said after" not in rest
    assert rest.startswith(b"event: dropped\n")
    assert f'"code":"{code}"'.encode() in rest


def test_events_that_cannot_be_checked_wait_for_the_database(service: Service) -> None:
    token = service.token(Scope.READ, Scope.WRITE)
    stream = service.events(token)
    service.call(token, "remember", content="said before")
    service.owners.fails = True
    service.seconds += KEPT_S
    assert [next(stream), next(stream)] == [b"", b""]

    service.owners.fails = False

    assert b"said before" in next(stream)


def test_an_export_ends_with_the_right_to_read_it(service: Service) -> None:
    token = service.token(Scope.READ, Scope.WRITE)
    many = [{"content": f"bell {number} " * 200} for number in range(400)]
    service.call(token, "remember_many", memories=many)
    stream = service.stream(token, "/v1/export")
    assert b"header" in next(stream)

    del service.owners.scopes[token]
    service.seconds += KEPT_S
    rest = until_end(stream)

    assert json.loads(rest)["record"] == "cut_off"
    assert "revoked" in json.loads(rest)["reason"]
    cast("Any", stream).close()
    service.token(Scope.READ, Scope.WRITE)
    service.seconds += KEPT_S
    assert service.ask(token, "/v1/export").status == 200  # the snapshot was let go


def test_a_hook_tells_nothing_to_a_token_that_may_not_read(service: Service) -> None:
    service.memory.hooks = HookService(service.memory.service)
    every, writing = service.token(*Scope), service.token(Scope.WRITE)
    service.call(every, "remember", content=f"The {MARK} database runs on port 4711.")
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "prompt": f"Which port does the {MARK} database run on?",
    }

    def told(token: str) -> bool:
        call = {"payload": {**payload, "session_id": token}}
        return b"4711" in service.ask(token, "/hooks", call).body

    assert not told(writing)
    assert told(every)
