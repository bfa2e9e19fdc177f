"""Paths that no system takes are refused in words by the daemon and by every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, Daemon, mnem, spawn

from mnemosyned.daemon.main import EXIT_CONFIG

pytestmark = pytest.mark.e2e

PATHS: dict[str, str] = {
    "a long name": f"/{'x' * 300}",
    "line breaks": "\n" * 600,
    "no room beside it": f"/{'x' * 250}",
    "a long path": "/" + "/".join(["x" * 99] * 60),
    "many folders": "/x" * 1_500,
    "a loop": "/loop",
    "below a file": "/file/x",
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "backup": ("backup",),
    "export": ("export", "--format", "jsonl"),
    "export to read": ("export", "--format", "markdown"),
    "export a copy": ("export", "--format", "sqlite"),
    "import": ("import",),
    "watch": ("watch",),
    "restore": ("restore-db", "--database"),
    "move": ("move", "--to"),
    "move from": ("move", "--to", "postgresql://localhost/none", "--from"),
    "database": ("config", "set", "--no-reload", "database"),
    "model": ("model", "use"),
    "socket": ("--socket",),
}
LAST = {"restore": ("nothing.db",), "socket": ("status",)}
MAY_BE = {
    ("no room beside it", "export to read"),  # it is a folder of files
    ("no room beside it", "watch"),
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("room")
    (room / "loop").symlink_to("loop")
    (room / "file").write_text("x")
    return room


@pytest.mark.parametrize("case", PATHS)
def test_the_daemon_refuses_a_path_that_cannot_be(
    shared: Daemon, room: Path, case: str
) -> None:
    path = f"{room}{PATHS[case]}"

    made = shared.post("backup", file=path)
    watched = shared.post("watch", paths=[path])
    unwatched = shared.post("watch", paths=[path], remove=True)

    assert (made.status, *made.error) == (400, "invalid_request", "file")
    assert watched.status == 400
    assert unwatched.status in (400, 404)
    assert not shared.events("request_failed")


def test_a_nul_in_a_path_is_named_by_its_place(shared: Daemon) -> None:
    watched, unwatched = (
        shared.post("watch", paths=["/a", "\0"], remove=remove)
        for remove in (False, True)
    )

    made = shared.post("backup", file="/\0")

    assert (watched.status, *watched.error) == (400, "invalid_text", "paths[1]")
    assert (unwatched.status, *unwatched.error) == (400, "invalid_text", "paths[1]")
    assert (made.status, *made.error) == (400, "invalid_text", "file")


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_a_path_that_cannot_be(
    shared: Daemon, room: Path, tmp_path: Path, command: str
) -> None:
    for case, name in PATHS.items():
        words = [*COMMANDS[command], f"{room}{name}", *LAST.get(command, ())]
        if command != "socket":
            words = ["--socket", str(shared.socket), *words]

        done = mnem(*words, home=tmp_path)

        said = done.stderr.decode()
        expected = (0, 2) if (case, command) in MAY_BE else (2, 3)
        assert done.returncode in expected, (case, said)
        assert "Traceback" not in said, case


@pytest.mark.thorough
@pytest.mark.parametrize("case", PATHS)
def test_a_database_that_cannot_be_ends_every_command_about_it(
    room: Path, tmp_path: Path, case: str
) -> None:
    # A value is stripped of its last line breaks.
    database = f"{room}{PATHS[case]}" + "x" * (case == "line breaks")

    ended = {
        command: mnem(command, home=tmp_path, MNEMOSYNE_DATABASE=database)
        for command in ("start", "restart", "doctor", "stop")
    }
    process = spawn(home=tmp_path, log=tmp_path / "log", MNEMOSYNE_DATABASE=database)

    assert process.wait(WAIT_S) == EXIT_CONFIG
    codes = [done.returncode for done in ended.values()]
    assert codes[:3] == [2, 2, 1]
    assert codes[3] in (
        0,
        2,
    )  # a mistake of the settings keeps no daemon from being stopped
    said = (tmp_path / "log").read_text() + "".join(
        (done.stderr + done.stdout).decode() for done in ended.values()
    )
    assert "; choose a" in said or "; name the file itself" in said
    assert "Traceback" not in said
