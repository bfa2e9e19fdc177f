"""One socket path, one daemon: however many start at once, and whoever stops.

CLAIM_RUNS is how often the race is run.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, environment, eventually, listens, short_room
from e2e.programs import BIN

from mnemosyned import AsyncClient, Client
from mnemosyned.errors import DaemonUnreachable, ForeignDaemon

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

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


def test_a_lock_left_by_a_crash_is_no_hindrance(start: Start) -> None:
    first = start()
    first.kill()
    assert first.socket.with_name(first.socket.name + ".lock").exists()

    start("--socket", str(first.socket))

    assert first.post("status").status == 200


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


def remember_blocking(path: Path) -> None:
    with Client(path) as client:
        client.remember("for my daemon alone")


def remember_async(path: Path) -> None:
    asyncio.run(AsyncClient(path).remember("for my daemon alone"))


@needs_root
@pytest.mark.parametrize("remember", [remember_blocking, remember_async])
def test_nothing_is_sent_to_a_stranger_in_the_daemons_place(
    remember: Callable[[Path], None],
) -> None:
    with short_room() as room:
        room.chmod(0o777)
        with subprocess.Popen(
            [sys.executable, "-P", "-c", IMPOSTOR, str(room / "s")],
            stdout=subprocess.PIPE,
            text=True,
        ) as impostor:
            assert impostor.stdout
            assert impostor.stdout.readline() == "listens\n"

            with pytest.raises(ForeignDaemon, match="nothing was sent"):
                remember(room / "s")

            assert impostor.stdout.readline() == "b''\n"


@needs_root
def test_root_may_ask_a_daemon_in_a_directory_of_its_user() -> None:
    with short_room() as room:
        os.chown(room, STRANGER, STRANGER)
        room.chmod(0o700)
        with subprocess.Popen(
            [sys.executable, "-P", "-c", IMPOSTOR, str(room / "s")],
            stdout=subprocess.PIPE,
            text=True,
        ) as theirs:
            assert theirs.stdout
            assert theirs.stdout.readline() == "listens\n"

            with (
                Client(room / "s", timeout_s=0.5) as client,
                pytest.raises(DaemonUnreachable),
            ):
                client.status()

            assert "/v1/status" in theirs.stdout.readline()


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
