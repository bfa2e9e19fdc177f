"""`mnem start`, `stop`, `restart`, `logs` and `restore-db` without systemd."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import pytest
from e2e.conftest import Start
from e2e.daemons import environment, kept, mnem, short_room
from e2e.programs import BIN

from mnemosyned import Memory
from mnemosyned.cli.maintenance import service
from mnemosyned.daemon.main import LogFile
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import state_dir

pytestmark = pytest.mark.e2e

Run = Callable[..., CompletedProcess[bytes]]


@pytest.fixture
def run() -> Iterator[Run]:
    """Run commands in a home of their own, where no daemon is left in the end.

    The path of the directory of temporary files is longer than that of a socket may be.
    """
    with short_room() as home:
        temporary = home / ("t" * 100)
        temporary.mkdir()

        def command(
            *words: str,
            endpoint: str | None = None,
            database: str | None = None,
            settings: str | None = None,
        ) -> CompletedProcess[bytes]:
            return mnem(
                *words,
                home=home,
                PATH="",
                TMPDIR=str(temporary),
                MNEMOSYNE_LLM_ENDPOINT=endpoint,
                MNEMOSYNE_DATABASE=database,
                MNEMOSYNE_CONFIG=settings,
            )

        yield command
        command("stop")
        assert list(temporary.iterdir()) == []


def start_and_find_log(run: Run) -> Path:
    said = run("start").stderr.decode()
    return Path(said.split("its log: ")[1].split()[0])


def kill_and_wait(pid: int) -> None:
    """Kill the process and wait until it has ended: until then it holds the database."""
    process = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert select.select([process], [], [], 10)[0], f"process {pid} still runs"
    finally:
        os.close(process)


def test_a_daemon_is_started_asked_and_stopped(run: Run) -> None:
    started, again = run("start"), run("start")
    stored = run("remember", "tea at four", "--id", "tea")
    log = run("logs", "-n", "1")
    stopped, over = run("stop"), run("stop")

    assert (started.returncode, started.stdout) == (0, b"")
    assert b"started, as process" in started.stderr
    assert b"the daemon runs already" in again.stderr
    assert stored.stdout == b"tea\n"
    assert b" ready  pid=" in log.stdout
    assert len(log.stdout.splitlines()) == 1
    assert b"stopped process" in stopped.stderr
    assert (over.returncode, over.stderr) == (0, b"no daemon runs\n")
    assert run("status").returncode == 3


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["start", "restart"])
def test_of_several_starts_at_once_each_says_that_the_daemon_runs(command: str) -> None:
    def wait(start: subprocess.Popen[bytes]) -> tuple[float, bytes]:
        said = start.communicate()[1]
        return time.monotonic(), said

    with short_room() as home, ThreadPoolExecutor() as pool:
        variables = environment(home, PATH="")
        if command == "restart":
            mnem("start", home=home, PATH="")
        starts = [
            subprocess.Popen([BIN / "mnem", command], env=variables, stderr=PIPE)
            for _ in range(3)
        ]
        ended = sorted(pool.map(wait, starts))
        stopped = mnem("stop", home=home, PATH="")

    assert [each.returncode for each in starts] == [0, 0, 0]
    named = [re.findall(rb"as process (\d+)", said) for _, said in ended]
    assert all(named)
    # A restart that comes when another has ended restarts the daemon of that one.
    must_name = named[-1:] if command == "restart" else named
    pid = stopped.stderr.split()[2]
    assert all(pid in each for each in must_name)


@pytest.mark.thorough
def test_a_start_that_fails_says_why(run: Run) -> None:
    failed = run("start", endpoint="http://example.com/v1")

    assert failed.returncode == 3
    assert b"the daemon did not start; it said: " in failed.stderr
    assert b"llm.local_only" in failed.stderr


@pytest.mark.thorough
def test_a_start_on_a_port_in_use_shows_no_lines_of_the_log(
    run: Run, tmp_path: Path
) -> None:
    kill_and_wait(int(run("start").stderr.split()[3].strip(b";")))
    settings = tmp_path / "settings.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.write_text(f'listen: "127.0.0.1:{taken.getsockname()[1]}"\n')
        failed = run("start", settings=str(settings))

    assert failed.returncode == 3
    assert b"did not start; it said: mnemosyned: listen: 127.0.0.1:" in failed.stderr


@pytest.mark.thorough
def test_a_backup_is_restored_once_the_daemon_is_stopped(run: Run) -> None:
    folder = start_and_find_log(run).parent
    run("remember", "tea at four", "--id", "tea")
    run("backup", str(folder / "copy.db"))
    run("remember", "tea at five", "--id", "more")
    (folder / "bad.db").write_bytes(b"SQLite format 3\0 and no more")
    faulty = run("restore-db", str(folder / "bad.db"), "--restart")

    refused = run("restore-db", str(folder / "copy.db"))
    restored = run("restore-db", str(folder / "copy.db"), "--restart")

    assert (faulty.returncode, faulty.stdout) == (2, b"")
    assert b"stopped" not in faulty.stderr
    assert refused.returncode == 5
    assert b"stop it with `mnem stop`, or add --restart" in refused.stderr
    assert restored.returncode == 0
    assert b"is set aside as" in restored.stdout
    assert (run("get", "tea").returncode, run("get", "more").returncode) == (0, 4)


@pytest.mark.thorough
def test_a_mistake_in_the_settings_stops_no_stop(run: Run, tmp_path: Path) -> None:
    database = str(tmp_path / "elsewhere.db")
    run("config", "set", "database", database)
    run("start")
    settings = Path(run("config", "path").stdout.decode().strip())
    settings.write_text(f"{settings.read_text()}\nwm_maxx: 5\n")

    stopped = run("stop")

    assert stopped.returncode == 0
    assert b"did you mean wm_max?" in stopped.stderr
    assert b"stopped process" in stopped.stderr


@pytest.mark.thorough
def test_a_daemon_is_found_by_its_socket(run: Run, tmp_path: Path) -> None:
    database = tmp_path / "other.db"

    run("start", database=os.path.relpath(database))
    run("remember", "tea at four", "--id", "tea")
    refused = run("start")
    examined = run("doctor")
    restarted = run("restart")
    asked = run("get", "tea")
    stopped = run("stop")

    assert kept(database) == ["tea"]
    assert refused.returncode == 5
    assert f"with {database}, and these settings name".encode() in refused.stderr
    assert f"it has {database}, and the settings name".encode() in examined.stdout
    assert b"no daemon runs" not in examined.stdout
    assert b"stopped process" in restarted.stderr
    assert asked.returncode == 0, "it has the same memory again"
    assert b"stopped process" in stopped.stderr


def test_a_typed_socket_selects_the_daemon_to_examine(run: Run) -> None:
    with short_room() as room:
        settings = room / "settings.yaml"
        settings.write_text(f"socket: {room}/d.sock\ndatabase: {room}/m.db\n")
        run("start")
        run("start", settings=str(settings))

        examined = run("--socket", f"{room}/d.sock", "doctor").stdout.decode()
        stopped = run("stop", settings=str(settings))

        assert f"answers on {room}/d.sock" in examined
        assert f"it has {room}/m.db, and the settings name" in examined
        assert stopped.returncode == 0
        assert run("status").returncode == 0


def test_the_doctor_names_a_daemon_that_runs_without_its_unit(
    start: Start, tmp_path: Path
) -> None:
    tool = tmp_path / "systemctl"
    tool.write_text("#!/bin/sh\necho LoadState=loaded\necho ActiveState=inactive\n")
    tool.chmod(0o755)
    daemon = start()
    call = tmp_path / "mnemosyned" / "spool" / "c-1"
    call.parent.mkdir(parents=True)
    call.write_text("{}")
    os.utime(call, (1_700_000_000, 1_700_000_000))
    socket, room = str(daemon.socket), str(tmp_path)

    examined = mnem(
        *("--socket", socket, "doctor"),
        home=daemon.home,
        PATH=room,
        XDG_STATE_HOME=room,
    ).stdout.decode()

    _, found, advice = examined.partition("inactive, and the daemon runs without it\n")
    assert found
    assert advice.split("\n")[0].strip() == "mnem stop; mnem start"
    assert "; the next hook hands them in" in examined


@pytest.mark.thorough
def test_a_daemon_of_another_settings_file_is_found_by_that_variable(run: Run) -> None:
    with short_room() as room:
        settings = room / "settings.yaml"
        settings.write_text(f"socket: {room}/d.sock\ndatabase: {room}/m.db\n")
        named = os.path.relpath(settings)

        started = run("start", settings=named)
        answers = run("status", settings=named), run("status")
        shown = run("config", "get", "database", settings=named)
        restarted = run("restart", settings=named)
        stopped = run("stop", settings=named)

        assert started.returncode == 0
        assert [answer.returncode for answer in answers] == [0, 3]
        assert shown.stdout == f"{room}/m.db\n".encode()
        assert b"stopped process" in restarted.stderr
        assert b"stopped process" in stopped.stderr


@pytest.mark.thorough
def test_a_restart_keeps_a_relative_database(start: Start, tmp_path: Path) -> None:
    # A forked daemon would have its template's command line.
    database = tmp_path / "notes.db"
    daemon = start("--database", os.path.relpath(database), anew=True)
    daemon.mnem("remember", "tea at four", "--id", "tea")

    restarted = mnem("restart", home=daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket))
    asked = daemon.mnem("get", "tea")
    mnem("stop", home=daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket))

    assert b"stopped process" in restarted.stderr
    assert asked.returncode == 0


@pytest.mark.thorough
def test_restarts_at_once_keep_the_options_of_the_daemon(
    start: Start, tmp_path: Path
) -> None:
    daemon = start("--database", str(tmp_path / "notes.db"), anew=True)
    daemon.mnem("remember", "tea at four", "--id", "tea")
    variables = environment(daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket), PATH="")
    outputs = []

    for _ in range(2):
        restarts = [
            subprocess.Popen([BIN / "mnem", "restart"], env=variables, stderr=PIPE)
            for _ in range(3)
        ]
        outputs += [restart.communicate()[1] for restart in restarts]
    asked = daemon.mnem("get", "tea")
    mnem("stop", home=daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket))

    assert [b"started, as process" in output for output in outputs] == [True] * 6
    assert asked.returncode == 0


def test_restarts_lock_what_nfs_can_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(descriptor: int, _: int) -> None:
        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EBADF, "not open for writing")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", lock)

    with service.lock_service():
        assert {each.stat().st_mode & 0o777 for each in state_dir().iterdir()} == {
            0o600
        }


def test_a_unit_does_not_read_the_variables_of_the_shell(tmp_path: Path) -> None:
    systemctl = tmp_path / "systemctl"
    loaded = "LoadState=loaded\\nActiveState=active\\nMainPID=0"
    systemctl.write_text(f'#!/bin/sh\ncase "$*" in *show*) printf "{loaded}";; esac\n')
    systemctl.chmod(0o755)
    path, other = f"{tmp_path}:/usr/bin:/bin", str(tmp_path / "other.db")

    started = mnem("start", home=tmp_path, PATH=path, MNEMOSYNE_DATABASE=other)

    assert started.returncode == 0
    assert b"started by systemd" in started.stderr
    unread = re.search(rb"does not read (.*) of this shell", started.stderr)
    assert unread is not None
    assert {b"MNEMOSYNE_AUTO_SLEEP", b"MNEMOSYNE_DATABASE"} <= {*unread[1].split(b", ")}


def test_a_program_that_has_the_memory_open_is_not_stopped(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        refusals = [
            mnem(verb, home=tmp_path, MNEMOSYNE_DATABASE=str(tmp_path / "memory.db"))
            for verb in ("start", "stop")
        ]
        memory.remember("tea at four")

    assert [refused.returncode for refused in refusals] == [5, 5]
    assert all(b"is not a daemon, but a program" in each.stderr for each in refusals)


@contextmanager
def logging_to(file: Path) -> Iterator[LogFile]:
    """A log in a block, which then gives back standard output and standard error."""
    standard = [os.dup(1), os.dup(2)]
    try:
        yield LogFile(file, bytes_max=10)
    finally:
        for number, descriptor in enumerate(standard, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def test_a_deleted_log_is_begun_anew(tmp_path: Path) -> None:
    with logging_to(tmp_path / "d.log") as log:
        (tmp_path / "d.log").unlink()
        log.rotate()
        os.write(2, b"tea\n")

    assert (tmp_path / "d.log").read_bytes() == b"tea\n"


def test_a_full_log_is_begun_anew_and_one_older_is_kept(tmp_path: Path) -> None:
    with logging_to(tmp_path / "d.log") as log:
        for text in (b"first line\n", b"second line\n", b"third\n"):
            os.write(2, text)
            log.rotate()

    assert (tmp_path / "d.log").read_bytes() == b"third\n"
    assert (tmp_path / "d.log.1").read_bytes() == b"second line\n"
    assert (tmp_path / "d.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.thorough
def test_a_start_names_a_log_that_cannot_be_written(run: Run) -> None:
    log = start_and_find_log(run)
    run("stop")
    log.rename(log.with_suffix(".old"))
    log.mkdir()

    refused = run("start")

    assert refused.returncode == 3
    assert b"cannot be written to: Is a directory; remove it" in refused.stderr
    assert b"Usage" not in refused.stderr


def test_a_log_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"--log-file: .*No such file"):
        LogFile(tmp_path / "nowhere" / "d.log")
