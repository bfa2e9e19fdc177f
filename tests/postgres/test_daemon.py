"""A real daemon on a real server: everything a user does, its stop and start, and failing starts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.conftest import Start, start
from e2e.daemons import WAIT_S, eventually, listens, mnem, refused, spawned
from e2e.programs import BIN
from postgres.daemons import serve_owners
from support.postgres import Server, run

from mnemosyned import Client
from mnemosyned.daemon.main import EXIT_CONFIG, EXIT_FAILED
from mnemosyned.errors import DatabaseUnreachable
from mnemosyned.storage.postgres.connections import connect_once, explaining_failures
from mnemosyned.storage.postgres.owners import PostgresOwners

__all__ = ["start"]

pytestmark = pytest.mark.postgres


def ended(tmp_path: Path, *options: str, **how: Any) -> tuple[int, str]:  # noqa: ANN401 passed on to `refused`
    return refused(f"--socket={tmp_path / 'd.sock'}", *options, home=tmp_path, **how)


def test_status_names_the_database_and_not_its_password(start: Start, dsn: str) -> None:
    secret = dsn.replace("postgres@", "postgres:swordfish@")
    daemon = start("--database", secret)

    with daemon.client() as client:
        status = client.status()
    shown = daemon.mnem("status").stdout.decode()

    assert status.database.startswith("postgresql://postgres:***@")
    assert status.bytes_on_disk > 1_000_000
    assert not status.problems
    assert "postgresql://postgres:***@" in shown
    assert "swordfish" not in shown + daemon.log.read_text()


# A daemon that cannot start says in one line what is wrong: there is no traceback, and no password.


@pytest.mark.parametrize(
    ("name", "exit_code", "says"),
    [
        ("", EXIT_FAILED, "there is no such database: create it"),
        ("postgresql://me:sword%fish@h/d", EXIT_CONFIG, "written %25"),
        ("postgresql://me:big@swordfish@h/d", EXIT_CONFIG, "written %25"),
    ],
    ids=["no such database", "a URL that is none", "a bare @ in a password"],
)
def test_a_database_that_is_not_there(
    tmp_path: Path, server: Server, name: str, exit_code: int, says: str
) -> None:
    code, log = ended(tmp_path, "--database", name or server.dsn("nowhere"))

    assert (code, len(log.splitlines())) == (exit_code, 1)
    assert says in log
    assert "fish" not in log


def test_a_socket_may_have_an_at_sign_in_its_name(tmp_path: Path) -> None:
    for host in (tmp_path / "a@b", "@none"):
        with pytest.raises(psycopg.OperationalError, match="@"):
            connect_once(f"postgresql:///d?host={host}")


def test_a_wrong_password(tmp_path: Path, guarded: Server) -> None:
    dsn = guarded.dsn("postgres").replace("postgres@", "postgres:swordfish@")

    code, log = ended(tmp_path, "--database", dsn)

    assert (code, len(log.splitlines())) == (EXIT_FAILED, 1)
    assert "the database refuses the user or the password" in log
    assert "swordfish" not in log


def test_a_server_that_is_down(tmp_path: Path) -> None:
    log = tmp_path / "log"
    place = f"--database=postgresql://postgres@/postgres?host={tmp_path}"
    socket = f"--socket={tmp_path / 'd.sock'}"
    with spawned(place, socket, home=tmp_path, log=log) as process:
        eventually(lambda: "database_awaited" in log.read_text(), "it waits")
        process.terminate()

        assert process.wait(WAIT_S) == 0
    (line,) = [line for line in log.read_text().splitlines() if "awaited" in line]
    assert "the database cannot be reached: check the server" in line


def test_mnem_start_says_what_it_waits_for_and_serves_then(tmp_path: Path) -> None:
    server = Server()
    server.start()
    dsn = server.new_database()
    server.stop()
    settings: dict[str, Any] = {
        "MNEMOSYNE_DATABASE": dsn,
        "MNEMOSYNE_SOCKET": str(tmp_path / "d.sock"),
        "PATH": str(BIN),  # without systemctl
        # It begins elsewhere.
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
    }
    log = tmp_path / ".local/state/mnemosyned/mnemosyned.log"
    try:
        with ThreadPoolExecutor(1) as pool:
            started = pool.submit(mnem, "start", home=tmp_path, **settings)
            eventually(
                lambda: log.exists() and "awaited" in log.read_text(), "it waits"
            )
            server.start()
            done = started.result()
        with Client(tmp_path / "d.sock") as client:
            assert client.remember("tea").stored
        stopped = mnem("stop", home=tmp_path, **settings)

        assert done.returncode == 0, done.stderr
        assert b"not ready yet, waiting for the database: " in done.stderr
        assert stopped.returncode == 0, stopped.stderr
    finally:
        server.remove()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text(
    tmp_path: Path, server: Server, encoding: str
) -> None:
    name = encoding.lower()
    run(
        server.dsn("postgres"),
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' "
        "LC_COLLATE 'C' LC_CTYPE 'C'",
    )

    code, log = ended(tmp_path, "--database", server.dsn(name))

    assert (code, len(log.splitlines())) == (EXIT_CONFIG, 1)
    assert f"its encoding is {encoding}" in log
    assert "--encoding UTF8" in log


HAVE_PGBOUNCER = pytest.mark.skipif(
    not shutil.which("pgbouncer"), reason="NOT RUN: there is no PgBouncer"
)


@contextmanager
def pooling(dsn: str, *settings: str) -> Iterator[str]:
    """A database through PgBouncer with its usual settings, but for those given."""
    host = dsn.partition("?host=")[2]
    name = dsn.split("@/")[1].split("?", maxsplit=1)[0]
    folder = Path(host) / f"pooler_{name}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    file = folder / "settings.ini"
    (folder / "users").write_text('"postgres" ""\n')
    file.write_text(
        f"[databases]\n{name} = host={host} dbname={name} user=postgres\n"
        f"[pgbouncer]\nlisten_port = 6432\nauth_type = any\nunix_socket_dir = {folder}\n"
        + "\n".join([f"auth_file = {folder}/users", *settings])
    )
    user = "nobody" if os.geteuid() == 0 else None
    pooler = subprocess.Popen(
        ["pgbouncer", str(file)], stderr=subprocess.DEVNULL, user=user
    )
    try:
        eventually(lambda: listens(folder / ".s.PGSQL.6432"), "the pooler listens")
        yield f"postgresql://postgres@/{name}?host={folder}&port=6432"
    finally:
        pooler.kill()
        pooler.wait(WAIT_S)


@HAVE_PGBOUNCER
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_changes_sessions(
    tmp_path: Path, server: Server, mode: str
) -> None:
    with pooling(server.new_database(), f"pool_mode = {mode}") as pooled:
        code, log = ended(tmp_path, "--database", pooled)

    assert code == EXIT_CONFIG, log
    assert "pool_mode = session" in log


@HAVE_PGBOUNCER
def test_owners_through_a_pooler_of_sessions(
    tmp_path: Path, dsn: str, owners: PostgresOwners
) -> None:
    name = dsn.split("@/")[1].split("?", maxsplit=1)[0]
    run(dsn, f"ALTER DATABASE \"{name}\" SET timezone = 'Asia/Tokyo'")
    with pooling(dsn) as pooled:
        with connect_once(pooled) as connection:
            set_there = [
                connection.execute(f"SHOW {each}".encode()).fetchone()
                for each in ("timezone", "lock_timeout")
            ]
        with serve_owners(tmp_path, pooled, owners) as service:
            anna, ben = map(service.token, ("anna", "ben"))
            with service.client(anna) as client:
                client.remember("Tea at four")
                client.sleep(force=True)
                found = [hit.content for hit in client.recall("tea").hits]
            with service.client(ben) as client:
                foreign = client.recall("tea").hits

    assert set_there == [("UTC",), ("2s",)]
    assert found == ["Tea at four"]
    assert not foreign


@HAVE_PGBOUNCER
def test_a_pooler_with_too_few_places_is_named(server: Server) -> None:
    settings = ("default_pool_size = 1", "query_wait_timeout = 1")
    with (
        pooling(server.new_database(), *settings) as pooled,
        connect_once(pooled),
        pytest.raises(DatabaseUnreachable, match="default_pool_size"),
        explaining_failures("nothing was done"),
    ):
        connect_once(pooled)


def test_a_driver_that_is_missing(tmp_path: Path, dsn: str) -> None:
    missing = tmp_path / "psycopg"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ModuleNotFoundError(name='psycopg')")

    code, log = ended(tmp_path, "--database", dsn, anew=True, PYTHONPATH=str(tmp_path))

    assert code == EXIT_CONFIG
    assert log == (
        "mnemosyned: a PostgreSQL database needs psycopg: "
        f"{sys.executable} -m pip install 'psycopg[binary]<4,>=3.2'\n"
    )


@pytest.fixture
def guarded(server: Server) -> Iterator[Server]:
    """The server while it wants a password."""
    rules = server.data / "pg_hba.conf"
    trusting = rules.read_text()
    rules.write_text("local all all scram-sha-256\n")
    server.reload()
    yield server
    rules.write_text(trusting)
    server.reload()
