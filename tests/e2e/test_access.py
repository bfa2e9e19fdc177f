"""Who is let in at each door: the Unix socket, and TCP where it is switched on."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, refused, running
from e2e.doors import Door, door_of

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

STRANGER = 65_534
ASK_AS_STRANGER = f"""
import os, socket, sys
os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
try:
    client.connect(sys.argv[1])
    client.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    print(client.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
PATHS = (
    "/v1/status",
    "/v1/recall?query=tea",
    "/v1/health",
    "/health",
    "/openapi.json",
    "/docs",
    "/metrics",
    "/mcp",
    "/hooks",
    "/nowhere",
)
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="plays another user, which needs root"
)


def allowed(door: Door) -> dict[str, str]:
    host, bearer = f"127.0.0.1:{door.port}", f"Bearer {door.token}"
    return {"Host": host, "Authorization": bearer}


def asked(
    door: Door,
    headers: Mapping[str, str],
    path: str = "/v1/status",
    *,
    method: str = "GET",
    body: bytes = b"",
) -> tuple[int, dict[str, str]]:
    """The status and headers of the response to a request with these headers alone."""
    connection = HTTPConnection("127.0.0.1", door.port, timeout=WAIT_S)
    with closing(connection):
        connection.putrequest(method, path, skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.endheaders(body or None)
        response = connection.getresponse()
        response.read()
        return response.status, dict(response.headers)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    home = tmp_path_factory.mktemp("tcp")
    with running(home, MNEMOSYNE_LISTEN="127.0.0.1:0") as daemon:
        yield door_of(daemon)


def test_the_token_lets_in(door: Door) -> None:
    assert asked(door, allowed(door))[0] == 200
    for host in ("localhost", "LOCALHOST", "[::1]"):
        headers = {**allowed(door), "Host": f"{host}:{door.port}"}
        assert asked(door, headers)[0] == 200
    page = {**allowed(door), "Origin": "http://localhost:6274"}
    assert asked(door, page)[0] == 200


def test_the_token_is_for_its_owner_alone(door: Door) -> None:
    (line,) = door.daemon.events("listening")
    file = Path(line["token_file"])

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(door.token) >= 32
    assert door.token not in door.daemon.log.read_text()
    assert list(file.parent.glob("token*")) == [file]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer {token}x",
        "Basic {token}",
        "{token}",
        "Bearer {token}, Bearer {token}",
        "Bearer \xff",
    ],
)
def test_without_the_token_nothing_is_answered(
    door: Door, path: str, authorization: str | None
) -> None:
    headers = {"Host": f"127.0.0.1:{door.port}"}
    if authorization is not None:
        headers["Authorization"] = authorization.format(token=door.token)

    status, answered = asked(door, headers, path)

    assert status == 401
    assert answered["WWW-Authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        "attacker.example:{port}",
        "localhost.attacker:{port}",
        "127.0.0.1.attacker:{port}",
        "localhost",
        "127.0.0.1:1{port}",
        "127.0.0.1:{port}:80",
        "localhost@attacker:{port}",
        "localhost:{port}, attacker",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "",
    ],
)
def test_a_foreign_host_is_refused(door: Door, path: str, host: str) -> None:
    headers = {**allowed(door), "Host": host.format(port=door.port)}

    assert asked(door, headers, path)[0] == 403


@pytest.mark.parametrize(
    ("request_line", "host", "status"),
    [
        (b"GET /v1/status HTTP/1.0", b"", b"403"),
        (b"GET /v1/status HTTP/1.1", b"", b"400"),
        (b"GET http://attacker/v1/status HTTP/1.1", b"Host: 127.0.0.1:%d\r\n", b"403"),
        (b"GET http://127.0.0.1:%d/v1/status HTTP/1.1", b"Host: attacker\r\n", b"403"),
        (b"GET http://127.0.0.1:%d/v1/status HTTP/1.1", b"Host: 127.0.0.1:%d\r\n", b"200"),
    ],
)  # fmt: skip
def test_the_host_is_checked_however_it_is_named(
    door: Door, request_line: bytes, host: bytes, status: bytes
) -> None:
    port = str(door.port).encode()
    bearer = b"Authorization: Bearer %s\r\n\r\n" % door.token.encode()
    request = (request_line + b"\r\n" + host).replace(b"%d", port) + bearer
    with socket.create_connection(("127.0.0.1", door.port), WAIT_S) as connection:
        connection.sendall(request)
        answer = connection.recv(100)

    assert answer.split()[1] == status


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        "https://attacker.example",
        "http://localhost.attacker",
        "http://127.0.0.1.attacker:7464",
        "http://attacker/localhost",
        "file://localhost",
        "null",
        "",
    ],
)
def test_a_foreign_page_is_refused(door: Door, path: str, origin: str) -> None:
    assert asked(door, {**allowed(door), "Origin": origin}, path)[0] == 403
    with_options = {
        **allowed(door),
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
    }
    status, answered = asked(door, with_options, path, method="OPTIONS")
    assert status == 403
    assert not any(name.lower().startswith("access-control") for name in answered)


def test_hooks_are_taken_over_tcp_with_a_token(door: Door) -> None:
    host = {"Host": allowed(door)["Host"]}

    assert asked(door, host, "/hooks", method="POST", body=b"{}")[0] == 401
    assert asked(door, allowed(door), "/hooks", method="POST", body=b"{}")[0] == 200
    assert door.daemon.request("POST", "/hooks", b"{").status == 400


def test_a_refused_request_is_not_read_and_nothing_is_kept(door: Door) -> None:
    body = json.dumps({"content": "x" * 900_000, "id": "intruder"}).encode()
    host = {"Host": allowed(door)["Host"]}

    assert asked(door, host, "/v1/remember", method="POST", body=body)[0] == 401
    assert asked(door, allowed(door), "/v1/get?id=intruder")[0] == 404


def test_a_refused_client_is_hung_up_on(door: Door) -> None:
    request = b"GET /v1/status HTTP/1.1\r\nHost: attacker\r\n\r\n"
    with socket.create_connection(("127.0.0.1", door.port), WAIT_S) as connection:
        connection.sendall(request * 2)
        received = b""
        with suppress(ConnectionResetError):
            while part := connection.recv(10_000):
                received += part

    assert received.count(b"HTTP/1.1 403 ") == 1


def run_python(script: str, place: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, place],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip


@needs_root
def test_another_user_is_not_let_in_at_the_socket(daemon: Daemon) -> None:
    # The directory and the socket are opened wide, so that the daemon itself must refuse.
    daemon.socket.parent.chmod(0o755)
    daemon.socket.chmod(0o777)

    answer = run_python(ASK_AS_STRANGER, daemon.socket).stdout.strip()

    assert answer in ("b''", "ConnectionResetError", "BrokenPipeError")
    assert [line["uid"] for line in daemon.events("peer_refused")] == [STRANGER]


@needs_root
def test_another_user_cannot_reach_the_socket_nor_read_the_token(door: Door) -> None:
    (line,) = door.daemon.events("listening")
    read = f"import os, sys; os.setuid({STRANGER}); open(sys.argv[1]).read()"

    reached = run_python(ASK_AS_STRANGER, door.daemon.socket)
    learned = run_python(read, line["token_file"])

    assert reached.stdout.strip() == "PermissionError"
    assert "PermissionError" in learned.stderr


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("[2001:db8::1]:7464", "TLS"),
        ("example.org:7464", "localhost"),
        ("localhost", "127.0.0.1:7464"),
        ("127.0.0.1:70000", "127.0.0.1:7464"),
        ("127.0.0.1:", "127.0.0.1:7464"),
        ("::1:7464", "IPv6"),
        ("[127.0.0.1]:7464", "IPv6"),
    ],
)
def test_another_address_is_refused(tmp_path: Path, setting: str, reason: str) -> None:
    database = tmp_path / "memory.db"
    for option in ("--check", f"--database={database}"):
        code, log = refused(option, home=tmp_path, MNEMOSYNE_LISTEN=setting)

        assert code == 78
        assert re.search(f"listen: .*{re.escape(reason)}", log)
    assert not database.exists()


def test_a_port_in_use_stops_the_start(tmp_path: Path, door: Door) -> None:
    place, taken = f"--socket={tmp_path / 's'}", f"127.0.0.1:{door.port}"

    code, log = refused(place, home=tmp_path, MNEMOSYNE_LISTEN=taken)

    assert (code, "choose another port" in log) == (1, True)


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("x" * 40, 0o644, "others may read"),
        ("x" * 40, 0o620, "others may read"),
        ("short", 0o600, "characters"),
        ("", 0o600, "characters"),
        ("\xff" * 40, 0o600, "cannot be read"),
    ],
)
def test_a_poor_token_is_refused(
    tmp_path: Path, text: str, mode: int, reason: str
) -> None:
    token = tmp_path / ".local" / "state" / "mnemosyned" / "token"
    token.parent.mkdir(parents=True)
    token.write_bytes(text.encode("latin-1"))
    token.chmod(mode)

    place = f"--socket={tmp_path / 's'}"
    code, log = refused(place, home=tmp_path, MNEMOSYNE_LISTEN="127.0.0.1:0")

    assert (code, reason in log) == (78, True)


def test_the_token_stays_the_same_after_a_restart(start: Start) -> None:
    first = start(MNEMOSYNE_LISTEN="localhost:0")
    token = door_of(first).token
    first.stop()

    assert door_of(start(MNEMOSYNE_LISTEN="[::1]:0")).token == token


def test_without_the_setting_nothing_listens_on_tcp(daemon: Daemon) -> None:
    inodes = {
        str(entry.readlink())
        for entry in Path(f"/proc/{daemon.process.pid}/fd").iterdir()
        if entry.is_symlink()
    }
    tcp = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    listening = [line.split()[9] for line in tcp.splitlines() if " 0A " in line]

    assert not inodes & {f"socket:[{inode}]" for inode in listening}


def test_idle_tcp_clients_give_way_to_the_socket(start: Start) -> None:
    door = door_of(
        start(MNEMOSYNE_LISTEN="127.0.0.1:0", MNEMOSYNE_LIMITS_CONNECTIONS_MAX="10")
    )
    with door.daemon.client() as client:
        client.status()
        with ExitStack() as idle:
            for _ in range(30):
                address = ("127.0.0.1", door.port)
                idle.enter_context(socket.create_connection(address))
            assert client.status().pid == door.daemon.process.pid
            assert door.daemon.post("status").status == 200
