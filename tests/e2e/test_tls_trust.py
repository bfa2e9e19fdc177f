"""Whom `Client` and `AsyncClient` trust over https, and what they say of everything else."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from e2e.authorities import Authority
from e2e.daemons import WAIT_S, running
from e2e.doors import CLIENTS, NAMES, TOKEN, Door, Remember, door_of
from e2e.tls_servers import PIECE_BYTES, serving
from support.openssl import HAVE_OPENSSL

from mnemosyned import (
    AsyncClient,
    Client,
    ContentTooLarge,
    DaemonUnreachable,
    ForeignDaemon,
    Unauthorized,
)
from mnemosyned.client import tls as connecting

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


@CLIENTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_a_daemon_that_proves_its_name_gets_the_memory(
    remember: Remember, host: str, door: Door
) -> None:
    url = f"https://{host}:{door.port}/"
    assert remember(url, door.token, door.ca, "the bike is blue")


FAULTS = {
    "unknown authority": "does not know: nothing was sent; name the PEM file",
    "other authority": "is not signed by the authority in",
    "wrong name": "is for another name than localhost",
    "expired": "has expired",
    "not yet valid": "is not valid yet: nothing was sent; check this machine's clock",
}


@CLIENTS
@pytest.mark.parametrize("fault", FAULTS)
def test_whom_the_certificate_does_not_prove_gets_nothing(
    remember: Remember, fault: str, authority: Authority, tmp_path: Path
) -> None:
    day = timedelta(days=1)
    ca: Path | None = authority.file
    served = authority.issue(*NAMES)
    if fault == "unknown authority":
        ca = None
    elif fault == "other authority":
        ca = Authority(tmp_path / "other").file
    elif fault == "wrong name":
        served = authority.issue("DNS:memory.example", "IP:192.0.2.1")
    elif fault == "expired":
        served = authority.issue(*NAMES, ends=-day)
    else:
        served = authority.issue(*NAMES, begins=day)
    received: list[bytes] = []

    with (
        serving(lambda tls: received.append(tls.recv(1)), served) as server,
        pytest.raises(ForeignDaemon, match=FAULTS[fault]) as caught,
    ):
        remember(server.url, TOKEN, ca, "the bike is blue")

    assert server.url in caught.value.message
    assert not any(received)


# ---------------------------------------------------------------- what is no daemon


@CLIENTS
def test_plain_http_to_a_port_of_tls_says_so(remember: Remember, door: Door) -> None:
    url = f"http://127.0.0.1:{door.port}"
    with pytest.raises(DaemonUnreachable, match="or write https:// if it has a cert"):
        remember(url, door.token, None, "the bike is blue")

    def alert(plain: socket.socket) -> None:
        plain.recv(PIECE_BYTES)
        plain.sendall(b"\x15\x03\x01\x00\x02\x02\x46")

    with (
        serving(alert) as server,
        pytest.raises(DaemonUnreachable, match="speaks TLS: write https://"),
    ):
        remember(f"http://localhost:{server.port}", TOKEN, None, "the bike is blue")


@CLIENTS
def test_tls_to_a_port_of_plain_http_says_so(
    remember: Remember, authority: Authority
) -> None:
    def refuse(plain: socket.socket) -> None:
        plain.recv(1)
        plain.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        time.sleep(0.1)

    with (
        serving(refuse) as server,
        pytest.raises(DaemonUnreachable, match="speaks no TLS"),
    ):
        remember(server.url, TOKEN, authority.file, "the bike is blue")


@CLIENTS
def test_a_daemon_without_tls_is_not_waited_for_long(
    remember: Remember,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "HANDSHAKE_S", 0.5)
    with running(tmp_path, MNEMOSYNE_LISTEN="127.0.0.1:0") as daemon:
        door = door_of(daemon, authority)
        with pytest.raises(DaemonUnreachable, match="TLS") as caught:
            remember(door.url, door.token, door.ca, "the bike is blue")
    assert "`tls.certificate`" in caught.value.message


@CLIENTS
def test_a_handshake_that_never_ends_has_a_limit(
    remember: Remember, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "HANDSHAKE_S", 0.3)
    over = threading.Event()

    def wait(_: socket.socket) -> None:
        over.wait(WAIT_S)

    with (
        serving(wait) as server,
        pytest.raises(DaemonUnreachable, match="began no TLS in time"),
    ):
        remember(server.url, TOKEN, authority.file, "the bike is blue")
    over.set()


@CLIENTS
def test_a_port_without_a_listener_and_a_host_without_a_name_are_told(
    remember: Remember, authority: Authority
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DaemonUnreachable, match=f"no daemon answers on {url}"):
            remember(url, TOKEN, authority.file, "the bike is blue")
    with pytest.raises(DaemonUnreachable, match=r"the host of .* is not known"):
        remember("https://memory.invalid:1", TOKEN, None, "the bike is blue")


@CLIENTS
def test_a_wrong_token_is_named_with_the_daemon_that_refuses_it(
    remember: Remember, door: Door
) -> None:
    with pytest.raises(Unauthorized, match=f"{door.url} refuses the token given by"):
        remember(door.url, TOKEN, door.ca, "the bike is blue")


@CLIENTS
def test_a_body_that_is_refused_tells_the_reason(
    remember: Remember, door: Door
) -> None:
    with pytest.raises(ContentTooLarge):
        remember(door.url, door.token, door.ca, "x" * 20_000_000)


# ------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://10.0.0.1:7464", "in the clear: write https://10.0.0.1"),
        ("http://memory.example", "in the clear: write https://memory.example"),
        ("https://memory.example:99999", "is not the address"),
        ("https://memory.example:0", "is not the address"),
        ("https://memory.example/v1", "is not the address"),
        ("https://anna:secret@memory.example", "has no user"),
        ("https://", "is not the address"),
        ("https://m\r\nHost: x", "is not the address"),
        ("ftp://memory.example", "is not the address"),
    ],
)
def test_an_address_that_is_none_says_how_one_is_written(url: str, words: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="https://") as caught:
            kind(url=url, token=TOKEN)
        assert words in str(caught.value)
        assert "secret" not in str(caught.value)


def test_an_authority_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    garbled = tmp_path / "garbled.pem"
    garbled.write_text("hello")
    for file in (garbled, tmp_path / "missing.pem"):
        with pytest.raises(ValueError, match=f"ca: {file} cannot be used"):
            Client(url="https://memory.example", token=TOKEN, ca=file)
    with pytest.raises(ValueError, match="ca is for https"):
        Client(url="http://127.0.0.1:1", token=TOKEN, ca=garbled)
