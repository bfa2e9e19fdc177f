"""A real daemon holds each owner to its limits, and its clients wait for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from http.client import HTTPResponse

import pytest
from e2e.daemons import eventually
from postgres.daemons import Serve, Service

from mnemosyned.verbs.upkeep import LimitUse

pytestmark = pytest.mark.postgres
BUSY = {
    "limited": {"requests_per_minute": 20, "writes_per_minute": 60},
    "full": {"memories_max": 5, "bytes_per_day": 100, "requests_per_minute": 60},
    "reader": {"streams_max": 2},
}


@pytest.fixture
def service(serve: Serve) -> Iterator[Service]:
    with serve(MNEMOSYNE_OWNERS_LIMITS_BY_OWNER=json.dumps(BUSY)) as service:
        yield service


def test_what_exceeds_a_limit_is_refused_for_this_owner_alone(service: Service) -> None:
    limited, free = service.token("limited"), service.token("free")
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(
            lambda _: service.ask("/v1/recall", limited, {"query": "a"}), range(30)
        )
        by_code = {answer[0]: answer[1:] for answer in answers}

    assert by_code.keys() == {200, 429}
    headers, answer = by_code[429]
    assert answer["error"]["code"] == "limit_reached"
    assert "20 requests a minute" in answer["error"]["message"]
    assert int(headers["Retry-After"]) >= 1
    assert service.ask("/v1/recall", free, {"query": "a"})[0] == 200


def test_a_client_that_waits_loses_nothing(service: Service) -> None:
    token = service.token("limited")
    service.ask("/v1/remember_many", token, {"memories": [{"content": "a"}] * 65})
    assert service.status("/v1/remember", token, content="too soon") == 429

    with service.client(token) as client:
        kept = client.remember("kept after a pause").id

        assert [hit.id for hit in client.recall("pause").hits] == [kept]


def test_a_full_memory_takes_no_more_until_some_is_forgotten(service: Service) -> None:
    token = service.token("full")
    batch = [{"id": f"m{n}", "content": f"word {n}"} for n in range(5)]
    assert service.status("/v1/remember_many", token, memories=batch) == 200

    def hook(event: str) -> int:
        payload = {"hook_event_name": event, "session_id": "s", "prompt": "a word"}
        return service.status("/hooks", token, payload=payload)

    assert [hook("SessionStart"), hook("UserPromptSubmit")] == [200, 429]
    code, _, answer = service.ask("/v1/remember", token, {"content": "one more"})

    assert (code, answer["error"]["code"]) == (429, "limit_reached")
    assert "5 memories of the 5" in answer["error"]["message"]
    assert service.status("/v1/forget", token, id="m1") == 200
    eventually(
        lambda: service.status("/v1/remember", token, content="one") == 200,
        "room for one",
    )


def test_streams_beyond_the_limit_are_refused_until_one_ends(service: Service) -> None:
    token = service.token("reader")

    def stream() -> AbstractContextManager[HTTPResponse]:
        return service.request("/v1/events", token, method="GET")

    with stream() as first, stream() as second, stream() as third:
        first.readline()
        second.readline()
        assert [first.status, second.status, third.status] == [200, 200, 429]

    def is_free() -> bool:
        with stream() as further:
            return further.status == 200

    eventually(is_free, "a free place for a stream")


def test_status_shows_the_limits_and_what_is_used(service: Service) -> None:
    token = service.token("full")
    service.ask("/v1/remember", token, {"content": "x" * 40})
    with service.client(token) as client:
        uses = {use.name: use for use in client.status().limits}

    assert uses["memories_max"] == LimitUse(name="memories_max", limit=5, used=1)
    assert uses["bytes_per_day"].used == 40
    assert uses["requests_per_minute"].used >= 1
    with service.daemon.client() as client:
        assert client.status().limits == []
