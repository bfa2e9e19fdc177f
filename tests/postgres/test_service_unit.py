"""The unit of the service under a real `systemd --user`: credentials, a late server, reload, restarts."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from e2e.systemd_user import CHECKOUT, beside_systemd, drop_in, make_home
from support.endpoints import unused_port
from support.engines import new_database
from support.openssl import HAVE_OPENSSL, self_signed
from support.postgres import open_owners

from mnemosyned.memory.engine_ports import Scope

pytestmark = [pytest.mark.postgres, HAVE_OPENSSL]

UNIT = "mnemosyned-server.service"
FUNCTIONS = """
say() { set +e; systemctl --user status $unit; tail -n 40 $XDG_RUNTIME_DIR/manager.log; cat ~/daemon.log; }
trap '[ $? = 0 ] || say >&2' EXIT
unit=mnemosyned-server
show() { systemctl --user show -P "$1" $unit; }
awaits() { show StatusText | grep 'waiting for the database' >/dev/null; }
another() { systemctl --user is-active --quiet $unit && [ "$(show MainPID)" != "$before" ]; }
"""
PASSWORD = "never-shown"  # noqa: S105


@pytest.fixture
def server() -> Path:
    """The folder of the server's socket, which the user may look into."""
    folder = Path(new_database().partition("host=")[2])
    folder.chmod(0o755)
    return folder


@pytest.fixture
def dsn(server: Path) -> str:
    assert server
    return new_database()


def prepare(
    folder: Path, dsn: str, server: Path, *, port: int = 0
) -> tuple[Path, set[str]]:
    """A home with the unit, its settings and its credentials, and the folders that it needs to see.

    A user's systemd has no other users and no network of its own: a drop-in takes back what is for
    root's, and nothing else. The server's socket is where nothing is until a script links it there.
    """
    spec = find_spec("psycopg")
    assert spec
    assert spec.origin
    driver = os.path.realpath(Path(spec.origin).parents[1])
    keep = {driver, str(server)}
    home = make_home(folder, UNIT, keep=keep)
    settings = home / ".config" / "mnemosyned"
    credentials = settings / "credentials"
    credentials.mkdir(parents=True, mode=0o700)
    shutil.copy(CHECKOUT / "config" / "server.yaml", settings)
    certificate, key = self_signed(folder, "memory", names="DNS:localhost")
    certificate.rename(credentials / "certificate.pem")
    key.rename(credentials / "key.pem")
    hidden = dsn.replace("postgres@", f"postgres:{PASSWORD}@").replace(
        str(server), "/run/user/60321/server"
    )
    (credentials / "database").write_text(f"{hidden}\n")
    drop_in(
        home,
        "user.conf",
        "DynamicUser=no",
        "User=",
        "ProtectHome=read-only",
        "ExecReload=",
        "ExecReload=+/usr/bin/env kill -HUP $MAINPID",
        "Environment=PATH=%h/.local/bin:/usr/bin:/bin",
        f"Environment=PYTHONPATH={CHECKOUT}:{driver}",
        "Environment=MNEMOSYNE_EMBEDDING_ENCODER=none MNEMOSYNE_SHUTDOWN_DRAIN_S=0.5",
        "Environment=MNEMOSYNE_OWNERS_PROCESSES=2 MNEMOSYNE_AUDIT_FILE=%S/mnemosyned-server/audit.jsonl",
        f"Environment=MNEMOSYNE_METRICS_LISTEN=null MNEMOSYNE_LISTEN=127.0.0.1:{port}",
        unit=UNIT,
    )
    return home, keep


def test_the_service_waits_and_returns(tmp_path: Path, dsn: str, server: Path) -> None:
    port = unused_port()
    home, keep = prepare(tmp_path, dsn, server, port=port)
    with open_owners(dsn) as owners:
        owners.add("anna")
        token = owners.issue("anna", "laptop", tuple(Scope)).secret

    shown = beside_systemd(
        home,
        f"""{FUNCTIONS}
        export MNEMOSYNE_URL=https://localhost:{port} MNEMOSYNE_TOKEN={token}
        export MNEMOSYNE_CA=~/.config/mnemosyned/credentials/certificate.pem
        systemctl --user start --no-block $unit
        wait_until awaits
        show ActiveState
        ln -s {server} $XDG_RUNTIME_DIR/server
        wait_until systemctl --user is-active --quiet $unit
        mnem remember "the code of the key box is 4096" >&2

        before=$(show MainPID)
        systemctl --user reload $unit
        wait_until grep config_reloaded ~/daemon.log >&2
        kill -KILL "$before"
        wait_until another
        wait_until mnem recall "key box" >&2
        mnem recall "key box" | grep -c 4096

        before=$(show MainPID)
        kill -TERM "$before"
        wait_until another
        show NRestarts
        systemctl --user show $unit | grep -c {PASSWORD} || true
        tr '\\0' '\\n' </proc/$(show MainPID)/environ | grep -c {PASSWORD} || true
        grep -c {PASSWORD} ~/daemon.log || true
        systemctl --user stop $unit
        show Result
        """,
        keep=keep,
    )

    assert shown == ["activating", "1", "2", "0", "0", "0", "success"]


def test_a_lost_credential_stops_a_start(
    tmp_path: Path, dsn: str, server: Path
) -> None:
    home, keep = prepare(tmp_path, dsn, server)
    (home / ".config" / "mnemosyned" / "credentials" / "database").unlink()

    status, log = beside_systemd(
        home,
        f"""{FUNCTIONS}
        systemctl --user start $unit 2>/dev/null || true
        show ExecMainStatus
        cat ~/daemon.log 2>/dev/null | wc -l
        """,
        keep=keep,
    )

    assert (status, log) == ("243", "0")
