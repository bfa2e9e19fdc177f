"""`mnem config`, and paths that no system takes: origins, changes, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, mnem, spawn

from mnemosyned.daemon.main import EXIT_CONFIG

pytestmark = pytest.mark.e2e


FILE = """\
# mine
wm_max: 500   # not many
sleep:
  # when
  ttl_hours: 12
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The settings of the user whose home is `tmp_path`."""
    file = tmp_path / ".config" / "mnemosyned" / "mnemosyned.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    return file


def run(
    home: Path, *words: str, editor: str | None = None, database: Path | None = None
) -> CompletedProcess[bytes]:
    named = str(database) if database else None
    settings = {"EDITOR": editor, "VISUAL": None, "MNEMOSYNE_DATABASE": named}
    return mnem("config", *words, home=home, MNEMOSYNE_AUTO_SLEEP=None, **settings)  # type: ignore[arg-type]


def origins(answer: CompletedProcess[bytes]) -> dict[str, Any]:
    return {each["key"]: each["origin"] for each in json.loads(answer.stdout)}


def test_each_value_has_its_origin(tmp_path: Path, file: Path) -> None:
    listed = run(tmp_path, "--json", database=tmp_path / "m.db")
    shown = run(tmp_path)

    assert origins(listed)["wm_max"] == f"{file}:2"
    assert origins(listed)["sleep.ttl_hours"] == f"{file}:5"
    assert origins(listed)["database"] == "environment, MNEMOSYNE_DATABASE"
    assert origins(listed)["secrets"] == "default"
    line = next(each for each in shown.stdout.splitlines() if b"sleep.tick_s" in each)
    assert line.split() == [b"sleep.tick_s", b"30", b"default", b"restart"]


@pytest.mark.thorough
def test_a_change_is_told_from_a_default_that_the_file_has(
    tmp_path: Path, file: Path
) -> None:
    file.write_text("wm_max: 500\nsecrets: keep\nsleep:\n  tick_s: 30\n")

    changed = origins(run(tmp_path, "--changed", "--json"))

    assert {key for key, origin in changed.items() if str(file) in origin} == {"wm_max"}


def test_a_daemons_settings_are_shown(start: Start, tmp_path: Path, file: Path) -> None:
    # A forked daemon would have its template's command line.
    daemon = start(MNEMOSYNE_WM_MAX="77", MNEMOSYNE_AUTO_SLEEP=None, anew=True)

    listed = run(tmp_path, "--json", database=daemon.database)

    by_key = origins(listed)
    pid = daemon.process.pid
    assert by_key["database"] == f"command line of process {pid}"
    assert by_key["socket"] == f"command line of process {pid}"
    assert by_key["wm_max"] == "environment, MNEMOSYNE_WM_MAX"
    assert by_key["sleep.ttl_hours"] == f"{file}:5"


def test_one_value_is_printed_alone(tmp_path: Path, file: Path) -> None:
    assert run(tmp_path, "get", "wm_max").stdout == b"500\n"
    assert run(tmp_path, "path").stdout == f"{file}\n".encode()


def test_a_file_with_a_mistake_can_only_be_edited(tmp_path: Path, file: Path) -> None:
    file.write_text("wm_maxx: 5\n")

    refused = run(tmp_path, "set", "wm_max", "5")
    mended = run(tmp_path, "edit", editor="sed -i s/maxx/max/")

    assert (refused.returncode, mended.returncode) == (2, 0)
    assert file.read_text() == "wm_max: 5\n"


def test_paths_are_kept_absolute(tmp_path: Path, file: Path) -> None:
    file.write_text("")
    run(tmp_path, "set", "watch.paths", f"notes{os.pathsep}~/more")
    run(tmp_path, "set", "llm.gpu_layers", "-1")

    refused = run(tmp_path, "set", "database", ":memory:")

    assert str(Path.cwd() / "notes") in file.read_text()
    assert '"~/more"' in file.read_text()
    assert "gpu_layers: -1" in file.read_text()
    assert refused.returncode == 2
    assert "database" not in file.read_text()


@pytest.mark.parametrize(
    ("text", "written"),
    [("[~/client, '~/bank']", '["~/client", "~/bank"]'), ("[]", "[]"), ("", "[]")],
)
def test_a_list_may_be_written_as_in_the_file(
    tmp_path: Path, file: Path, text: str, written: str
) -> None:
    file.write_text("hooks:\n  exclude: [~/other]\n")

    assert run(tmp_path, "set", "hooks.exclude", text).returncode == 0

    assert f"  exclude: {written}\n" in file.read_text()


def test_the_doctor_warns_of_a_relative_path(tmp_path: Path, file: Path) -> None:
    file.write_text("backup:\n  dir: copies\nllm:\n  model_path: none\n")

    examined = mnem("doctor", home=tmp_path).stdout.decode()

    assert "backup.dir: copies is another file in each working directory" in examined
    assert "mnem config set backup.dir PATH" in examined
    assert "llm.model_path" not in examined


def test_a_servers_password_is_never_printed(tmp_path: Path, file: Path) -> None:
    url = "postgresql://ann:geheim@host:5432/name?host=/run/pg"

    done = run(tmp_path, "set", "database", url)
    said = [done, *(run(tmp_path, *words) for words in ((), ("get", "database")))]
    as_json = run(tmp_path, "--json")

    assert done.returncode == 0
    assert f'database: "{url}"' in file.read_text()
    assert b"postgresql://ann:***@host:5432/name" in done.stdout
    assert b"~/.pgpass" in done.stderr
    outputs = [each.stdout + each.stderr for each in (*said, as_json)]
    assert not any(b"geheim" in output for output in outputs)


def test_a_url_stored_as_a_path_has_its_remedy(tmp_path: Path, file: Path) -> None:
    file.write_text(f"database: {tmp_path}/postgresql:/ann:geheim@host/name\n")
    command = "mnem config set database postgresql://ann@host/name"

    started = mnem("start", home=tmp_path, PATH="")
    examined = mnem("doctor", home=tmp_path)
    other = run(tmp_path, "set", "wm_max", "5")
    run(tmp_path, *command.split()[2:])

    assert started.returncode == 2
    assert command in " ".join(started.stderr.decode().split())
    assert examined.returncode == 1
    assert f"   {command}\n" in examined.stdout.decode()
    assert command.encode() in other.stderr
    assert b"geheim" not in started.stderr + examined.stdout + other.stderr
    assert file.read_text() == 'database: "postgresql://ann@host/name"\n'
    assert not Path(tmp_path, "postgresql:").exists()


def test_settings_that_need_each_other_are_set_at_once(
    tmp_path: Path, file: Path
) -> None:
    both = "tls.certificate=mine.crt", f"tls.key={tmp_path}/mine.key"

    alone = run(tmp_path, "set", "tls.key", "/mine.key")
    mixed = run(tmp_path, "set", "wm_max", "5", "tls.key=/mine.key")
    untouched = file.read_text()
    together = run(tmp_path, "set", *both, "listen=0.0.0.0:7464")
    written = file.read_text()
    half = run(tmp_path, "unset", "tls.key")
    out = run(tmp_path, "unset", "listen", "tls.certificate", "tls.key", "wm_max")

    assert (alone.returncode, mixed.returncode, untouched) == (2, 2, FILE)
    assert b"mnem config set tls.certificate=FILE tls.key=FILE" in alone.stderr
    assert together.returncode == 0
    assert f'certificate: "{Path.cwd() / "mine.crt"}"' in written
    assert written.startswith(FILE)
    assert half.returncode == 2
    assert out.returncode == 0
    assert b"wm_max is 10000, its default" in out.stdout
    wanted = FILE.replace("wm_max: 500   # not many\n", "") + "tls: {}\n"
    assert file.read_text() == wanted


def test_an_edit_that_is_not_valid_changes_nothing(tmp_path: Path, file: Path) -> None:
    refused = run(tmp_path, "edit", editor="sed -i s/500/many/")
    failed = run(tmp_path, "edit", editor="false")
    same = run(tmp_path, "edit", editor="true")

    assert (refused.returncode, failed.returncode) == (2, 2)
    assert b"nothing was changed: false: Editing failed" in failed.stderr
    assert f"{file}, line 2: wm_max".encode() in refused.stderr
    assert same.stderr == b"nothing was changed\n"
    assert file.read_text() == FILE


def listening(daemon: Daemon, event: str) -> None:
    eventually(lambda: daemon.events(event), f"{event} in the log")


def test_a_daemon_takes_a_change_over(start: Start, tmp_path: Path, file: Path) -> None:
    daemon = start(MNEMOSYNE_AUTO_SLEEP=None)

    changed = run(tmp_path, "set", "wm_max", "900", database=daemon.database)
    listening(daemon, "config_reloaded")
    later = run(tmp_path, "set", "limits.threads", "4", database=daemon.database)
    listening(daemon, "restart_needed")

    assert (
        f"settings reloaded by process {daemon.process.pid}".encode() in changed.stderr
    )
    assert b"in force after a restart: limits.threads" in later.stderr
    status = daemon.post("status").body
    assert (status["wm_max"], status["restart_needed"]) == (900, ["limits.threads"])
    assert file.read_text().startswith("# mine\n")


# Paths that no system takes are refused in words by the daemon and by every command.


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
def test_the_daemon_refuses_a_bad_path(shared: Daemon, room: Path, case: str) -> None:
    path = f"{room}{PATHS[case]}"

    made = shared.post("backup", file=path)
    watched = shared.post("watch", paths=[path])
    unwatched = shared.post("watch", paths=[path], remove=True)

    assert (made.status, *made.error) == (400, "invalid_request", "file")
    assert watched.status == 400
    assert unwatched.status in (400, 404)
    assert not shared.events("request_failed")


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
def test_a_bad_database_ends_commands(room: Path, tmp_path: Path, case: str) -> None:
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
