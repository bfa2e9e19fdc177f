"""The Model Context Protocol: both eras, and what becomes of faulty messages."""

import json

import pytest
from support.fakes import NOON
from support.mcp import MODERN_META, FakeSessions, McpPeer, peer

from mnemosyned.agents.mcp.protocol import LEGACY_VERSIONS, SERVER_KEY, VERSION_KEY
from mnemosyned.agents.mcp.server import (
    BATCH_MAX,
    INSTRUCTIONS,
    UnreachableDaemon,
    mcp_route,
)
from mnemosyned.service.service import MemoryService


@pytest.fixture
def client(service: MemoryService) -> McpPeer:
    return peer(service, now=NOON)


@pytest.fixture
def over_http(service: MemoryService) -> McpPeer:
    """A client that speaks HTTP itself, without `mnem mcp`."""
    return McpPeer(mcp_route(service, FakeSessions(), now=lambda: NOON), {})


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_initialize_answers_with_the_version_asked_for(
    client: McpPeer, version: str
) -> None:
    result = client.result("initialize", protocolVersion=version, capabilities={})
    assert result["protocolVersion"] == version
    assert set(result["capabilities"]) == {"tools", "resources", "prompts"}


def test_initialize_with_an_unknown_version_answers_with_the_newest_that_has_a_handshake(
    client: McpPeer,
) -> None:
    result = client.result("initialize", protocolVersion="1999-01-01", capabilities={})
    assert result["protocolVersion"] == LEGACY_VERSIONS[0]


def test_instructions_fit_and_their_beginning_stands_alone() -> None:
    assert len(INSTRUCTIONS.encode()) < 2_000
    beginning = INSTRUCTIONS.split("\n\n")[0]
    assert len(beginning) <= 512
    assert all(f"`{tool}`" in beginning for tool in ("recall", "remember", "learn"))


def test_discover_tells_the_versions_and_the_server(client: McpPeer) -> None:
    result = client.result("server/discover", _meta=MODERN_META)
    assert "2026-07-28" in result["supportedVersions"]
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_KEY]["name"] == "mnemosyne"
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"


@pytest.mark.parametrize(
    "method",
    [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ],
)
def test_lists_are_the_same_in_both_eras_but_for_what_modern_results_carry(
    client: McpPeer, method: str
) -> None:
    legacy = client.result(method)
    modern = client.result(method, _meta=MODERN_META)
    added = {"resultType", "_meta", "ttlMs", "cacheScope"}
    assert {name: modern[name] for name in modern.keys() - added} == legacy
    assert added < modern.keys()


def test_results_of_tools_may_not_be_kept_by_clients(client: McpPeer) -> None:
    result = client.result("tools/call", name="status", arguments={}, _meta=MODERN_META)
    assert result["resultType"] == "complete"
    assert "ttlMs" not in result


def test_a_resource_is_stale_at_once_and_private(client: McpPeer) -> None:
    result = client.result(
        "resources/read", uri="mnemosyne://status", _meta=MODERN_META
    )
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_an_unsupported_version_is_answered_with_those_that_are(
    client: McpPeer,
) -> None:
    error = client.error("tools/list", _meta={**MODERN_META, VERSION_KEY: "2099-01-01"})
    assert error["code"] == -32022
    assert error["data"]["requested"] == "2099-01-01"
    assert "2026-07-28" in error["data"]["supported"]


def test_a_modern_request_without_capabilities_is_malformed(client: McpPeer) -> None:
    error = client.error("tools/list", _meta={VERSION_KEY: "2026-07-28"})
    assert error["code"] == -32602
    assert "clientCapabilities" in error["message"]


@pytest.mark.parametrize(
    ("method", "meta"),
    [
        ("tools/lost", None),
        ("server/discover", None),
        ("logging/setLevel", None),
        ("tools/lost", MODERN_META),
        ("ping", MODERN_META),
        ("initialize", MODERN_META),
    ],
)
def test_unknown_methods_are_said_to_be_unknown_before_any_handshake(
    client: McpPeer, method: str, meta: dict[str, object] | None
) -> None:
    error = client.error(method, **({"_meta": meta} if meta else {}))
    assert error["code"] == -32601


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'"ping"', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b"[]", -32600),
        (b'[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]', -32600),
    ],
)
def test_faulty_messages_get_the_error_of_json_rpc(
    client: McpPeer, body: bytes, code: int
) -> None:
    answer = json.loads(client.post(body).body)
    errors = answer if isinstance(answer, list) else [answer]
    assert [each["error"]["code"] for each in errors] == [code]


def test_a_batch_is_answered_but_for_its_notifications(client: McpPeer) -> None:
    body = json.dumps(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "b", "method": "lost"},
        ]
    ).encode()
    answers = json.loads(client.post(body).body)
    assert [answer["id"] for answer in answers] == [1, "b"]
    assert answers[1]["error"]["code"] == -32601


def test_a_batch_has_a_limit(client: McpPeer) -> None:
    one = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = json.loads(client.post(json.dumps([one] * (BATCH_MAX + 1)).encode()).body)
    assert answer["error"]["code"] == -32600


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
    ],
)
def test_notifications_and_responses_are_accepted_without_an_answer(
    client: McpPeer, message: dict[str, object]
) -> None:
    response = client.post(json.dumps(message).encode())
    assert (response.status, response.body) == (202, b"")


def test_the_cursor_of_another_page_is_refused(client: McpPeer) -> None:
    assert client.error("tools/list", cursor="2")["code"] == -32602


# --------------------------------------------------------------------- HTTP


def _modern(method: str, **params: object) -> bytes:
    given = {**params, "_meta": MODERN_META}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    return json.dumps(message).encode()


def test_headers_that_say_what_the_body_says_are_accepted(over_http: McpPeer) -> None:
    response = over_http.post(
        _modern("tools/call", name="status", arguments={}),
        mcp_protocol_version="2026-07-28",
        mcp_method="tools/call",
        mcp_name="=?base64?c3RhdHVz?=",
    )
    assert response.status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_method": "tools/list"},
        {"mcp_name": "recall"},
        {"mcp_name": "=?base64?!!?="},
    ],
)
def test_headers_that_say_otherwise_are_refused(
    over_http: McpPeer, wrong: dict[str, str]
) -> None:
    right = {
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": "tools/call",
        "mcp_name": "status",
    }
    body = _modern("tools/call", name="status", arguments={})
    response = over_http.post(body, **(right | wrong))
    assert response.status == 400
    assert json.loads(response.body)["error"]["code"] == -32020


def test_missing_headers_are_refused_over_http_and_not_for_carried_lines(
    over_http: McpPeer, client: McpPeer
) -> None:
    assert over_http.post(_modern("tools/list")).status == 400
    assert client.post(_modern("tools/list")).status == 200


@pytest.mark.parametrize(
    ("method", "status"), [("lost", 404), ("prompts/get", 400), ("tools/list", 200)]
)
def test_modern_errors_have_a_status_of_http(
    over_http: McpPeer, method: str, status: int
) -> None:
    named = {"name": "none"} if method == "prompts/get" else {}
    response = over_http.post(
        _modern(method, **named),
        mcp_protocol_version="2026-07-28",
        mcp_method=method,
        mcp_name="none",
    )
    assert response.status == status


def test_a_legacy_request_with_an_unknown_version_in_its_header_is_refused(
    over_http: McpPeer,
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    assert over_http.post(body, mcp_protocol_version="1.0").status == 400
    assert over_http.post(body, mcp_protocol_version="2025-06-18").status == 200


def test_a_handshake_over_http_gives_a_session_that_names_the_client(
    over_http: McpPeer,
) -> None:
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "clientInfo": {"name": "Goose", "version": "1"},
            },
        }
    ).encode()
    sessions = [dict(over_http.post(body).headers)["mcp-session-id"] for _ in range(2)]
    assert len(set(sessions)) == 2
    call = (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
        b'"params":{"name":"status","arguments":{}}}'
    )
    answer = json.loads(over_http.post(call, mcp_session_id=sessions[0]).body)
    status = answer["result"]["structuredContent"]
    assert status["client"] == "goose"
    assert sessions[0] in status["session"]


def test_a_long_call_tells_its_progress_before_its_answer(client: McpPeer) -> None:
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 9,
            "method": "tools/call",
            "params": {
                "name": "forget",
                "arguments": {"query": "nothing", "confirm": True},
                "_meta": {"progressToken": "p"},
            },
        }
    ).encode()
    response = client.post(body)
    assert response.content_type == "text/event-stream"
    assert response.stream is not None
    messages = [json.loads(event.partition(b"data: ")[2]) for event in response.stream]
    assert messages[-1]["id"] == 9
    assert messages[-1]["result"]["structuredContent"]["deleted"]
    values = [message["params"]["progress"] for message in messages[:-1]]
    assert values == sorted(set(values))


def test_without_a_daemon_lists_work_and_tools_say_what_to_do() -> None:
    client = peer(UnreachableDaemon("no daemon answers; start it"), now=NOON)
    assert len(client.result("tools/list")["tools"]) == 7
    assert client.failure("recall", query="shop") == "no daemon answers; start it"
    assert client.error("resources/read", uri="mnemosyne://status")["code"] == -32603
    assert client.error("prompts/get", name="recall", arguments={"about": "x"})[
        "message"
    ] == ("no daemon answers; start it")
