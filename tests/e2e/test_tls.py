"""TCP with TLS: who is answered and trusted, a renewed certificate, and what clients keep and send again."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from e2e.authorities import Authority, Certificate
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Json, eventually, refused
from e2e.doors import CLIENTS, NAMES, TOKEN, Connect, Door, door_of, remember
from e2e.scripted_daemon import answer, read_request
from e2e.tls_servers import PIECE_BYTES, relaying, reset, serving
from support.cases import each_case
from support.openssl import HAVE_OPENSSL, openssl

from mnemosyned import (
    AsyncClient,
    Client,
    DaemonUnreachable,
    ForeignDaemon,
    Unauthorized,
)
from mnemosyned.client import tls as connecting

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


@contextmanager
def connected(door: Door, **limits: ssl.TLSVersion) -> Iterator[HTTPSConnection]:
    """A connection to a listener that reads what was written of a request."""
    context = ssl.create_default_context(cafile=str(door.ca))
    for name, version in limits.items():
        setattr(context, name, version)
    connection = HTTPSConnection(
        "127.0.0.1", door.port, timeout=WAIT_S, context=context
    )
    with closing(connection):
        yield connection


def call(
    door: Door, connection: HTTPSConnection, verb: str, **fields: object
) -> tuple[int, Json]:
    headers = {"Authorization": f"Bearer {door.token}"}
    connection.request("POST", f"/v1/{verb}", json.dumps(fields), headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def is_answered(door: Door) -> bool:
    with connected(door) as connection:
        return call(door, connection, "status")[0] == 200


@pytest.mark.parametrize(
    ("origin", "status"), [({}, 200), ({"Origin": "https://elsewhere.example"}, 403)]
)
def test_the_daemon_has_whatever_name_its_certificate_says(
    door: Door, origin: dict[str, str], status: int
) -> None:
    headers = {"Authorization": f"Bearer {door.token}", "Host": "memory.example"}
    with connected(door) as connection:
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
def test_who_speaks_no_tls_gets_nothing(door: Door, sent: bytes) -> None:
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
        connected(door, minimum_version=old, maximum_version=old) as connection,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        connection.connect()


@pytest.mark.thorough
def test_a_certificate_is_renewed(start: Start, authority: Authority) -> None:
    served = authority.issue(*NAMES)
    renewed = authority.issue(*NAMES, ends=timedelta(days=40 * 365))
    daemon = start(**served.settings)
    door = door_of(daemon, authority)
    address = ("127.0.0.1", door.port)
    with connected(door) as opened:
        assert expiry_shown(door, opened) == expiry(served)
        before = ssl.get_server_certificate(address)
        shutil.copy(renewed.certificate, served.certificate)
        shutil.copy(renewed.key, served.key)

        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: daemon.events("config_reloaded"), "the reload")

        after = ssl.get_server_certificate(address)
        assert after != before
        assert after.split() == renewed.certificate.read_text().split()
        assert expiry_shown(door, opened) == expiry(renewed)
    assert is_answered(door)


def expiry(issued: Certificate) -> float:
    said = openssl("x509 -noout -enddate", "-in", issued.certificate)
    return float(ssl.cert_time_to_seconds(said.strip().partition("=")[2]))


def expiry_shown(door: Door, connection: HTTPSConnection) -> float:
    headers = {"Authorization": f"Bearer {door.token}"}
    connection.request("GET", "/metrics", headers=headers)
    text = connection.getresponse().read().decode()
    _, _, rest = text.partition("\nmnemosyned_certificate_expiry_timestamp_seconds ")
    return float(rest.split()[0])


def refusal(home: Path, **settings: Json) -> str:
    code, said = refused("--check", home=home, **settings)
    assert code in (0, 78), said
    return said if code else ""


@pytest.mark.parametrize("address", ["0.0.0.0:7464", "[::]:7464", "192.0.2.1:7464"])
def test_other_machines_are_let_in_with_tls_alone(
    tmp_path: Path, address: str, certificate: Certificate
) -> None:
    listen = {"MNEMOSYNE_LISTEN": address}

    assert "tls.certificate" in refusal(tmp_path, **listen)
    assert not refusal(tmp_path, **(certificate.settings | listen))


def test_a_certificate_in_the_trusted_form_of_openssl_is_taken(
    tmp_path: Path, authority: Authority
) -> None:
    served = authority.issue(*NAMES)
    asked = "x509 -trustout -addtrust serverAuth"
    trusted = openssl(asked, "-in", served.certificate)
    assert "BEGIN TRUSTED CERTIFICATE" in trusted
    served.certificate.write_text(trusted)

    settings = served.settings | {"MNEMOSYNE_LISTEN": "0.0.0.0:7464"}
    assert not refusal(tmp_path, **settings)


def test_a_bad_certificate_is_refused(tmp_path: Path, authority: Authority) -> None:
    served, other = authority.issue(*NAMES), authority.issue(*NAMES)
    served.certificate.chmod(0o600)  # it is named as a key, too
    encrypted = tmp_path / "encrypted.key"
    openssl(f"pkcs8 -topk8 -in {served.key} -out {encrypted} -passout pass:secret")
    encrypted.chmod(0o600)
    key, certificate = "MNEMOSYNE_TLS_KEY", "MNEMOSYNE_TLS_CERTIFICATE"

    for name, file, said in (
        (key, None, "both"),
        (certificate, None, "both"),
        (key, tmp_path / "missing", "cannot be used"),
        (key, other.key, "cannot be used"),
        (key, served.certificate, "cannot be used"),
        (certificate, served.key, "cannot be used"),
        (key, encrypted, "encrypted"),
    ):
        wrong = {name: None if file is None else str(file)}
        assert said in refusal(tmp_path, **(served.settings | wrong)), (name, file)
    served.key.chmod(0o644)
    assert "others may read" in refusal(tmp_path, **served.settings)


# Whom `Client` and `AsyncClient` trust over https, and what they say of everything else.


@CLIENTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_a_proven_name_is_trusted(connect: Connect, host: str, door: Door) -> None:
    url = f"https://{host}:{door.port}/"
    assert remember(connect, url, door.token, door.ca)


FAULTS = {
    "unknown authority": "does not know: nothing was sent; name the PEM file",
    "other authority": "is not signed by the authority in",
    "wrong name": "is for a name other than localhost",
    "expired": "has expired",
    "not yet valid": "is not valid yet: nothing was sent; check this machine's clock",
}


@CLIENTS
@pytest.mark.parametrize("fault", FAULTS)
def test_whom_the_certificate_does_not_prove_gets_nothing(
    connect: Connect, fault: str, authority: Authority, tmp_path: Path
) -> None:
    day = timedelta(days=1)
    other = Authority(tmp_path / "other").file
    ca = {"unknown authority": None, "other authority": other}.get(
        fault, authority.file
    )
    validity = {"expired": {"ends": -day}, "not yet valid": {"begins": day}}
    names = ("DNS:memory.example",) if fault == "wrong name" else NAMES
    served = authority.issue(*names, **validity.get(fault, {}))
    received: list[bytes] = []

    with (
        serving(lambda tls: received.append(tls.recv(1)), served) as server,
        pytest.raises(ForeignDaemon, match=FAULTS[fault]) as caught,
    ):
        remember(connect, server.url, TOKEN, ca)

    assert server.url in caught.value.message
    assert not any(received)


# ---------------------------------------------------------------- what is no daemon


@CLIENTS
def test_plain_http_to_a_port_of_tls_says_so(connect: Connect, door: Door) -> None:
    url = f"http://127.0.0.1:{door.port}"
    with pytest.raises(DaemonUnreachable, match="or write https:// if it has a cert"):
        remember(connect, url, door.token, None)

    def alert(plain: socket.socket) -> None:
        plain.recv(PIECE_BYTES)
        plain.sendall(b"\x15\x03\x01\x00\x02\x02\x46")

    with (
        serving(alert) as server,
        pytest.raises(DaemonUnreachable, match="speaks TLS: write https://"),
    ):
        remember(connect, f"http://localhost:{server.port}", TOKEN, None)


@CLIENTS
def test_tls_to_plain_http_says_so(connect: Connect, authority: Authority) -> None:
    received: list[bytes] = []

    def refuse(plain: socket.socket) -> None:
        received.append(plain.recv(PIECE_BYTES))
        plain.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        time.sleep(0.1)

    with (
        serving(refuse) as server,
        pytest.raises(DaemonUnreachable, match="speaks no TLS"),
    ):
        remember(connect, server.url, TOKEN, authority.file)

    assert received[0][:1] == b"\x16"  # a record of the handshake
    assert TOKEN.encode() not in b"".join(received)


@CLIENTS
def test_a_handshake_that_never_ends_has_a_limit(
    connect: Connect, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "HANDSHAKE_S", 0.3)
    over = threading.Event()

    def wait(_: socket.socket) -> None:
        over.wait(WAIT_S)

    with (
        serving(wait) as server,
        pytest.raises(DaemonUnreachable, match="began no TLS in time") as caught,
    ):
        remember(connect, server.url, TOKEN, authority.file)
    over.set()
    assert "`tls.certificate`" in caught.value.message


@CLIENTS
def test_a_port_of_nobody_is_told(connect: Connect, authority: Authority) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DaemonUnreachable, match=f"no daemon answers on {url}"):
            remember(connect, url, TOKEN, authority.file)
    with pytest.raises(DaemonUnreachable, match=r"the host of .* is not known"):
        remember(connect, "https://memory.invalid:1", TOKEN, None)


@CLIENTS
def test_a_wrong_token_is_named(connect: Connect, door: Door) -> None:
    with pytest.raises(Unauthorized, match=f"{door.url} refuses the token given by"):
        remember(connect, door.url, TOKEN, door.ca)


# ------------------------------------------------------------------------ arguments


@each_case(
    ("url", "words"),
    [
        ("http://10.0.0.1:7464", "in the clear: write https://10.0.0.1"),
        ("http://memory.example", "in the clear: write https://memory.example"),
        ("http://127.0.0.1.attacker.example:7464", "in the clear: write https://127"),
        ("http://127.0.0.1", "names no port"),
        ("http://127.0.0.1:99999", "is not the address"),
        ("127.0.0.1:7464", "is not the address"),
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


# `Client` and `AsyncClient` over https: what they keep, stream and send again.


def test_calls_share_a_connection(
    door: Door, certificate: Certificate, authority: Authority
) -> None:
    with (
        relaying(door.daemon.socket, certificate) as relay,
        Client(url=relay.url, token=TOKEN, ca=authority.file) as client,
    ):
        for number in range(20):
            client.remember("a bell", id=f"shared-{number}")
        assert len(relay.connections) == 1


@pytest.mark.thorough
def test_a_hundred_calls_at_once_are_answered(door: Door) -> None:
    texts = [f"{number} " + "word " * 10_000 for number in range(100)]

    async def remember_all() -> list[str]:
        async with door.async_client() as client:
            await asyncio.gather(
                *(client.remember(text, id=f"h-{n}") for n, text in enumerate(texts))
            )
            found = [await client.get(f"h-{number}") for number in range(100)]
            return [got.memory.content for got in found if got.memory]

    assert asyncio.run(remember_all()) == texts


@pytest.mark.thorough
def test_events_come_over_tls(door: Door) -> None:
    with door.client() as client:
        events = client.events()
        client.remember("Ada drinks Assam")
        heard = next(events)
    assert heard.memories[0].text == "Ada drinks Assam"

    async def listen() -> str:
        async with door.async_client() as client:
            await client.remember("Ada drinks Ceylon")
            async for event in client.events(after=heard.id):
                return event.memories[0].text
        return ""

    assert asyncio.run(listen()) == "Ada drinks Ceylon"


# -------------------------------------------------------------- what is sent again


@CLIENTS
@pytest.mark.parametrize("verb", ["remember", "undo"])
def test_after_a_reset_on_the_way_nothing_is_done_twice(
    connect: Connect, verb: str, authority: Authority, certificate: Certificate
) -> None:
    requests: list[bytes] = []

    def serve(tls: socket.socket) -> None:
        requests.append(read_request(tls))
        reset(tls)

    with (
        serving(serve, certificate) as server,
        connect(url=server.url, token=TOKEN, ca=authority.file) as client,
        pytest.raises(DaemonUnreachable, match="hung up"),
    ):
        client.remember("x") if verb == "remember" else client.undo("01")
    assert len(requests) == 1


@CLIENTS
def test_a_read_on_a_connection_that_was_lost_is_asked_again(
    connect: Connect, authority: Authority, certificate: Certificate
) -> None:
    served: list[int] = []

    def serve(tls: socket.socket) -> None:
        served.append(1)
        read_request(tls)
        tls.sendall(answer())
        if len(served) == 1:  # the second request meets its end
            read_request(tls)
            reset(tls)

    with (
        serving(serve, certificate) as server,
        connect(url=server.url, token=TOKEN, ca=authority.file) as client,
    ):
        assert [client.log().rows, client.log().rows] == [[], []]
    assert len(served) == 2


def test_a_cancelled_call_leaves_no_half_answer(door: Door) -> None:
    async def cancelled_and_asked() -> int:
        async with door.async_client() as client:
            await client.remember("x" * 50_000, id="long")
            for delay in (0.0, 0.0005, 0.001, 0.002):
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await client.get("long")
            found = (await client.get("long")).memory
            return len(found.content) if found else 0

    assert asyncio.run(cancelled_and_asked()) == 50_000
