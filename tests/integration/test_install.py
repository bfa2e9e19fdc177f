"""`make install` for a user, and `make uninstall` after it: in a home of the test's own."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.daemons import kept, short_room
from support.pages import README, blocks

pytestmark = pytest.mark.packaging

CHECKOUT = Path(__file__).parents[2]
COMMANDS = Path(".local", "bin")
VENV = Path(".local", "share", "mnemosyned", "venv")
PYTHON = VENV / "bin" / "python"
CONFIG = Path(".config", "mnemosyned", "mnemosyned.yaml")
UNITS = Path(".config", "systemd", "user")


@pytest.fixture
def home() -> Iterator[Path]:
    with short_room() as room:
        yield room
        for file in room.rglob("memory.db.lock"):
            text = file.read_text()
            if text:  # a daemon that a failed test left
                os.kill(json.loads(text)["pid"], signal.SIGTERM)


def make(
    target: str,
    home: Path,
    *,
    works: bool = True,
    first_on_path: Path | None = None,
    without_index: bool = False,
) -> str:
    environ = {
        name: value
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("PIP_")
    }
    if first_on_path:
        environ["PATH"] = f"{first_on_path}:{environ['PATH']}"
    # pip's own settings may stand in the home that is hidden here.
    settings = Path.home() / ".config" / "pip" / "pip.conf"
    if settings.exists():
        environ.setdefault("PIP_CONFIG_FILE", str(settings))
    if without_index:
        environ |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        environ.pop("PIP_FIND_LINKS", None)
    done = subprocess.run(
        ["make", *target.split()],
        cwd=CHECKOUT,
        env={**environ, "HOME": str(home)},
        check=False,
        timeout=300,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (done.returncode == 0) == works, done.stdout
    return done.stdout


def run(command: str, home: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in the user's home."""
    names = ("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_FIND_LINKS")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    path = f"{home}/.local/bin:/usr/bin:/bin"
    return subprocess.run(
        ["sh", "-c", command],
        env={**kept, **settings, "HOME": str(home), "PATH": path},
        cwd=home,
        check=False,
        timeout=120,
        capture_output=True,
        text=True,
    )


def test_an_installation_runs_is_upgraded_and_leaves_only_memory_when_undone(
    home: Path,
) -> None:
    began = time.monotonic()
    said = make("install", home)
    print(f"make install: a line is found after {time.monotonic() - began:.1f} s")
    commands = home / COMMANDS
    memory = home / ".local" / "state" / "mnemosyned" / "memory.db"
    assert "started, as process" in said
    assert "mnemosyned was installed here" in said
    assert "installed, and it runs" in said
    assert "mkdir" not in said, "a person reads what is done, not the commands"

    assert "valid" in run(f"mnemosyned --config {CONFIG} --check", home).stdout
    unit = (home / UNITS / "mnemosyned.service").read_text()
    assert f"Environment=PATH={commands}:" in unit
    assert memory.parent.stat().st_mode & 0o777 == 0o700

    example = next(block for block in blocks(README) if "import Client" in block.text)
    (home / "example.py").write_text(example.text)
    assert run(f"{PYTHON} example.py", home).stdout == example.output

    remembered = run("mnem remember We deploy on Tuesdays --id tuesdays", home)
    assert remembered.returncode == 0, remembered.stderr

    assert run("mnem setup cursor opencode --yes", home).returncode == 0
    written = (home / ".cursor" / "mcp.json").read_text()
    assert f'"command": "{commands / "mnem"}"' in written

    server = {"MNEMOSYNE_DATABASE": "postgresql://nobody@nowhere/x"}
    bare = run("mnem start", home, **server)
    run("mnem stop", home)
    missing = run("mnem start", home, **server)
    steps = missing.stderr.split("needs psycopg: ")[1], "mnem start"
    codes = [run(step, home).returncode for step in steps]
    failed = make("install", home, works=False, without_index=True)
    status = run("mnem status", home)
    killing = 'rm "$@"; case "$*" in *venv*) kill -9 $PPID;; esac'
    program(home / "bin" / "rm", f"/bin/{killing}")
    make("install", home, works=False, first_on_path=home / "bin")
    (home / "bin" / "rm").unlink()
    restarted = run("mnem start", home)
    upgraded = make("install EXTRAS=personal", home)

    assert "the daemon runs already" in bare.stderr
    assert codes == [0, 0]
    assert "with the extras that were there: postgres" in failed
    assert status.returncode == 0, "the old one still runs"
    assert "started, as process" in restarted.stderr, "it was killed before the new one"
    assert "with the extras that were there: postgres" in upgraded
    assert "stopped process" in upgraded
    assert "installed, and it runs" in upgraded
    imports = f"{PYTHON} -c 'import psycopg, psycopg_binary, icalendar'"
    assert run(imports, home).returncode == 0
    scripts = [(home / COMMANDS / "mnem").resolve(), home / VENV / "bin" / "pip"]
    assert all(f"#!{home / PYTHON}" in script.read_text() for script in scripts)
    assert not (home / VENV).with_name("venv-new").exists()

    said = make("uninstall", home)

    assert "stopped process" in said
    left = {path for path in home.rglob("*") if path.is_file()}
    ours = {path for path in left if "mnem" in str(path.relative_to(home))}
    assert ours == {memory, memory.with_name("memory.db.lock")}
    assert kept(memory) == ["tuesdays"]
    assert not (home / ".cursor").exists()
    assert not (home / ".config" / "opencode").exists()
    make("uninstall", home)


def test_an_installation_that_cannot_start_says_what_stopped_it(home: Path) -> None:
    config = home / CONFIG
    config.parent.mkdir(parents=True)
    config.write_text("wm_maxx: 7\n")

    said = make("install", home, works=False)

    assert "did you mean wm_max?" in said
    assert "mnem config edit" in said
    assert "installed, but it does not run yet" in said
    config.write_text("wm_max: 7\n")
    assert run("mnem start", home).returncode == 0
    make("uninstall", home)


def program(file: Path, script: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_daemon_that_cannot_be_stopped_is_told_and_nothing_is_removed(
    home: Path,
) -> None:
    mnem = home / COMMANDS / "mnem"
    program(mnem, '[ "$2" = --help ] || { echo "it goes on" >&2; exit 3; }')

    said = [make(target, home, works=False) for target in ("install", "uninstall")]

    assert all("it goes on" in each for each in said)
    assert mnem.exists()
    assert not (home / VENV).exists()


def test_a_client_that_cannot_run_is_removed_all_the_same(home: Path) -> None:
    mnem = home / COMMANDS / "mnem"
    program(mnem, "exit 127")

    said = make("uninstall", home)

    assert "mnem cannot be run: a daemon that it started goes on" in said
    assert not mnem.exists()


def test_an_error_of_systemd_is_told_and_nothing_is_removed(home: Path) -> None:
    unit = home / UNITS / "mnemosyned.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    program(
        home / "bin" / "systemctl",
        'case "$*" in *show*) echo LoadState=loaded;; *) echo "Access denied" >&2; exit 4;; esac',
    )

    said = make("uninstall", home, works=False, first_on_path=home / "bin")

    assert "Access denied" in said
    assert unit.exists()


def test_a_change_of_the_unit_and_of_the_settings_survives(home: Path) -> None:
    drop_ins, config = home / UNITS / "mnemosyned.service.d", home / CONFIG
    drop_ins.mkdir(parents=True)
    config.parent.mkdir(parents=True)
    config.write_text("wm_max: 7\n")
    (drop_ins / "override.conf").touch()
    (drop_ins / "without-user-namespaces.conf").touch()

    make("uninstall", home)

    assert [file.name for file in drop_ins.iterdir()] == ["override.conf"]
    assert config.read_text() == "wm_max: 7\n"
