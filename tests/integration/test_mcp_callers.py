"""Whom the tools of agents take a caller for: its client, its session and its project."""

import json
from datetime import timedelta

import pytest
from support.fakes import NOON
from support.mcp import DECISION, FakeSessions, McpPeer, peer

from mnemosyned.service.service import MemoryService


@pytest.fixture
def sessions() -> FakeSessions:
    return FakeSessions()


@pytest.fixture
def client(service: MemoryService, sessions: FakeSessions) -> McpPeer:
    return peer(service, sessions=sessions, now=NOON)


def test_status_says_whom_the_memory_takes_the_caller_for(client: McpPeer) -> None:
    status = client.call("status")
    assert status["client"] == "claude-code"
    assert status["session"] == "claude-code:life1"
    assert status["project"] == "/work/shop"
    assert status["memories"]["working"] == 0


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("cursor-vscode", "cursor"),
        ("Visual Studio Code", "vscode"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("gemini-cli-mcp-client", "gemini"),
        ("opencode", "opencode"),
        ("Zed", "zed"),
        ("my agent / 2", "my-agent-2"),
        ("", "mcp"),
        ("../../etc", "etc"),
        ("漢字", "mcp"),
    ],
)
def test_clients_are_known_by_the_names_they_give_themselves(
    service: MemoryService, name: str, client: str
) -> None:
    handshake = peer(service, now=NOON).post(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {"clientInfo": {"name": name, "version": "1"}},
            }
        ).encode()
    )
    assert dict(handshake.headers)["mnemosyne-client"] == client


def test_the_variables_of_claude_code_count_only_where_it_is_the_client(
    service: MemoryService,
) -> None:
    client = peer(
        service, now=NOON, claude_session="abc", claude_directory="/work/other"
    )
    status = client.call("status")
    assert (status["session"], status["project"]) == ("claude-code:abc", "/work/other")
    codex = client.post(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"name":"status","arguments":{}}}',
        mnemosyne_client="codex",
    )
    status = json.loads(codex.body)["result"]["structuredContent"]
    assert (status["session"], status["project"]) == ("codex:life1", "/work/shop")


def test_two_windows_and_two_days_over_http_are_never_one_session(
    service: MemoryService,
) -> None:
    first = peer(service, now=NOON, life="a").call("status")["session"]
    second = peer(service, now=NOON, life="b").call("status")["session"]
    today = peer(service, now=NOON, life="").call("status")["session"]
    later = NOON + timedelta(days=1)
    tomorrow = peer(service, now=later, life="").call("status")["session"]
    assert len({first, second, today, tomorrow}) == 4


def test_the_users_choice_of_a_project_wins(service: MemoryService) -> None:
    client = peer(service, now=NOON, project="cellar")
    assert client.call("status")["project"] == "cellar"


def test_what_is_remembered_belongs_to_the_project_from_then_on(
    service: MemoryService, sessions: FakeSessions, client: McpPeer
) -> None:
    client.call("remember", content=DECISION)
    assert sessions.known["/work/shop"] == ["claude-code:life1"]
    other = peer(service, sessions=sessions, now=NOON, life="other")
    (hit,) = other.call("recall", query="database of the shop")["hits"]
    assert hit["this_project"]
