"""What the tests share: a daemon that also answers over TCP.

The official SDK's tests are collected where it is installed: by `make test-agents`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents.outside import SDK
from e2e.daemons import Daemon, running

collect_ignore = [] if SDK.is_dir() else ["test_mcp_sdk.py"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("agents")
    with running(home, MNEMOSYNE_LISTEN="127.0.0.1:0") as daemon:
        yield daemon
