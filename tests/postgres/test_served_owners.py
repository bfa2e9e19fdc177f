"""A real daemon that serves many owners over TCP: each token meets the memory of its owner alone."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import WAIT_S, Daemon, eventually, running

from mnemosyned import Client
from mnemosyned.domain.errors import ScopeMissing, SecretRefused, Unauthorized
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.ports.servers.owners import OwnerStore, Scope
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.opening import open_owners

pytestmark = pytest.mark.postgres
ALL = tuple(Scope)


@dataclass(frozen=True, slots=True)
class Service:
    """A daemon, and who its owners are."""

    daemon: Daemon
    owners: OwnerStore
    port: int

    def token(self, owner: str, *scopes: Scope) -> str:
        if owner not in {each.name for each in self.owners.owners()}:
            self.owners.add(owner)
        return self.owners.issue(owner, "test", scopes or ALL).secret

    def client(self, token: str) -> Client:
        return Client(url=f"http://127.0.0.1:{self.port}", token=token)

    def ask(
        self,
        path: str,
        token: str | None,
        fields: object = None,
        *,
        method: str = "POST",
    ) -> tuple[int, dict[str, str], Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = None if method == "GET" else json.dumps(fields or {})
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            answer = json.loads(text) if is_json else text.decode()
            return response.status, dict(response.headers), answer
        finally:
            connection.close()


Serve = Callable[..., AbstractContextManager[Service]]
"""Starts a daemon; settings as MNEMOSYNE_… words."""


@pytest.fixture
def owners(dsn: str) -> Iterator[OwnerStore]:
    with open_owners(dsn, migrations=shipped("migrations") / "postgres") as owners:
        yield owners


@pytest.fixture
def serve(dsn: str, owners: OwnerStore, tmp_path: Path) -> Serve:
    @contextmanager
    def begin(**settings: str) -> Iterator[Service]:
        all_settings: dict[str, Any] = {
            "MNEMOSYNE_LISTEN": "127.0.0.1:0",
            "MNEMOSYNE_OWNERS_SERVE": "true",
            "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
            **settings,
        }
        with running(tmp_path, "--database", dsn, **all_settings) as daemon:
            (line,) = daemon.events("listening")
            assert "token_file" not in line
            port = int(line["address"].rpartition(":")[2])
            yield Service(daemon, owners, port)

    return begin


@pytest.fixture
def service(serve: Serve) -> Iterator[Service]:
    with serve() as service:
        yield service


def test_each_token_meets_the_memory_of_its_owner(service: Service) -> None:
    anna, bert = service.token("anna"), service.token("bert")
    with service.client(anna) as client:
        client.remember("Anna keeps the key under the mat.", id="key")
    with service.client(bert) as client:
        client.remember("Bert keeps the key in the shed.", id="key")
    service.daemon.post("remember", id="key", content="The daemon's own key is here.")

    for token, place in ((anna, "mat"), (bert, "shed")):
        with service.client(token) as client:
            (hit,) = client.recall("where is the key?").hits
            assert place in hit.content
            assert client.status().tiers[Tier.WORKING].count == 1
            assert client.sleep(force=True).evicted == 1
            (hit,) = client.recall("where is the key?").hits
            assert place in hit.content
    with service.daemon.client() as client:
        (hit,) = client.recall("where is the key?").hits
        assert "own key" in hit.content


def test_an_owner_sees_neither_the_server_nor_its_size(service: Service) -> None:
    with service.client(service.token("anna")) as client:
        status = client.status()

    assert (status.database, status.bytes_on_disk) == ("postgresql", 0)
    for path in ("/metrics", "/hooks", "/v1/watch"):
        code, _, answer = service.ask(path, service.token("anna"), method="GET")
        assert (code, answer["error"]["code"]) == (404, "unknown_verb")


@pytest.mark.parametrize("token", [None, "x" * 43, f"mnt_2_{'x' * 43}", "mnt_0_ü"])
def test_who_has_no_token_is_refused(service: Service, token: str | None) -> None:
    code, headers, answer = service.ask("/v1/status", token)

    assert (code, answer["error"]["code"]) == (401, "unauthorized")
    assert headers["WWW-Authenticate"].startswith("Bearer ")
    assert ("invalid_token" in headers["WWW-Authenticate"]) is bool(token)


def is_refused(service: Service, token: str) -> bool:
    return service.ask("/v1/status", token)[0] == 401


def test_a_revoked_token_and_a_removed_owner_are_refused_within_a_second(
    service: Service,
) -> None:
    revoked, removed = service.token("anna"), service.token("bert")
    for token in (revoked, removed):
        assert service.ask("/v1/remember", token, {"content": "a bike"})[0] == 200

    service.owners.revoke("anna", "test")
    service.owners.remove("bert")

    for token in (revoked, removed):
        refused = partial(is_refused, service, token)
        eventually(refused, "an answer of 401")


@pytest.mark.parametrize("is_removed", [False, True])
def test_live_events_end_with_their_token(
    service: Service, *, is_removed: bool
) -> None:
    token = service.token("anna")
    connection = HTTPConnection("127.0.0.1", service.port, timeout=WAIT_S)
    connection.request(
        "GET", "/v1/events", headers={"Authorization": f"Bearer {token}"}
    )
    events = connection.getresponse()
    if is_removed:
        service.owners.remove("anna")
    else:
        service.owners.revoke("anna", "test")
        other = service.token("anna")
        eventually(lambda: is_refused(service, token), "an answer of 401")
        service.ask("/v1/remember", other, {"content": "said afterwards"})

    text = events.read().decode()  # to its end
    connection.close()
    assert "event: dropped" in text
    assert '"code":"unauthorized"' in text
    assert "said afterwards" not in text


@pytest.mark.parametrize("scope", ALL)
def test_a_token_does_what_its_scope_allows(service: Service, scope: Scope) -> None:
    with service.client(service.token("anna")) as client:
        client.remember("The bike is blue.", id="bike")
        learned = client.learn("Always answer in French.").learning
    token = service.token("anna", scope)
    asked: dict[Scope, list[tuple[str, dict[str, object]]]] = {
        Scope.READ: [("recall", {"query": "bike"}), ("get", {"id": "bike"})],
        Scope.WRITE: [
            ("remember", {"content": "a new bell"}),
            ("sleep", {}),
            ("import", {}),
        ],
        Scope.FORGET: [
            ("remove_learning", {"id": learned.id}),
            ("forget", {"id": "bike", "now": True}),
            ("prune", {}),
        ],
    }
    for needed, calls in asked.items():
        for verb, fields in calls:
            code, _, answer = service.ask(f"/v1/{verb}", token, fields)
            if needed is scope:
                assert code == 200 or verb == "import", (verb, answer)
            else:
                assert (code, answer["error"]["code"]) == (403, "scope_missing")
                assert f"needs the scope {needed}" in answer["error"]["message"]
    code, _, answer = service.ask("/v1/export", token, method="GET")
    assert code == (200 if scope is Scope.READ else 403), answer


def test_agents_meet_the_same_bounds_over_mcp(service: Service) -> None:
    with service.client(service.token("anna")) as client:
        client.remember("The bike is blue.", id="bike")

    def call(token: str, tool: str, **arguments: object) -> str:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        code, _, answer = service.ask("/mcp", token, message)
        assert code == 200, answer
        return json.dumps(answer)

    reader, stranger = service.token("anna", Scope.READ), service.token("bert")
    assert "blue" in call(reader, "recall", query="bike")
    assert "blue" not in call(stranger, "recall", query="bike")
    assert "needs the scope write" in call(reader, "remember", content="no")


def test_errors_reach_the_client_as_they_are(service: Service) -> None:
    reader = service.client(service.token("anna", Scope.READ))
    nobody = service.client("mnt_9_" + "x" * 43)
    with reader, nobody:
        with pytest.raises(
            ScopeMissing, match="this token allows read; remember needs"
        ):
            reader.remember("a bike")
        with pytest.raises(Unauthorized, match="is none, has expired or was revoked"):
            nobody.recall("a bike")


def test_a_round_puts_owners_to_sleep_that_nobody_asks_for(
    serve: Serve, owners: OwnerStore
) -> None:
    old = [
        {
            "id": f"m{number}",
            "content": f"Bell {number} rang.",
            "created_at": "2026-01-01",
        }
        for number in range(3)
    ]
    with serve() as service:
        tokens = [service.token(f"owner{number}") for number in range(5)]
        for token in tokens:
            assert service.ask("/v1/remember_many", token, {"memories": old})[0] == 200

    def have_slept() -> bool:
        found = [each for each in owners.owners() if each.name != "local"]
        return all(each.memories == 3 and each.summaries for each in found)

    assert not have_slept()
    with serve(
        MNEMOSYNE_AUTO_SLEEP="true", MNEMOSYNE_SLEEP_INTERVAL_MINUTES="0.01"
    ) as service:
        eventually(have_slept, "a summary for each owner")
        for token in tokens:
            with service.client(token) as client:
                status = client.status()
            assert status.tiers[Tier.ARCHIVE].count == 3
            assert status.sleep.next_cycle
        eventually(lambda: service.daemon.events("round_finished"), "the round's end")


def test_the_capacity_and_a_purge_are_seen_to_in_the_background(serve: Serve) -> None:
    with (
        serve(MNEMOSYNE_WM_MAX="20") as service,
        service.client(service.token("anna")) as client,
    ):
        for number in range(30):
            client.remember(f"Bell {number} rang at the mill.", id=f"m{number}")
        eventually(
            lambda: client.status().tiers[Tier.WORKING].count <= 20, "room again"
        )
        forgotten = client.forget("m29", now=True)
        assert forgotten.memories == 1
        # The round that enforces the capacity may purge it as well, before the answer.
        assert forgotten.complete is (forgotten.purge_in_s is None)
        eventually(lambda: not client.status().purge_due, "the purge")


def test_a_stop_loses_nothing(serve: Serve) -> None:
    with serve() as service:
        token = service.token("anna")
        with service.client(token) as client:
            client.remember("The bike is blue.", id="bike")
        assert service.daemon.stop() == 0
        assert "Traceback" not in service.daemon.log.read_text()
    with serve() as service, service.client(token) as client:
        assert client.get("bike").memory


def test_a_reload_reaches_the_memories_that_are_open(
    serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("secrets: keep\n")
    with (
        serve(MNEMOSYNE_CONFIG=str(file)) as service,
        service.client(service.token("anna")) as client,
    ):
        client.remember("first")
        file.write_text("secrets: refuse\n")
        service.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: service.daemon.events("config_reloaded"), "the reload")
        with pytest.raises(SecretRefused):
            client.remember("my password is hunter2-swordfish")


def test_more_owners_than_may_be_open_are_served(serve: Serve) -> None:
    with serve(MNEMOSYNE_OWNERS_OPEN_MAX="2") as service:
        tokens = [service.token(f"owner{number}") for number in range(5)]
        for _ in range(2):
            for number, token in enumerate(tokens):
                with service.client(token) as client:
                    client.remember(f"bell {number}", id=f"m{number}")
                    (hit,) = client.recall("bell").hits
                    assert hit.id == f"m{number}"
