"""Clients of a server: the login, the memory of each folder, renewals, and waits for limits of an owner."""

import asyncio
import json
import os
import resource
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.cases import each_case
from support.endpoints import Behavior, Endpoint, gives, serving

from mnemosyned import AsyncClient, Client
from mnemosyned.agents.mcp.pump import (
    DaemonLost,
    PumpedCall,
    PumpedDaemon,
    read_messages,
)
from mnemosyned.cli.main import mnem
from mnemosyned.client.address import Address, address_of
from mnemosyned.client.login import renew_token, save_login
from mnemosyned.client.remote import remote_daemon, remote_of
from mnemosyned.client.streams import Transfers
from mnemosyned.errors import LimitReached
from mnemosyned.socket_path import (
    LOCAL,
    SERVER,
    SavedConnection,
    connection_for,
    connection_path,
    saved_connection,
)

TOKEN, SUCCESSOR = "mnt_2_" + "x" * 43, "mnt_2_" + "y" * 43
DAYS = 90


def issues(token: str, days: float = DAYS) -> Behavior:
    """A server that issues a token."""
    ends = datetime.now(UTC) + timedelta(days=days)
    fields = {"token": token, "owner": "anna", "scopes": ["read", "write"]}
    return gives(200, json.dumps({**fields, "expires_at": ends.isoformat()}).encode())


def refuses(status: int, code: str, **headers: str) -> Behavior:
    error = {"code": code, "message": "it is refused", "field": None}
    return gives(status, json.dumps({"error": error}).encode(), **headers)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith(("MNEMOSYNE_", "XDG_", "CONFIGURATION_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(mnem, words, input=stdin, standalone_mode=False)


def url_of(server: Endpoint) -> str:
    return server.url.removesuffix("/v1")


def log_in(server: Endpoint, *words: str) -> Result:
    return run("login", url_of(server), *words, stdin="code\n")


def test_a_code_becomes_a_token_that_only_the_user_can_read() -> None:
    with serving(issues(TOKEN)) as server:
        url = url_of(server)

        done = log_in(server, "--name", "laptop")

        assert done.exception is None
        assert f"logged in at {url} as anna" in done.output
        (seen,) = server.seen
    assert (seen.path, seen.body) == ("/v1/login", {"code": "code", "name": "laptop"})
    assert "authorization" not in {name.lower() for name in seen.headers}
    saved = saved_connection()
    assert saved is not None
    assert Path(saved.token_file).read_text() == TOKEN + "\n"
    for path in (saved.token_file, connection_path()):
        assert Path(path).stat().st_mode & 0o777 == 0o600
    assert TOKEN not in Path(connection_path()).read_text()
    assert str(address_of(None)) == url

    assert "logged out" in run("logout").output
    assert saved_connection() is None
    assert not Path(saved.token_file).exists()


@each_case(
    ("answer", "words"),
    [
        (refuses(401, "unauthorized"), "it is refused"),
        (refuses(404, "unknown_verb"), "it is refused"),
        (gives(200, b"{}"), "token"),
    ],
)
def test_a_login_that_fails_leaves_nothing_behind(answer: Behavior, words: str) -> None:
    with serving(answer) as server:
        done = log_in(server)

    assert words in str(done.exception)
    assert not Path(connection_path()).exists()


def test_no_code_is_spent_where_its_token_could_not_be_written(home: Path) -> None:
    (home / ".config").write_text("not a folder")
    with serving(issues(TOKEN)) as server:
        done = log_in(server)

    assert "Not a directory" in str(done.exception)
    assert server.seen == []


@each_case(
    ("url", "problem"),
    [
        ("https://memory.example", "needs a one-time code"),
        ("http://memory.example", "cross the network"),
    ],
)
def test_a_login_asks_for_a_code_before_it_asks_the_server(
    url: str, problem: str
) -> None:
    assert problem in str(run("login", url).exception)


def test_the_nearest_folder_decides_which_memory_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, inner = home / "shop", home / "shop" / "inner"
    (inner / "deep").mkdir(parents=True)
    with serving(issues(TOKEN)) as server:
        url = url_of(server)
        log_in(server, "--project", str(shop))
    (home / "link").symlink_to(inner)

    assert connection_for(str(home)) is None
    assert connection_for(str(inner / "deep")) is not None
    run("use", LOCAL, str(inner))
    assert connection_for(str(inner / "deep")) is None
    assert connection_for(str(home / "link" / "deep")) is None
    assert connection_for(str(shop)) is not None
    shown = json.loads(run("use", "--json").output)
    assert shown["folders"] == {"/": LOCAL, str(shop): SERVER, str(inner): LOCAL}
    monkeypatch.chdir(shop)
    assert str(Client()._address) == url  # noqa: SLF001 what a program would ask
    monkeypatch.setenv("MNEMOSYNE_SOCKET", "/run/none.sock")
    assert str(address_of(None)) == "/run/none.sock"


def test_a_worktree_uses_the_memory_of_its_main_folder(home: Path) -> None:
    """Agents that work in parallel have worktrees elsewhere; a diary is not to reach the server by one."""
    diary, trees = home / "diary", home / "trees"
    tree = trees / "one"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(diary)]
    for words in (("init",), ("commit", "--allow-empty", "-mx")):
        diary.mkdir(exist_ok=True)
        subprocess.run([*git, *words, "-q"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (tree / "deep").mkdir()
    forged = home / "forged"
    forged.mkdir()
    (forged / ".git").write_bytes((tree / ".git").read_bytes())
    with serving(issues(TOKEN)) as server:
        log_in(server)

    run("use", LOCAL, str(diary))
    run("use", SERVER, str(trees))
    assert connection_for(str(tree / "deep")) is None
    assert connection_for(str(forged)) is not None
    run("use", SERVER, str(tree))
    assert connection_for(str(tree / "deep")) is not None


def test_a_folder_stays_local_after_a_logout_or_damage_and_another_login(
    home: Path,
) -> None:
    diary = home / "diary"
    path = Path(connection_path())
    with serving(issues(TOKEN), issues(TOKEN), issues(TOKEN)) as server:
        log_in(server)
        run("use", LOCAL, str(diary))
        run("logout")
        (former,) = path.parent.glob("connection*")
        assert former.name == "connection.former.json"

        log_in(server)

        assert connection_for(str(diary)) is None
        assert connection_for(str(home)) is not None
        path.write_text('{"url": ')
        damaged = "is damaged; run `mnem login URL` again"
        with pytest.raises(ValueError, match=damaged):
            address_of(None)
        done = log_in(server)
    assert "memory: your own, on this machine, everywhere" in done.output
    assert connection_for(str(home)) is None


def test_setup_replaces_no_login(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(issues(TOKEN)) as server:
        url = url_of(server)
        log_in(server)
    file = home / "token"
    file.write_text(SUCCESSOR)
    file.chmod(0o600)
    for other in (url, "http://127.0.0.1:1"):
        words = ("setup", "zed", "--yes", "--url", other, "--token-file", str(file))
        assert f"there is a login at {url}" in str(run(*words).exception)
    monkeypatch.setenv("MNEMOSYNE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MNEMOSYNE_TOKEN", SUCCESSOR)

    done = run("setup", "zed", "--yes")

    assert "only after a login: --url http://127.0.0.1:1" in done.stderr
    monkeypatch.delenv("MNEMOSYNE_URL")
    address = address_of(None)
    assert str(address) == url
    assert TOKEN.encode() in address.headers


def make_due() -> None:
    """Let the time of the renewal come."""
    path = Path(connection_path())
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "renew_at": time.time() - 1}))


def due_in_s(saved: SavedConnection | None) -> float:
    """Return how long it is to the renewal of a token."""
    assert saved
    assert saved.renew_at
    return saved.renew_at - time.time()


def test_a_token_is_renewed_once_by_many_and_all_go_on_with_it() -> None:
    with serving(issues(TOKEN), issues(SUCCESSOR)) as server:
        log_in(server)
        address = address_of(None)
        address.connect(1).close()
        assert len(server.seen) == 1  # it is not due
        make_due()
        addresses = [address_of(None) for _ in range(8)]
        assert len(server.seen) == 1

        def connect(address: Address) -> None:
            address.connect(5).close()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(connect, addresses))

        assert [seen.path for seen in server.seen] == ["/v1/login", "/v1/renew"]
        assert server.seen[1].headers["Authorization"] == f"Bearer {TOKEN}"
        assert SUCCESSOR.encode() in address.headers
        saved = saved_connection()
    assert saved
    assert due_in_s(saved) > DAYS / 3 * 86_400
    assert Path(saved.token_file).read_text() == SUCCESSOR + "\n"


def test_a_program_of_one_server_never_takes_the_token_of_another() -> None:
    with serving(issues(TOKEN)) as first, serving(issues(SUCCESSOR)) as second:
        log_in(first)
        make_due()
        saved = saved_connection()
        assert saved is not None
        remote = remote_of(saved)
        log_in(second)

        remote.renew_if_due()

        assert SUCCESSOR.encode() not in remote.headers
        assert TOKEN.encode() in remote.headers
        assert SUCCESSOR.encode() in address_of(None).headers
    folder = Path(connection_path()).parent
    assert [file.read_text() for file in folder.glob("*.token")] == [SUCCESSOR + "\n"]


def test_a_renewal_that_fails_keeps_the_token_and_is_tried_again() -> None:
    with serving(issues(TOKEN), refuses(401, "unauthorized")) as server:
        log_in(server)
        make_due()
        assert 3_600 < due_in_s(renew_token()) < 2 * 86_400
    make_due()
    saved = renew_token()  # nobody is there
    assert 0 < due_in_s(saved) < 3_600
    assert saved
    assert Path(saved.token_file).read_text() == TOKEN + "\n"


def test_no_successor_is_asked_for_where_it_could_not_be_written() -> None:
    with serving(issues(TOKEN), issues(SUCCESSOR)) as server:
        log_in(server)
        make_due()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))
        try:
            assert renew_token() is None
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)

        assert [seen.path for seen in server.seen] == ["/v1/login"]


def test_a_changed_token_file_of_the_user_is_read_again(home: Path) -> None:
    file = home / "own"
    file.write_text(TOKEN)
    file.chmod(0o600)
    remote = remote_daemon("http://127.0.0.1:7464", token_file=str(file))
    assert TOKEN.encode() in remote.headers

    file.write_text(SUCCESSOR)
    os.utime(file, (1, 1))

    assert SUCCESSOR.encode() in remote.headers


def test_a_token_file_of_the_user_stays_and_is_not_renewed(home: Path) -> None:
    file = home / "own"
    file.write_text(TOKEN)
    file.chmod(0o644)
    with pytest.raises(ValueError, match="others may read"):
        save_login("https://memory.example", ca=None, token_file=str(file))
    file.chmod(0o600)

    saved = save_login("https://memory.example", ca=None, token_file=str(file))

    assert saved.renew_at is None
    run("logout")
    assert file.exists()


# Clients wait for a limit of their owner to be free, and send the same request again.


KEPT = b'{"id": "kept", "stored": true, "created_at": "2026-01-01T00:00:00Z"}'


def limited(seconds: str) -> Behavior:
    return refuses(429, "limit_reached", Retry_After=seconds)


def remember(server: Endpoint) -> str:
    with Client(url=url_of(server), token=TOKEN, timeout_s=9) as client:
        return client.remember("a").id


def remember_in_a_loop(server: Endpoint) -> str:
    async def remember() -> str:
        async with AsyncClient(url=url_of(server), token=TOKEN, timeout_s=9) as client:
            return (await client.remember("a")).id

    return asyncio.run(remember())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(asyncio, "sleep", pause)
    return pauses


@pytest.mark.parametrize("call", [remember, remember_in_a_loop])
def test_a_client_waits_and_sends_the_same_request_again(
    call: Callable[..., str], pauses: list[float]
) -> None:
    with serving(limited("3"), limited("2"), gives(200, KEPT)) as daemon:
        assert call(daemon) == "kept"

    assert pauses == [3, 2]
    first, *others = [seen.body["id"] for seen in daemon.seen]
    assert first
    assert others == [first, first]


@pytest.mark.parametrize("call", [remember, remember_in_a_loop])
def test_a_client_says_how_long_a_wait_beyond_its_time_limit_is(
    call: Callable[..., str], pauses: list[float]
) -> None:
    with (
        serving(limited("10")) as daemon,
        pytest.raises(LimitReached, match="it is refused") as refused,
    ):
        call(daemon)

    assert (refused.value.retry_after_s, pauses) == (10, [])


def test_an_import_waits(pauses: list[float]) -> None:
    report = b'{"stored": {"memory": 1}}'
    with serving(limited("600"), gives(200, report)) as daemon:
        address = address_of(None, url_of(daemon), TOKEN, None)
        with closing(Transfers(address)) as transfers:
            transfers.restore(b"{}")

    assert (pauses, len(daemon.seen)) == ([600], 2)


def test_a_message_of_an_agent_waits_a_while(pauses: list[float]) -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    waits = [limited(seconds) for seconds in "33211"]
    with serving(*waits, gives(200, answer), limited("30")) as daemon:
        url = url_of(daemon)
        sender = PumpedDaemon(remote_daemon(url, token=TOKEN))

        def send() -> list[bytes]:
            connection, response = sender.post({}, b"{}", on_connection=lambda _: None)
            with connection:
                return list(read_messages(connection, response))

        assert send() == [answer]
        assert pauses == [3, 3, 2, 1, 1]
        with pytest.raises(DaemonLost, match=r"429.*it is refused"):
            send()
        call = PumpedCall(b"{}")
        call.cancel()
        with pytest.raises(DaemonLost, match="cancelled"):
            sender.post({}, b"{}", on_connection=call.hold)
    assert len(daemon.seen) == len(pauses) + 2
