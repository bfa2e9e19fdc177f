"""The MCP Inspector, in command-line mode, lists and calls over each transport."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents.outside import INSPECTOR, pump_command, run_node, tcp_port, token_of
from e2e.daemons import Daemon, running
from e2e.programs import BIN

pytestmark = pytest.mark.agents


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(
        tmp_path_factory.mktemp("inspector"), MNEMOSYNE_LISTEN="127.0.0.1:0"
    ) as daemon:
        yield daemon


def _target(daemon: Daemon, transport: str) -> tuple[str, ...]:
    if transport == "stdio":
        return ("--", *pump_command(BIN / "mnem", daemon))
    header = f"Authorization: Bearer {token_of(daemon)}"
    return ("--header", header, "--", f"http://127.0.0.1:{tcp_port(daemon)}/mcp")


def _inspect(daemon: Daemon, transport: str, home: Path, *words: str) -> Any:
    """What the Inspector prints as JSON."""
    done = run_node(INSPECTOR, *words, *_target(daemon, transport), home=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
def test_the_inspector_lists_and_calls(
    daemon: Daemon, transport: str, tmp_path: Path
) -> None:
    def inspect(*words: str) -> Any:
        return _inspect(daemon, transport, tmp_path, *words)

    tools = inspect("--method", "tools/list", "--strict")["tools"]
    assert len(tools) == 7
    call = ("--method", "tools/call", "--tool-name")
    text = f"content=The {transport} lamp is red."
    stored = inspect(*call, "remember", "--tool-arg", text)["structuredContent"]
    found = inspect(*call, "recall", "--tool-arg", f"query={transport} lamp")
    ids = [hit["id"] for hit in found["structuredContent"]["hits"]]
    assert stored["id"] in ids
    assert len(inspect("--method", "resources/list")["resources"]) == 9
    assert (
        len(inspect("--method", "resources/templates/list")["resourceTemplates"]) == 3
    )
    uri = f"mnemosyne://memory/{stored['id']}"
    read = inspect("--method", "resources/read", "--uri", uri)
    assert "is red" in read["contents"][0]["text"]
    assert len(inspect("--method", "prompts/list")["prompts"]) == 2
    prompt = ("--method", "prompts/get", "--prompt-name", "recall")
    filled = inspect(*prompt, "--prompt-args", f"about={transport} lamp")
    assert "is red" in filled["messages"][0]["content"]["text"]
