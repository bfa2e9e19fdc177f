"""`mnem mcp` over https: an agent is served, reads what is wrong, and has nothing done twice."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.authorities import Authority, Certificate
from e2e.daemons import Json, environment, running
from e2e.doors import TOKEN, Door, door_of
from e2e.programs import BIN
from e2e.pumps import Pump
from e2e.scripted_daemon import read_request
from e2e.tls_servers import reset, serving
from support.openssl import HAVE_OPENSSL

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


@contextmanager
def pumping(home: Path, *words: str, **settings: Json) -> Iterator[Pump]:
    """A pump with these words and variables, which ends with the block."""
    process = subprocess.Popen(
        [BIN / "mnem", *(words or ["mcp"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, **settings),
    )
    with process:
        try:
            yield Pump(process)
        finally:
            process.kill()


def test_an_agent_is_served(door: Door, tmp_path: Path) -> None:
    typed = ("--url", door.url, "--ca", str(door.ca), "mcp")
    for words, settings in (
        (("mcp",), door.variables),
        (typed, {"MNEMOSYNE_TOKEN": door.token}),
    ):
        with pumping(tmp_path, *words, **settings) as pump:
            pump.initialize()
            stored = pump.call("remember", content="The gate is open.")
            assert stored["structuredContent"]["id"]
            found = pump.call("recall", query="gate")["structuredContent"]["hits"]
            assert "The gate is open." in json.dumps(found)
            assert pump.end() == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"MNEMOSYNE_TOKEN": TOKEN}, "refuses the token of MNEMOSYNE_TOKEN"),
        ({"MNEMOSYNE_CA": ""}, "name the PEM file of that authority"),
        ({"MNEMOSYNE_CA": "/dev/null"}, "has no certificate in PEM"),
        ({"MNEMOSYNE_TOKEN": ""}, "set MNEMOSYNE_TOKEN"),
        ({"MNEMOSYNE_SOCKET": "/run/x.sock"}, "both set: unset one of them"),
        ({"MNEMOSYNE_URL": "https://localhost:1"}, "no daemon answers on https://"),
    ],
)
def test_an_agent_reads_what_is_wrong(
    door: Door, tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    with pumping(tmp_path, **(door.variables | settings)) as pump:
        pump.initialize()
        assert words in json.dumps(pump.call("recall", query="gate"))


def test_a_message_that_was_read_before_a_reset_is_not_sent_again(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    requests: list[bytes] = []

    def serve(tls: socket.socket) -> None:
        requests.append(read_request(tls))
        reset(tls)

    with (
        serving(serve, certificate) as server,
        pumping(
            tmp_path,
            MNEMOSYNE_URL=server.url,
            MNEMOSYNE_TOKEN=TOKEN,
            MNEMOSYNE_CA=str(authority.file),
        ) as pump,
    ):
        said = json.dumps(pump.call("remember", content="The gate is open."))

    assert "look whether it was done, then try again" in said
    assert len(requests) == 1


def test_a_daemon_that_starts_again_is_met_again(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    settings = certificate.settings
    with running(tmp_path, **settings) as daemon:
        door = door_of(daemon, authority)
        with pumping(tmp_path, **door.variables) as pump:
            pump.initialize()
            assert pump.call("remember", content="The gate is open.")
            daemon.stop()
            settings["MNEMOSYNE_LISTEN"] = f"127.0.0.1:{door.port}"
            with running(tmp_path, **settings):
                found = pump.call("recall", query="gate")["structuredContent"]["hits"]

    assert "The gate is open." in json.dumps(found)
