"""A real daemon for whoever asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from e2e.authorities import Authority, Certificate
from e2e.daemons import Daemon, Json, running, short_room
from e2e.doors import NAMES, Door, door_of
from e2e.hook_programs import Machine

Start = Callable[..., Daemon]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start daemons on `tmp_path`, with settings as MNEMOSYNE_… words; they end with the test."""
    with ExitStack() as stack:

        def begin(
            *options: str, database: Path | None = None, **settings: Json
        ) -> Daemon:
            return stack.enter_context(
                running(tmp_path, *options, database=database, **settings)
            )

        yield begin


@pytest.fixture
def room() -> Iterator[Path]:
    with short_room() as room:
        yield room


@pytest.fixture
def machine(tmp_path: Path, room: Path) -> Machine:
    """A machine of agents, on which no daemon runs."""
    return Machine(tmp_path, room / "mnemosyned.sock")


@pytest.fixture
def daemon(start: Start) -> Daemon:
    return start()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that the tests of a module share; its texts and bodies are small."""
    home = tmp_path_factory.mktemp("shared")
    with running(
        home,
        MNEMOSYNE_LIMITS_CONTENT_BYTES_MAX="2000",
        MNEMOSYNE_LIMITS_BODY_BYTES_MAX="99999",
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that no machine knows."""
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    """A certificate of this machine, signed by it."""
    return authority.issue(*NAMES)


@pytest.fixture(scope="module")
def door(
    authority: Authority,
    certificate: Certificate,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Door]:
    """A daemon that speaks TLS, shared by the tests of a module; its bodies are small."""
    settings = certificate.settings | {"MNEMOSYNE_LIMITS_BODY_BYTES_MAX": "99999"}
    with running(tmp_path_factory.mktemp("door"), **settings) as daemon:
        yield door_of(daemon, authority)
