"""The official conformance suite: what it says is recorded, and what fails is known and explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.outside import BUILD, CONFORMANCE, relay, run_node
from e2e.daemons import Daemon, running

pytestmark = pytest.mark.agents

EXPECTED_FAILURES = Path(__file__).with_name("conformance-failures.yaml")
RECORD = BUILD / "conformance.txt"
PASSING = frozenset(
    {
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    }
)
"""Scenarios about the protocol itself; the others call tools of the suite's own server."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(
        tmp_path_factory.mktemp("conformance"), MNEMOSYNE_LISTEN="127.0.0.1:0"
    ) as daemon:
        yield daemon


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
