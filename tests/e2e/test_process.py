"""The process: how it starts, what it owns, what it logs, and how it fails."""

from __future__ import annotations

import os
import pty
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import (
    WAIT_S,
    Daemon,
    Json,
    environment,
    eventually,
    listens,
    mnem,
    running,
    short_room,
    spawn,
)
from e2e.doors import CLIENTS, Connect
from e2e.programs import BIN

from mnemosyned import Client
from mnemosyned.daemon.main import EXIT_CONFIG, EXIT_FAILED
from mnemosyned.errors import DaemonUnreachable, ForeignDaemon

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


HUSHED = "the-violet-hour"


# --------------------------------------------------------------------- start


@pytest.mark.parametrize("manager", [None, "/nowhere/notify"], ids=["none", "gone"])
def test_it_serves_in_the_foreground_without_systemd(
    tmp_path: Path, manager: str | None
) -> None:
    with short_room() as room:
        log = room / "log"
        options = (
            "--database",
            str(tmp_path / "memory.db"),
            "--socket",
            str(room / "s"),
        )
        process = spawn(
            *options, home=tmp_path, log=log, anew=True, NOTIFY_SOCKET=manager
        )
        try:
            eventually(
                lambda: b'"ready"' in log.read_bytes() or process.poll() is not None,
                "ready",
            )
            answer = mnem(
                "--socket", str(room / "s"), "status", home=tmp_path, anew=True
            )
            process.terminate()

            assert (answer.returncode, process.wait(WAIT_S)) == (0, 0)
        finally:
            process.kill()
            process.wait(WAIT_S)


def test_the_service_manager_is_told_when_it_is_ready_and_when_it_stops(
    daemon: Daemon,
) -> None:
    first, *_ = daemon.notices.received
    daemon.stop()

    assert first == "READY=1"
    daemon.notices.wait(
        "STOPPING=1"
    )  # what was sent may be read after the process has ended
    assert "WATCHDOG=1" not in daemon.notices.received


def test_an_abstract_notify_socket_is_told_too(tmp_path: Path) -> None:
    with (
        short_room() as room,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox,
    ):
        inbox.settimeout(WAIT_S)
        inbox.bind(f"\0{room}/notify")
        options = (
            "--database",
            str(tmp_path / "memory.db"),
            "--socket",
            str(room / "s"),
        )
        process = spawn(
            *options, home=tmp_path, log=room / "log", NOTIFY_SOCKET=f"@{room}/notify"
        )
        try:
            assert inbox.recv(4096).startswith(b"READY=1")
        finally:
            process.kill()
            process.wait(WAIT_S)


def test_the_watchdog_is_fed(start: Start) -> None:
    daemon = start(WATCHDOG_USEC="100000")

    eventually(
        lambda: daemon.notices.received.count("WATCHDOG=1") >= 3, "three signs of life"
    )

    assert daemon.process.poll() is None


def test_the_watchdog_starves_when_an_index_stops_answering(start: Start) -> None:
    daemon = start(WATCHDOG_USEC="100000")
    daemon.post("remember", content="the quay at noon")
    eventually(lambda: "WATCHDOG=1" in daemon.notices.received, "a sign of life")

    with closing(sqlite3.connect(daemon.database, isolation_level=None)) as other:
        other.execute(
            "UPDATE memory_fts_data SET block = x'000000009f0001' WHERE id = 10"
        )
    eventually(lambda: daemon.events("unhealthy"), "it notices")

    assert daemon.post("recall", query="quay").status == 503
    (problem,) = daemon.post("status").body["problems"]
    assert "memory_fts" in problem
    daemon.kill()
    again = start()
    assert len(again.post("recall", query="quay").body["hits"]) == 1
    assert "memory_fts" in again.events("database_warning")[0]["reason"]


def test_a_watchdog_meant_for_another_process_is_not_fed(start: Start) -> None:
    daemon = start(WATCHDOG_USEC="100000", WATCHDOG_PID="1")

    daemon.process.send_signal(signal.SIGHUP)  # the same turn of the loop would feed it
    eventually(lambda: daemon.events("config_reloaded"), "one turn of the loop")
    daemon.stop()

    assert "WATCHDOG=1" not in daemon.notices.received


# ----------------------------------------------------------------- ownership


def test_a_second_daemon_on_the_same_file_is_refused(
    daemon: Daemon, tmp_path: Path
) -> None:
    code, said = refused("--database", str(daemon.database), home=tmp_path)

    assert code == 1
    assert said.startswith(f"mnemosyned: {daemon.database} is in use by process")
    assert str(daemon.process.pid) in said
    assert str(daemon.socket) in said
    assert daemon.post("status").status == 200


def test_a_second_daemon_on_the_same_socket_is_refused(
    daemon: Daemon, tmp_path: Path
) -> None:
    options = ("--database", str(tmp_path / "other.db"), "--socket", str(daemon.socket))

    code, said = refused(*options, home=tmp_path)

    assert code == 1
    assert said.startswith(f"mnemosyned: another daemon listens on {daemon.socket}")
    assert daemon.post("status").body["pid"] == daemon.process.pid


def test_a_killed_daemon_starts_again_over_its_stale_socket_and_lock(
    start: Start,
) -> None:
    first = start()
    first.post("remember", id="tea", content="Tea at four.")
    first.kill()
    assert first.socket.exists()
    assert first.socket.with_name(first.socket.name + ".lock").exists()

    start("--socket", str(first.socket))

    assert first.post("get", id="tea").body["memory"]["content"] == "Tea at four."


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    with short_room() as room:
        (room / "s").write_text("mine")

        code, said = refused("--socket", str(room / "s"), home=tmp_path)

        assert (code, (room / "s").read_text()) == (1, "mine")
        assert "not a socket" in said


def test_created_files_are_private(tmp_path: Path) -> None:
    with short_room() as room:
        settings: dict[str, Json] = {
            "XDG_RUNTIME_DIR": str(room),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        address = room / "mnemosyned" / "mnemosyned.sock"
        process = spawn(home=tmp_path, log=room / "log", **settings)
        try:
            eventually(lambda: b'"ready"' in (room / "log").read_bytes(), "ready")
            made = [address, address.parent, *(tmp_path / "state").rglob("*")]
            modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in made}
        finally:
            process.kill()
            process.wait(WAIT_S)

    assert modes["mnemosyned.sock"] == "0o600"
    assert modes["mnemosyned"] == "0o700"
    assert {modes[f"memory.db{end}"] for end in ("", "-wal", "-shm", ".lock")} == {
        "0o600"
    }


# ------------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wm_max: 5\nslep:\n  ttl_hours: 1\n", "line 2: there is no setting slep; did you mean sleep"),
        ("sleep:\n  cron: 99 3 * * *\n", "sleep.cron: Error validating expression '99'"),
        ("wm_max: [1\n", "line 2"),
    ],
    ids=["unknown key", "impossible cron", "no yaml"],
)  # fmt: skip
def test_a_mistake_in_the_settings_names_file_line_and_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)

    code, said = refused("--config", str(file), home=tmp_path)

    assert code == 78
    assert expected in said
    assert str(file) in said or "99" in said


def test_a_mistake_in_a_variable_names_it(tmp_path: Path) -> None:
    misspelled = refused(home=tmp_path, MNEMOSYNE_WM_MACKS="5")
    mistyped = refused(home=tmp_path, MNEMOSYNE_WM_MAX="many")

    assert (misspelled[0], mistyped[0]) == (78, 78)
    assert "MNEMOSYNE_WM_MACKS; did you mean MNEMOSYNE_WM_MAX?" in misspelled[1]
    assert "MNEMOSYNE_WM_MAX: wm_max must be a whole number" in mistyped[1]


def test_the_settings_can_be_checked_without_a_start(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("wm_max: 5\n")
    bad.write_text("wm_max: five\n")

    codes = [
        refused("--check", "--config", str(file), home=tmp_path)[0]
        for file in (good, bad)
    ]

    assert codes == [0, 78]


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        ("no database", EXIT_FAILED),
        ("too new", EXIT_FAILED),
        # No database can be there, whatever becomes of the file: it is the setting that is wrong.
        ("a directory", EXIT_CONFIG),
        ("under a file", EXIT_CONFIG),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence(
    tmp_path: Path, kind: str, exit_code: int
) -> None:
    database = tmp_path / "memory.db"
    if kind == "no database":
        database.write_text("Dear diary, this is no database at all. " * 200)
    elif kind == "a directory":
        database.mkdir()
    elif kind == "under a file":
        (tmp_path / "file").touch()
        database = tmp_path / "file" / "memory.db"
    else:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA user_version = 9999")

    with short_room() as room:
        options = ("--database", str(database), "--socket", str(room / "s"))
        code, said = refused(*options, home=tmp_path)

    assert code == exit_code
    assert said.startswith("mnemosyned: ")
    assert "Traceback" not in said
    assert str(database if kind != "too new" else 9999) in said


def test_a_socket_path_beyond_the_kernels_limit_is_refused(tmp_path: Path) -> None:
    long = str(tmp_path / ("x" * 120))

    code, said = refused("--socket", long, home=tmp_path)

    assert code in (1, 78)
    assert "107 fit; choose a shorter one" in said


def refused(*options: str, home: Path, **settings: Json) -> tuple[int, str]:
    """Start a daemon that ends by itself: its exit code and all it said."""
    log = home / "refused.log"
    process = spawn(*options, home=home, log=log, **settings)
    try:
        return process.wait(WAIT_S), log.read_text()
    finally:
        process.kill()
        process.wait(WAIT_S)


# ----------------------------------------------------------------------- log


def test_the_log_is_json_unless_on_a_terminal(daemon: Daemon) -> None:
    daemon.stop()

    assert [line["event"] for line in daemon.events()][:1] == ["ready"]
    assert all(
        {"event", "level", "timestamp"} <= line.keys() for line in daemon.events()
    )


def test_the_log_is_made_for_reading_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with short_room() as room:
        process = subprocess.Popen(
            [str(BIN / "mnemosyned"), "--socket", str(room / "s")],
            env=environment(tmp_path, TERM="xterm"),
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            said = b""
            while b"socket" not in said:
                said += os.read(ours, 4096)
            process.terminate()
            code = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)
            os.close(ours)

    assert code == 0
    assert b"ready" in said
    assert b'{"event"' not in said


def test_no_memory_is_in_the_log(tmp_path: Path) -> None:
    with running(tmp_path, MNEMOSYNE_LOG_LEVEL="debug") as daemon:
        for turn in range(4):
            content = f"{HUSHED} number {turn}"
            daemon.post(
                "remember", content=content, session=HUSHED, metadata={HUSHED: 1}
            )
        daemon.post("remember", content=HUSHED, colour=HUSHED)
        daemon.post("recall", query=HUSHED)
        daemon.request("GET", f"/v1/recall?query={HUSHED}")
        daemon.post("sleep", force=True)
        with closing(sqlite3.connect(daemon.database)) as connection:
            connection.execute("DROP TABLE memory_fts")
        broken = daemon.post("remember", content=HUSHED)
        daemon.stop()
        failures = daemon.events("request_failed")
        said = daemon.log.read_text()

    assert (broken.status, broken.error[0]) == (503, "storage_failed")
    assert failures
    assert failures[0]["exception"], "what failed is logged with its traceback"
    assert HUSHED not in said


# One socket path, one daemon: however many start at once, and whoever stops.


RUNS = int(os.environ.get("CLAIM_RUNS", "3"))
DAEMONS = 4
STRANGER = 12_345
IMPOSTOR = f"""
import os, socket, sys
os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("listens", flush=True)
connection, _ = listener.accept()
connection.settimeout(20)
print(connection.recv(65536), flush=True)
connection.close()
"""
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="plays another user, which needs root"
)


@contextmanager
def impostor(address: Path) -> Iterator[list[str]]:
    """A process of another user that listens at a path; what it heard, once the block has ended."""
    heard: list[str] = []
    command = [sys.executable, "-P", "-c", IMPOSTOR, str(address)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "listens\n"
        yield heard
        heard.append(process.stdout.readline())


@pytest.mark.fault
def test_only_one_of_several_daemons_starting_on_one_socket_survives(
    tmp_path: Path,
) -> None:
    for _ in range(RUNS):
        with short_room() as room:
            address = room / "s"
            command = [str(BIN / "mnemosyned"), "--socket", str(address)]
            processes = [
                subprocess.Popen(
                    [*command, "--database", str(room / f"{number}.db")],
                    env=environment(tmp_path),
                    stderr=subprocess.DEVNULL,
                )
                for number in range(DAEMONS)
            ]
            try:
                eventually(
                    partial(all_but_one_ended, processes), "all but one have ended"
                )
                eventually(partial(listens, address), "that one listens")
                with Client(address) as client:
                    (alive,) = (each.pid for each in processes if each.poll() is None)
                    assert client.status().pid == alive
            finally:
                for process in processes:
                    process.kill()
                    process.wait(WAIT_S)


def all_but_one_ended(processes: list[subprocess.Popen[bytes]]) -> bool:
    return sum(process.poll() is None for process in processes) == 1


def test_a_stopping_daemon_leaves_the_socket_of_another(daemon: Daemon) -> None:
    daemon.socket.unlink()
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(str(daemon.socket))

        daemon.stop()

        assert daemon.socket.exists()


def test_a_stopped_daemon_leaves_neither_socket_nor_lock(daemon: Daemon) -> None:
    daemon.stop()

    assert not [
        path
        for path in daemon.socket.parent.iterdir()
        if path.name.startswith("d.sock")
    ]


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    with short_room() as room:
        (room / "mine").write_text("mine")
        (room / "s.lock").symlink_to(room / "mine")
        command = [str(BIN / "mnemosyned"), "--socket", str(room / "s")]

        run = subprocess.run(
            [*command, "--database", str(tmp_path / "memory.db")],
            env=environment(tmp_path),
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )

        assert run.returncode == 1
        assert b"no socket can be made" in run.stderr
        assert (room / "mine").read_text() == "mine"


@needs_root
@CLIENTS
def test_nothing_is_sent_to_a_stranger_in_the_daemons_place(connect: Connect) -> None:
    with short_room() as room:
        room.chmod(0o777)
        with (
            impostor(room / "s") as heard,
            connect(room / "s") as client,
            pytest.raises(ForeignDaemon, match="nothing was sent"),
        ):
            client.remember("for my daemon alone")

        assert heard == ["b''\n"]


@needs_root
def test_root_may_ask_a_daemon_in_a_directory_of_its_user() -> None:
    with short_room() as room:
        os.chown(room, STRANGER, STRANGER)
        room.chmod(0o700)
        with (
            impostor(room / "s") as heard,
            Client(room / "s", timeout_s=0.5) as client,
            pytest.raises(DaemonUnreachable),
        ):
            client.status()

        assert "/v1/status" in heard[0]


def test_the_watchdog_is_not_fed_once_the_socket_no_longer_answers(
    start: Start,
) -> None:
    daemon = start(WATCHDOG_USEC="100000")
    daemon.notices.wait("WATCHDOG=1")

    daemon.socket.unlink()
    eventually(lambda: daemon.events("socket_silent"), "it notices")
    fed = daemon.notices.received.count("WATCHDOG=1")
    eventually(lambda: len(daemon.events("socket_silent")) > 2, "two more turns")

    assert daemon.notices.received.count("WATCHDOG=1") == fed
