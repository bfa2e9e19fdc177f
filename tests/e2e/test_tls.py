"""TCP with TLS: who is answered, what a client that breaks the rules gets, a renewed certificate."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import cast

import pytest
from e2e.daemons import WAIT_S, Daemon, Json, eventually, running, spawn
from support.openssl import HAVE_OPENSSL, openssl, self_signed

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    return self_signed(folder, name, names="DNS:memory.example,IP:127.0.0.1")


@dataclass(frozen=True, slots=True)
class Door:
    """A daemon's TCP listener, and what its clients trust."""

    daemon: Daemon
    port: int
    token: str
    certificate: Path
    key: Path

    @contextmanager
    def connected(self, **limits: ssl.TLSVersion) -> Iterator[HTTPSConnection]:
        context = ssl.create_default_context(cafile=str(self.certificate))
        for name, version in limits.items():
            setattr(context, name, version)
        connection = HTTPSConnection(
            "127.0.0.1", self.port, timeout=WAIT_S, context=context
        )
        with closing(connection):
            yield connection

    def call(
        self, connection: HTTPSConnection, verb: str, fields: object, *, token: str = ""
    ) -> tuple[int, dict[str, object]]:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        connection.request("POST", f"/v1/{verb}", json.dumps(fields), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(folder, "memory")
    with running(
        folder,
        MNEMOSYNE_LISTEN="127.0.0.1:0",
        MNEMOSYNE_TLS_CERTIFICATE=str(certificate),
        MNEMOSYNE_TLS_KEY=str(key),
    ) as daemon:
        (line,) = daemon.events("listening")
        port = int(line["address"].rpartition(":")[2])
        token = Path(line["token_file"]).read_text().strip()
        yield Door(daemon, port, token, certificate, key)


def test_requests_large_and_small_follow_each_other(door: Door) -> None:
    texts = ["a" * 10, "b c " * 250_000, "last"]

    with door.connected() as connection:
        for number, text in enumerate(texts):
            fields = {"id": f"tls-{number}", "content": text}
            assert door.call(connection, "remember", fields)[0] == 200
        for number, text in enumerate(texts):
            status, answer = door.call(connection, "get", {"id": f"tls-{number}"})
            memory = cast("dict[str, str]", answer["memory"])
            assert (status, memory["content"]) == (200, text)


def test_without_the_token_nobody_is_answered(door: Door) -> None:
    with door.connected() as connection:
        status, answer = door.call(connection, "status", {}, token="x" * 43)

    assert status == 401
    assert "unauthorized" in json.dumps(answer)


@pytest.mark.parametrize(
    ("origin", "status"),
    [({}, 200), ({"Origin": "https://elsewhere.example"}, 403)],
)
def test_the_daemon_has_whatever_name_its_certificate_says(
    door: Door, origin: dict[str, str], status: int
) -> None:
    headers = {"Authorization": f"Bearer {door.token}", "Host": "memory.example"}
    with door.connected() as connection:
        connection.request("GET", "/v1/status", headers=headers | origin)
        assert connection.getresponse().status == status


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01" + b"\xff" * 600,
        b"\x00" * 100_000,
        b"\x16",
    ],
)
def test_who_speaks_no_tls_gets_nothing_and_hurts_nobody(
    door: Door, sent: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", door.port), WAIT_S) as client:
        client.sendall(sent)
        got = b""
        with suppress(OSError):  # it may have hung up already
            client.shutdown(socket.SHUT_WR)
            while part := client.recv(4_096):
                got += part
    assert b"HTTP" not in got
    assert len(got) < 100
    assert is_answered(door)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_an_old_version_is_refused(door: Door) -> None:
    old = ssl.TLSVersion.TLSv1_1
    with (
        door.connected(minimum_version=old, maximum_version=old) as connection,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        connection.connect()


def test_a_renewed_certificate_is_read_at_a_reload(door: Door, tmp_path: Path) -> None:
    renewed, key = make_certificate(tmp_path, "renewed")
    address = ("127.0.0.1", door.port)
    with door.connected() as opened:
        assert door.call(opened, "status", {})[0] == 200
        before = ssl.get_server_certificate(address)
        shutil.copy(renewed, door.certificate)
        shutil.copy(key, door.key)

        door.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: door.daemon.events("config_reloaded"), "the reload")

        after = ssl.get_server_certificate(address)
        assert after != before
        assert after.split() == renewed.read_text().split()
        assert door.call(opened, "status", {})[0] == 200
    assert is_answered(door)


def is_answered(door: Door) -> bool:
    with door.connected() as connection:
        return door.call(connection, "status", {})[0] == 200


def refusal(home: Path, **settings: Json) -> str:
    """What `mnemosyned --check` says against the settings."""
    log = home / "check.log"
    code = spawn("--check", home=home, log=log, **settings).wait(WAIT_S)
    assert code in (0, 78), log.read_text()
    return log.read_text() if code else ""


@pytest.mark.parametrize("address", ["0.0.0.0:7464", "[::]:7464", "192.0.2.1:7464"])
def test_other_machines_are_let_in_with_tls_alone(tmp_path: Path, address: str) -> None:
    certificate, key = make_certificate(tmp_path, "memory")

    assert "tls.certificate" in refusal(tmp_path, MNEMOSYNE_LISTEN=address)
    assert not refusal(
        tmp_path,
        MNEMOSYNE_LISTEN=address,
        MNEMOSYNE_TLS_CERTIFICATE=str(certificate),
        MNEMOSYNE_TLS_KEY=str(key),
    )


def test_a_certificate_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "memory")
    certificate.chmod(0o600)  # it is named as a key, too
    _, other = make_certificate(tmp_path, "other")
    named = {
        "MNEMOSYNE_TLS_CERTIFICATE": str(certificate),
        "MNEMOSYNE_TLS_KEY": str(key),
    }

    for name, file in named.items():
        assert "both" in refusal(tmp_path, **{name: file})
    for name, wrong in (
        ("MNEMOSYNE_TLS_KEY", tmp_path / "missing"),
        ("MNEMOSYNE_TLS_KEY", other),
        ("MNEMOSYNE_TLS_KEY", certificate),
        ("MNEMOSYNE_TLS_CERTIFICATE", key),
    ):
        assert "cannot be used" in refusal(tmp_path, **(named | {name: str(wrong)}))
    encrypted = tmp_path / "encrypted.key"
    openssl(f"pkcs8 -topk8 -in {key} -out {encrypted} -passout pass:secret")
    encrypted.chmod(0o600)
    said = refusal(tmp_path, **(named | {"MNEMOSYNE_TLS_KEY": str(encrypted)}))
    assert "encrypted" in said
    key.chmod(0o644)
    assert "others may read" in refusal(tmp_path, **named)
