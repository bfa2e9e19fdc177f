"""A daemon for the adapters' tests, and the frameworks' own tests run against it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import Daemon, environment, running, short_room
from e2e.reader import Reader
from support.pages import DOCS, blocks

from mnemosyned import AsyncClient

PROJECT = Path(__file__).parents[2]
SOURCES = PROJECT / "build" / "adapters" / "sources"
UPSTREAM_S = 300
NEEDS = {
    "test_langgraph.py": "langgraph-checkpoint",
    "test_openai_agents.py": "openai-agents",
    "test_llama_index.py": "llama-index-core",
    "test_pydantic_ai.py": "pydantic-ai-slim",
}
collect_ignore = [
    file for file, name in NEEDS.items() if not any(distributions(name=name))
]
"""The tests of frameworks that are not installed: `make test-adapters` installs one at a time."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("adapters")) as daemon:
        yield daemon


def with_client(
    script: Callable[[AsyncClient], Coroutine[Any, Any, None]],
) -> Callable[[Daemon], None]:
    """Return the test that runs a script with a client of the daemon."""

    def test(daemon: Daemon) -> None:
        async def run() -> None:
            async with AsyncClient(daemon.socket) as client:
                await script(client)

        asyncio.run(run())

    return test


def run_page(adapter: str) -> None:
    """Run the program of the page that uses an adapter, and compare what it prints."""
    programs = [
        block
        for block in blocks(DOCS / "frameworks.md")
        if block.language == "python" and f"mnemosyned.adapters.{adapter}" in block.text
    ]
    assert programs
    with short_room() as home:
        runtime = home / "mnemosyned"
        runtime.mkdir(mode=0o700)
        with running(home, "--socket", str(runtime / "mnemosyned.sock")):
            for program in programs:
                Reader(home).read(program)


class UpstreamTests:
    """Tests that a framework ships for its own implementation, run against the adapter."""

    def __init__(self, daemon: Daemon, home: Path) -> None:
        self._daemon = daemon
        self._home = home

    def outcome(
        self, source: str, tests: str, plugin: str, *chosen: str
    ) -> dict[str, int]:
        """How many tests passed and so on; the plugin puts the adapter in the original's place."""
        folder = SOURCES / source
        paths = (str(folder), str(PROJECT / "tests"), os.environ.get("PYTHONPATH", ""))
        options = ["-q", "-rf", "-c", os.devnull, "--rootdir", str(folder)]
        options += ["-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "-p", plugin]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, tests, *chosen],
            cwd=folder,
            env=environment(
                self._home,
                MNEMOSYNE_SOCKET=str(self._daemon.socket),
                PYTEST_DISABLE_PLUGIN_AUTOLOAD=None,
                PYTHONPATH=os.pathsep.join(filter(None, paths)),
            ),
            capture_output=True,
            text=True,
            timeout=UPSTREAM_S,
            check=False,
        )
        print(done.stdout[-6_000:], done.stderr[-2_000:])
        summary = done.stdout.strip().splitlines()[-1]
        return {
            word: int(count)
            for count, word in re.findall(
                r"(\d+) (passed|failed|errors?|skipped)", summary
            )
        }


@pytest.fixture
def upstream(daemon: Daemon, tmp_path: Path) -> UpstreamTests:
    return UpstreamTests(daemon, tmp_path)
