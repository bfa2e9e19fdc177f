"""The process: how it starts, what it owns, what it logs, and how it fails."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
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
    is_ready,
    listens,
    mnem,
    refused,
    spawn,
    spawned,
)
from e2e.doors import CLIENTS, Connect
from e2e.programs import BIN

from mnemosyned import Client
from mnemosyned.daemon.main import EXIT_CONFIG, EXIT_FAILED
from mnemosyned.errors import DaemonUnreachable, ForeignDaemon

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

HUSHED = "the-violet-hour"
WATCHED = {"WATCHDOG_USEC": "100000"}
FED = "WATCHDOG=1"


# --------------------------------------------------------------------- start


@pytest.mark.parametrize("manager", [None, "/nowhere/notify"], ids=["none", "gone"])
def test_it_needs_no_systemd(tmp_path: Path, room: Path, manager: str | None) -> None:
    settings: dict[str, Json] = {"anew": True, "NOTIFY_SOCKET": manager}
    log, place = room / "log", ("--socket", str(room / "s"))

    with spawned(*place, home=tmp_path, log=log, **settings) as process:
        eventually(lambda: is_ready(log) or process.poll() is not None, "ready")
        answer = mnem(*place, "status", home=tmp_path, anew=True)
        process.terminate()

        assert (answer.returncode, process.wait(WAIT_S)) == (0, 0)


def test_the_service_manager_is_told_of_start_and_stop(daemon: Daemon) -> None:
    first, *_ = daemon.notices.received
    daemon.stop()

    assert first == "READY=1"
    daemon.notices.wait("STOPPING=1")  # may be read after the process has ended
    assert FED not in daemon.notices.received


def test_an_abstract_notify_socket_is_told_too(tmp_path: Path, room: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.settimeout(WAIT_S)
        inbox.bind(f"\0{room}/notify")
        settings = {"NOTIFY_SOCKET": f"@{room}/notify"}
        place = ("--socket", str(room / "s"))
        with spawned(*place, home=tmp_path, log=room / "log", **settings):
            assert inbox.recv(4096).startswith(b"READY=1")


def test_the_watchdog_starves_when_an_index_stops_answering(start: Start) -> None:
    daemon = start(**WATCHED)
    daemon.post("remember", content="the quay at noon")
    eventually(lambda: daemon.notices.received.count(FED) >= 3, "three signs of life")

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


def test_the_watchdog_starves_when_the_socket_is_silent(start: Start) -> None:
    daemon = start(**WATCHED)
    daemon.notices.wait(FED)

    (other := daemon.socket.with_name("other")).touch()
    other.rename(daemon.socket)
    eventually(lambda: daemon.events("socket_silent"), "it notices")
    fed = daemon.notices.received.count(FED)
    eventually(lambda: len(daemon.events("socket_silent")) > 2, "two more turns")

    assert daemon.notices.received.count(FED) == fed


@pytest.mark.parametrize(
    "variables",
    [{**WATCHED, "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"}],
    ids=["another process's", "off"],
)
def test_a_watchdog_that_is_not_the_daemons_is_not_fed(
    start: Start, variables: dict[str, str]
) -> None:
    daemon = start(**variables)

    daemon.process.send_signal(signal.SIGHUP)  # the same turn of the loop would feed it
    eventually(lambda: daemon.events("config_reloaded"), "one turn of the loop")
    daemon.stop()

    assert FED not in daemon.notices.received


# ----------------------------------------------------------------- ownership


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        ("--database", "{daemon.database} is in use by process {daemon.process.pid}, "),
        ("--socket", "another daemon listens on {daemon.socket}"),
    ],
)
def test_a_second_daemon_on_the_same_file_or_socket_is_refused(
    daemon: Daemon, tmp_path: Path, taken: str, message: str
) -> None:
    places = {"--database": tmp_path / "other.db", "--socket": f"{daemon.socket}2"}
    places[taken] = daemon.database if taken == "--database" else daemon.socket

    options = [str(word) for place in places.items() for word in place]
    code, said = refused(*options, home=tmp_path)

    assert code == 1
    assert said.startswith(f"mnemosyned: {message.format(daemon=daemon)}")
    assert str(daemon.socket) in said
    assert daemon.post("status").body["pid"] == daemon.process.pid


def test_a_killed_daemon_starts_again_over_its_stale_files(start: Start) -> None:
    first = start()
    first.post("remember", id="tea", content="Tea at four.")
    first.kill()
    assert first.socket.exists()
    assert first.socket.with_name(first.socket.name + ".lock").exists()

    start("--socket", str(first.socket))

    assert first.post("get", id="tea").body["memory"]["content"] == "Tea at four."


def test_created_files_are_private(tmp_path: Path, room: Path) -> None:
    settings = {"XDG_RUNTIME_DIR": str(room), "XDG_STATE_HOME": str(tmp_path / "state")}
    address, log = room / "mnemosyned" / "mnemosyned.sock", room / "log"
    with spawned(home=tmp_path, log=log, **settings):
        eventually(partial(is_ready, log), "ready")
        made = [address, address.parent, *(tmp_path / "state").rglob("*")]
        modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in made}

    assert modes["mnemosyned.sock"] == "0o600"
    assert modes["mnemosyned"] == "0o700"
    files = {f"memory.db{end}" for end in ("", "-wal", "-shm", ".lock")}
    assert {modes[file] for file in files} == {"0o600"}


# ------------------------------------------------------------------- refusal


def test_a_mistake_in_the_settings_names_its_place(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("wm_max: 5\n")
    bad.write_text("wm_max: 5\nslep:\n  ttl_hours: 1\n")

    assert refused("--check", "--config", str(good), home=tmp_path)[0] == 0
    for options in ((), ("--check",)):
        code, said = refused(*options, "--config", str(bad), home=tmp_path)
        assert code == EXIT_CONFIG
        assert f"{bad}, line 2: there is no setting slep; did you mean sleep" in said
    code, said = refused(home=tmp_path, MNEMOSYNE_WM_MACKS="5")
    assert code == EXIT_CONFIG
    assert "MNEMOSYNE_WM_MACKS; did you mean MNEMOSYNE_WM_MAX?" in said


@pytest.mark.parametrize(
    ("option", "name", "exit_code", "words"),
    [
        ("database", "diary", EXIT_FAILED, "/diary"),
        ("database", "too new", EXIT_FAILED, "9999"),
        # No database can be there, whatever becomes of the file: it is the setting that is wrong.
        ("database", "folder", EXIT_CONFIG, "/folder"),
        ("database", "diary/memory.db", EXIT_CONFIG, "/diary/memory.db"),
        ("database", "loop", EXIT_CONFIG, "lead in a circle"),
        ("database", "~no/x", EXIT_CONFIG, "~no"),
        ("config", "deep.yaml", EXIT_CONFIG, "/deep.yaml"),
        ("socket", "diary", EXIT_FAILED, "not a socket"),
        (
            "socket",
            "x" * 120,
            EXIT_FAILED,
            "fit; choose a shorter one with MNEMOSYNE_SOCKET",
        ),
        ("socket", "linked", EXIT_FAILED, "no socket can be made"),
    ],
)
def test_a_path_that_cannot_be_used_is_refused_in_one_sentence(
    tmp_path: Path, room: Path, *, option: str, name: str, exit_code: int, words: str
) -> None:
    diary = "Dear diary, this is no database at all. " * 200
    (room / "diary").write_text(diary)
    (room / "folder").mkdir()
    (room / "loop").symlink_to("loop")
    (room / "deep.yaml").write_text("[" * 1_500 + "]" * 1_500)
    (room / "linked.lock").symlink_to("diary")
    with closing(sqlite3.connect(room / "too new")) as connection:
        connection.execute("PRAGMA user_version = 9999")

    place = name if name.startswith("~") else str(room / name)
    code, said = refused(f"--{option}", place, home=tmp_path)

    assert code == exit_code, said
    assert said.startswith("mnemosyned: ")
    assert words in said
    assert "Traceback" not in said
    assert (room / "diary").read_text() == diary


# ----------------------------------------------------------------------- log


def test_the_log_is_made_for_reading_on_a_terminal(tmp_path: Path, room: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [BIN / "mnemosyned", "--socket", room / "s"],
        env=environment(tmp_path, TERM="xterm"),
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        while b"socket" not in said:
            said += os.read(ours, 4096)
        process.kill()
    os.close(ours)

    assert b"ready" in said
    assert b'{"event"' not in said


def test_no_memory_is_in_the_log(start: Start) -> None:
    daemon = start(MNEMOSYNE_LOG_LEVEL="debug")
    daemon.post("remember", content=HUSHED, session=HUSHED, metadata={HUSHED: 1})
    daemon.post("remember", content=HUSHED, colour=HUSHED)
    daemon.request("GET", f"/v1/recall?query={HUSHED}")
    daemon.post("sleep", force=True)
    with closing(sqlite3.connect(daemon.database)) as connection:
        connection.execute("DROP TABLE memory_fts")
    broken = daemon.post("remember", content=HUSHED)
    daemon.stop()

    assert (broken.status, broken.error[0]) == (503, "storage_failed")
    (failure,) = daemon.events("request_failed")
    assert failure["exception"], "what failed is logged with its traceback"
    assert HUSHED not in daemon.log.read_text()


PIPE_BYTES = 65_536
REQUESTS = 700
"""At level debug each logs a line of 120 bytes: more than a pipe takes."""


def test_a_pipe_nobody_reads_does_not_stop_the_daemon(
    tmp_path: Path, room: Path
) -> None:
    address = room / "s"
    with subprocess.Popen(
        [BIN / "mnemosyned", "--socket", address],
        env=environment(tmp_path, MNEMOSYNE_LOG_LEVEL="debug"),
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr
        eventually(partial(listens, address), "it listens")
        begun = time.monotonic()
        with Client(address) as client:
            for _ in range(REQUESTS):
                client.log(limit=1)
        took_s = time.monotonic() - begun
        text = b""
        while text.count(b'"request"') < REQUESTS:
            text += os.read(process.stderr.fileno(), PIPE_BYTES)
        process.terminate()
        code = process.wait(WAIT_S)

    times = [json.loads(line)["timestamp"] for line in text.splitlines()]
    assert took_s < WAIT_S / 3
    assert len(text) > PIPE_BYTES
    assert times == sorted(times)
    assert code == 0


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
@pytest.mark.parametrize("run", range(RUNS))
def test_only_one_daemon_gets_a_socket(tmp_path: Path, room: Path, run: int) -> None:
    address = room / "s"
    # Forks of what is loaded come to the socket within the same moment, as programs that load do not.
    processes = [
        spawn(
            *("--socket", str(address), "--database", str(room / f"{run}-{number}")),
            home=tmp_path,
            log=room / f"log-{number}",
        )
        for number in range(DAEMONS)
    ]
    try:
        eventually(
            lambda: sum(process.poll() is None for process in processes) == 1,
            "all but one have ended",
        )
        eventually(partial(listens, address), "that one listens")
        with Client(address) as client:
            (alive,) = (each.pid for each in processes if each.poll() is None)
            assert client.status().pid == alive
    finally:
        for process in processes:
            process.kill()
            process.wait(WAIT_S)


def test_a_stopping_daemon_leaves_the_socket_of_another(daemon: Daemon) -> None:
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(f"{daemon.socket}2")
        Path(f"{daemon.socket}2").rename(daemon.socket)

        daemon.stop()

        assert daemon.socket.exists()


def test_a_socket_whose_folder_is_deleted_is_made_again(
    start: Start, tmp_path: Path, room: Path
) -> None:
    folder = room / "run" / "mnemosyned"
    daemon = replace(start("--socket", str(folder / "s")), socket=folder / "s")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(daemon.socket))
        client.send(b"GET")  # while a client sends, the daemon looks every half second
        shutil.rmtree(folder.parent)
        eventually(partial(listens, daemon.socket), "it listens again")

    assert daemon.post("status").body["pid"] == daemon.process.pid
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    taken = ("--socket", str(daemon.socket), "--database", str(tmp_path / "other.db"))
    code, said = refused(*taken, home=tmp_path)
    assert (code, "another daemon listens on" in said) == (EXIT_FAILED, True)
    daemon.stop()
    assert not list(folder.iterdir())


def test_a_socket_that_cannot_be_made_again_is_reported_once(
    start: Start, room: Path
) -> None:
    folder = room / "run"
    daemon = replace(start("--socket", str(folder / "s")), socket=folder / "s")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(daemon.socket))
        client.send(b"GET")
        shutil.rmtree(folder)
        folder.touch()
        eventually(lambda: daemon.events("socket_was_removed"), "it says so")
        time.sleep(1.5)  # two more attempts
        folder.unlink()
        eventually(partial(listens, daemon.socket), "it listens again")
        # It listens a moment before it says so.
        eventually(
            lambda: daemon.events("socket_was_removed")[1:], "it says that it does"
        )

    refusal, made = daemon.events("socket_was_removed")
    assert "File exists; choose another place" in refusal["reason"]
    assert made["reason"] == ""


@needs_root
@CLIENTS
def test_a_stranger_in_its_place_gets_nothing(connect: Connect, room: Path) -> None:
    room.chmod(0o777)
    with (
        impostor(room / "s") as heard,
        connect(room / "s") as client,
        pytest.raises(ForeignDaemon, match="nothing was sent"),
    ):
        client.remember("for my daemon alone")

    assert heard == ["b''\n"]


@needs_root
def test_root_may_ask_a_daemon_in_a_directory_of_its_user(room: Path) -> None:
    os.chown(room, STRANGER, STRANGER)
    room.chmod(0o700)
    with (
        impostor(room / "s") as heard,
        Client(room / "s", timeout_s=0.5) as client,
        pytest.raises(DaemonUnreachable),
    ):
        client.status()

    assert "/v1/status" in heard[0]
