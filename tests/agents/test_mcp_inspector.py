"""The MCP Inspector lists and calls over each transport; the official conformance suite passes.

What the suite says is recorded, and what fails is known and explained.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agents.outside import (
    BUILD,
    CONFORMANCE,
    INSPECTOR,
    pump_command,
    relay,
    run_node,
    tcp_port,
    token_of,
)
from e2e.daemons import Daemon
from e2e.programs import BIN

pytestmark = pytest.mark.agents


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


def test_the_inspector_reads_resources_and_prompts(
    daemon: Daemon, tmp_path: Path
) -> None:
    def inspect(*words: str) -> Any:
        return _inspect(daemon, "stdio", tmp_path, *words)

    id = daemon.post("remember", content="The hall lamp is red.").body["id"]
    assert len(inspect("--method", "resources/list")["resources"]) == 9
    assert (
        len(inspect("--method", "resources/templates/list")["resourceTemplates"]) == 3
    )
    uri = f"mnemosyne://memory/{id}"
    read = inspect("--method", "resources/read", "--uri", uri)
    assert "is red" in read["contents"][0]["text"]
    assert len(inspect("--method", "prompts/list")["prompts"]) == 2
    prompt = ("--method", "prompts/get", "--prompt-name", "recall")
    filled = inspect(*prompt, "--prompt-args", "about=hall lamp")
    assert "is red" in filled["messages"][0]["content"]["text"]


EXPECTED_FAILURES = Path(__file__).with_name("conformance-failures.yaml")
RECORD = BUILD / "conformance.txt"
PASSING = set(
    "server-initialize ping tools-list resources-list prompts-list dns-rebinding-protection".split()
)
"""Scenarios about the protocol itself; the others call tools of the suite's own server."""


def test_the_suite_fails_only_where_it_asks_for_another_server(
    daemon: Daemon, tmp_path: Path
) -> None:
    with relay(daemon) as url:
        done = run_node(
            CONFORMANCE,
            *("server", "--url", url, "--suite", "all"),
            *("--expected-failures", EXPECTED_FAILURES),
            *("--output-dir", tmp_path / "results"),
            home=tmp_path,
        )
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    RECORD.write_text(output)
    assert done.returncode == 0, output
    passed = set(re.findall(r"^✓ ([\w-]+): ", output, re.MULTILINE))
    assert passed >= PASSING, output
