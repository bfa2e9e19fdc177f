"""A real daemon that serves many owners over TCP: each token meets the memory of its owner alone.

STREAMS=200 follows so many streams across the loss of their tokens.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from http.client import HTTPResponse
from itertools import count
from math import inf
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, eventually, mnem
from postgres.daemons import Serve, Service
from postgres.fleet import setting
from support.postgres import run

from mnemosyned import Client
from mnemosyned.errors import LimitReached, SecretRefused
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.memory.values import Tier
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.upkeep import LimitUse

pytestmark = pytest.mark.postgres
STREAMS = setting("STREAMS", 14)
STREAMS_AT_ONCE = 24
LOSSES = ("revoked", "expired", "rotated", "narrowed", "removed", "kept", "exporting")
"""What becomes of a stream's token; the last is revoked while it exports again and again."""
LATE_S = 1.5
"""A word that is said so long after its reader lost the right to it is never shown to it."""
VALID_S = 3
"""Of a token that expires, and of a stream that ends by itself."""
WORD = re.compile(r"[a-z]+\d+word\d+")


def test_an_owner_sees_neither_the_server_nor_its_size(
    service: Service, dsn: str
) -> None:
    run(dsn, "CREATE INDEX broken ON memory (role)")
    run(
        dsn,
        "UPDATE pg_index SET indisvalid = false FROM pg_class WHERE oid = indexrelid AND relname = 'broken'",
    )
    with service.client(service.token("anna")) as client:
        status = client.status()
    with Client(socket=service.daemon.socket) as local:
        (problem,) = local.status().problems

    with service.client(service.token("bert")) as client:
        later = client.status()

    assert (status.database, status.bytes_on_disk) == ("postgresql", 0)
    assert problem.startswith("the index broken")
    assert status.problems == status.warnings == []
    assert (
        status.uptime_s < later.uptime_s
    )  # of the daemon, though this was opened later
    for path in ("/metrics", "/v1/watch"):
        code, _, answer = service.ask(path, service.token("anna"), method="GET")
        assert (code, answer["error"]["code"]) == (404, "unknown_verb")


@pytest.mark.parametrize("token", [None, "x" * 43, f"mnt_2_{'x' * 43}", "mnt_0_ü"])
def test_who_has_no_token_is_refused(service: Service, token: str | None) -> None:
    code, headers, answer = service.ask("/v1/status", token)

    assert (code, answer["error"]["code"]) == (401, "unauthorized")
    assert headers["WWW-Authenticate"].startswith("Bearer ")
    assert ("invalid_token" in headers["WWW-Authenticate"]) is bool(token)


class Talk:
    """Owners who say one word after the other, each with its owner's name in it."""

    def __init__(self, service: Service) -> None:
        self.said_at: dict[str, float] = {}
        """When each word was about to be remembered."""
        self.over = threading.Event()
        self._service = service

    def go_on(self, owner: str, token: str) -> None:
        """Say words until the end, or until the owner is removed."""
        for number in count():
            word = f"{owner}word{number}"
            self.said_at[word] = time.monotonic()
            if not token:
                code = self._service.daemon.post("remember", content=word).status
            else:
                code = self._service.status("/v1/remember", token, content=word)
            if owner.startswith("gone") and code in {401, 404}:
                return
            assert code == 200, (owner, code)
            if self.over.wait(0.1):
                return


def lines_shown(service: Service, path: str, token: str) -> Generator[str]:
    """The lines that a token is sent, asked for again after each end, until it is refused."""
    while True:
        with service.request(path, token, method="GET") as response:
            assert response.status in {200, 401, 403}, response.read()
            if response.status != 200:
                return
            while line := response.readline():
                yield line.decode()


def test_no_stream_shows_words_of_others_or_after_its_token_was_lost(
    dsn: str, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    owners, talk, figures = service.owners, Talk(service), Counter[str]()
    names = [f"owner{number}" for number in range(6)]

    def follow(number: int) -> None:
        loss = LOSSES[number % len(LOSSES)]
        owner = names[number % len(names)]
        if loss == "removed":
            owner = f"gone{number}"
            talkers.append(talking.submit(talk.go_on, owner, service.token(owner)))
        valid_for = timedelta(seconds=VALID_S) if loss == "expired" else None
        issued = owners.issue(
            owner, f"stream{number}", (Scope.READ,), valid_for=valid_for
        )
        began = time.monotonic()
        lost_at = began + VALID_S if valid_for else inf
        path = "/v1/export" if loss == "exporting" else "/v1/events?after=0"
        shown: set[str] = set()
        with closing(lines_shown(service, path, issued.secret)) as lines:
            for line in lines:
                shown.update(WORD.findall(line))
                assert time.monotonic() < lost_at + WAIT_S, f"it goes on: {loss}"
                if loss == "kept" and time.monotonic() > began + VALID_S:
                    break
                if not shown or loss == "kept" or lost_at < inf:
                    continue
                lost_at = 0.0
                if loss == "removed":
                    owners.remove(owner)
                elif loss == "rotated":
                    owners.rotate(owner, issued.token.id, keep_for=timedelta(seconds=1))
                    lost_at = 1.0
                elif loss == "narrowed":
                    narrowed = (
                        "UPDATE owner_token SET scopes = '{{write}}' WHERE id = '{}'"
                    )
                    run(dsn, narrowed.format(issued.token.id))
                else:
                    owners.revoke(owner, issued.token.id)
                lost_at += time.monotonic()
        assert lost_at < inf or loss == "kept", f"it ended before: {loss}"
        assert shown or loss == "expired"
        assert not [word for word in shown if not word.startswith(f"{owner}word")]
        assert not [word for word in shown if talk.said_at[word] > lost_at + LATE_S]
        figures.update({loss: 1, "words": len(shown)})

    with (
        ThreadPoolExecutor(len(names) + 1 + STREAMS_AT_ONCE) as talking,
        ThreadPoolExecutor(STREAMS_AT_ONCE) as following,
    ):
        talkers = [talking.submit(talk.go_on, "local0", "")]
        talkers += [
            talking.submit(talk.go_on, name, service.token(name)) for name in names
        ]
        try:
            followed = list(following.map(follow, range(STREAMS)))
        finally:
            talk.over.set()
        for talker in talkers:
            talker.result()

    assert len(followed) == STREAMS
    if STREAMS >= 100:
        with capsys.disabled():
            print(f"{STREAMS} streams, {len(talk.said_at):,} words said:", figures)


@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_does_what_its_scope_allows(service: Service, scope: Scope) -> None:
    with service.client(service.token("anna")) as client:
        client.remember("The bike is blue.", id="bike")
        learned = client.learn("Always answer in French.").learning
    token = service.token("anna", scope)
    asked: dict[Scope, list[tuple[str, dict[str, object]]]] = {
        Scope.READ: [("recall", {"query": "bike"}), ("get", {"id": "bike"})],
        Scope.WRITE: [("remember", {"content": "bell"}), ("sleep", {}), ("import", {})],
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


def test_a_round_puts_all_to_sleep(serve: Serve, owners: PostgresOwners) -> None:
    old = [
        {"content": f"Bell {number} rang.", "created_at": "2026-01-01"}
        for number in range(3)
    ]
    with serve() as service:
        tokens = [service.token(f"owner{number}") for number in range(5)]
        for token in tokens:
            assert service.status("/v1/remember_many", token, memories=old) == 200

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


def test_a_reload_reaches_open_memories(serve: Serve, tmp_path: Path) -> None:
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


# Each owner is held to its limits, and its clients wait for them.


BUSY = {
    "limited": {"requests_per_minute": 20, "writes_per_minute": 60},
    "full": {"memories_max": 5, "bytes_per_day": 100, "requests_per_minute": 60},
    "reader": {"streams_max": 2},
}


@pytest.fixture
def limited(serve: Serve) -> Iterator[Service]:
    with serve(MNEMOSYNE_OWNERS_LIMITS_BY_OWNER=json.dumps(BUSY)) as service:
        yield service


def test_what_exceeds_a_limit_is_refused_for_this_owner_alone(limited: Service) -> None:
    busy, free = limited.token("limited"), limited.token("free")
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(
            lambda _: limited.ask("/v1/recall", busy, {"query": "a"}), range(30)
        )
        by_code = {answer[0]: answer[1:] for answer in answers}

    assert by_code.keys() == {200, 429}
    headers, answer = by_code[429]
    assert answer["error"]["code"] == "limit_reached"
    assert "20 requests a minute" in answer["error"]["message"]
    assert int(headers["Retry-After"]) >= 1
    assert limited.ask("/v1/recall", free, {"query": "a"})[0] == 200


def test_limits_of_an_unknown_owner_are_a_warning_to_the_operator(
    limited: Service,
) -> None:
    def warned() -> list[str]:
        status = json.loads(limited.daemon.mnem("status", "--json").stdout)
        return [text for text in status["warnings"] if "limits_by_owner" in text]

    logged = [entry["reason"] for entry in limited.daemon.events("owner_unknown")]
    assert logged == warned() != []
    assert [name for name in BUSY if f"'{name}'" in "".join(logged)] == [*BUSY]

    token = limited.token("full")

    assert len(warned()) == len(BUSY) - 1
    assert b"no such owner" in limited.daemon.mnem("doctor").stdout
    own = limited.ask("/v1/status", token, {})[2]["warnings"]
    assert "no such owner" not in str(own)


def test_a_client_that_waits_loses_nothing(limited: Service) -> None:
    token = limited.token("limited")
    limited.ask("/v1/remember_many", token, {"memories": [{"content": "a"}] * 65})
    assert limited.status("/v1/remember", token, content="too soon") == 429

    with limited.client(token) as client:
        kept = client.remember("kept after a pause").id

        assert [hit.id for hit in client.recall("pause").hits] == [kept]


def test_a_command_says_for_which_limit_it_waits(
    limited: Service, tmp_path: Path
) -> None:
    token = limited.token("limited")
    limited.ask("/v1/remember_many", token, {"memories": [{"content": "a"}] * 65})
    file = tmp_path / "token"
    file.write_text(token)
    file.chmod(0o600)

    done = mnem(
        *("--url", limited.url, "--token-file", str(file), "remember", "tea"),
        home=tmp_path,
    )

    assert done.returncode == 0
    said = done.stderr.decode().splitlines()
    assert re.fullmatch(r"mnem: waiting for \d+ s: .* limit of 60 writes .*", said[0])
    assert len(said) == 1


def test_a_full_memory_takes_no_more_until_some_is_forgotten(limited: Service) -> None:
    token = limited.token("full")
    batch = [{"id": f"m{n}", "content": f"word {n}"} for n in range(5)]
    assert limited.status("/v1/remember_many", token, memories=batch) == 200

    def hook(event: str) -> int:
        payload = {"hook_event_name": event, "session_id": "s", "prompt": "a word"}
        return limited.status("/hooks", token, payload=payload)

    assert [hook("SessionStart"), hook("UserPromptSubmit")] == [200, 429]
    code, _, answer = limited.ask("/v1/remember", token, {"content": "one more"})

    assert (code, answer["error"]["code"]) == (429, "limit_reached")
    assert "5 memories of the 5" in answer["error"]["message"]
    with limited.client(token) as client, pytest.raises(LimitReached):
        client.remember_many([Remember("an import that waits for nobody")])
    assert limited.status("/v1/forget", token, id="m1") == 200
    eventually(
        lambda: limited.status("/v1/remember", token, content="one") == 200,
        "room for one",
    )


def test_streams_beyond_the_limit_are_refused_until_one_ends(limited: Service) -> None:
    token = limited.token("reader")

    def stream() -> AbstractContextManager[HTTPResponse]:
        return limited.request("/v1/events", token, method="GET")

    with stream() as first, stream() as second, stream() as third:
        first.readline()
        second.readline()
        assert [first.status, second.status, third.status] == [200, 200, 429]

    def is_free() -> bool:
        with stream() as further:
            return further.status == 200

    eventually(is_free, "a free place for a stream")


def test_status_shows_the_limits_and_what_is_used(limited: Service) -> None:
    token = limited.token("full")
    limited.ask("/v1/remember", token, {"content": "x" * 40})
    with limited.client(token) as client:
        uses = {use.name: use for use in client.status().limits}

    assert uses["memories_max"] == LimitUse(name="memories_max", limit=5, used=1)
    assert uses["bytes_per_day"].used == 40
    assert uses["requests_per_minute"].used >= 1
    with limited.daemon.client() as client:
        assert client.status().limits == []
