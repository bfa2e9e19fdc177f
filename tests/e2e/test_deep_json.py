"""JSON of the caller's own, nested too deep for the work on it, is refused where it comes in."""

from __future__ import annotations

import pytest
from e2e.daemons import Daemon, kept

from mnemosyned import Client
from mnemosyned.errors import InvalidRequest
from mnemosyned.verbs.request import DEPTH_MAX

pytestmark = pytest.mark.e2e

DEPTHS = [DEPTH_MAX + 1, 330, 450, 600, 900]


def lists(depth: int) -> object:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def objects(depth: int) -> object:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", DEPTHS)
def test_json_that_is_too_deep_is_refused(shared: Daemon, depth: int) -> None:
    before = kept(shared.database)
    message = {"role": "user", "content": "x", "tool_calls": lists(depth)}
    requests = [
        ("metadata", shared.post("remember", content="x", metadata=objects(depth))),
        (
            "metadata",
            shared.post("remember", content="x", metadata={"a": lists(depth)}),
        ),
        (
            "memories[0].metadata",
            shared.post(
                "remember_many", memories=[{"content": "x", "metadata": objects(depth)}]
            ),
        ),
        ("messages", shared.post("compact", messages=[message], force=True)),
        ("messages", shared.post("context", message="x", messages=[message])),
        ("message", shared.post("context", message=message)),
        ("tools", shared.post("context", message="x", tools=[lists(depth)])),
    ]

    for field, answer in requests:
        assert (answer.status, *answer.error) == (400, "invalid_request", field)
    assert kept(shared.database) == before


@pytest.mark.parametrize("path", ["/hooks", "/mcp", "/v1/import", "/v1/remember"])
def test_what_python_cannot_decode_is_no_json(shared: Daemon, path: str) -> None:
    deep = b'{"payload": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"

    assert shared.request("POST", path, deep).status == 400


def test_the_client_refuses_it_too(shared: Daemon) -> None:
    with (
        Client(shared.socket) as client,
        pytest.raises(InvalidRequest, match="levels deep"),
    ):
        client.remember("x", metadata={"a": lists(450)})


def test_json_at_the_depth_limit_is_accepted(shared: Daemon) -> None:
    deepest = objects(DEPTH_MAX)
    message = {"role": "user", "content": "x", "tool_calls": lists(DEPTH_MAX - 2)}

    written = shared.post("remember", content="deep", id="deep", metadata=deepest)
    read = shared.post("get", id="deep")
    compacted = shared.post("compact", messages=[message], force=True)
    assembled = shared.post(
        "context", message=message, messages=[message], tools=[lists(99)]
    )

    assert (written.status, read.status) == (200, 200)
    assert read.body["memory"]["metadata"] == deepest
    assert (compacted.status, assembled.status) == (200, 200)
