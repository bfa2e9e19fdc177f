"""A real `systemd --user` of an ordinary user for tests of units, beside which scripts run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
BESIDE_SYSTEMD = Path(__file__).with_name("with_systemd_user.sh")
UNIT = "mnemosyned.service"
CANNOT_HERE = 77
TIMEOUT_S = 280

WAIT_UNTIL = """
wait_until() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; return 1; }
"""


def make_home(folder: Path, unit: str = UNIT, *, keep: set[str] | None = None) -> Path:
    """A user's home with the commands, the unit, and the daemon's log in a file.

    `keep` are folders that the daemon sees besides those it is loaded from.
    """
    home = folder / "home"
    commands = home / ".local" / "bin"
    commands.mkdir(parents=True)
    for command in ("mnemosyned", "mnem", "sqlite-utils"):
        (commands / command).symlink_to(Path(sys.executable).parent / command)
    units = home / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    shutil.copy(CHECKOUT / "systemd" / unit, units)
    drop_in(home, "log.conf", "StandardError=append:%h/daemon.log", unit=unit)
    # The unit has a /tmp of its own; a checkout that lies there must be seen in it all the same.
    hidden = [
        path
        for path in sorted(kept() | (keep or set()))
        if path.startswith(("/tmp/", "/var/tmp/"))  # noqa: S108
    ]
    lines = [f"BindReadOnlyPaths={path}" for path in hidden]
    drop_in(home, "checkout.conf", *lines, unit=unit)
    return home


def kept() -> set[str]:
    """Folders that the daemon and its client are loaded from on this machine."""
    return {str(CHECKOUT), sys.prefix, os.path.realpath(sys.base_prefix)}


def drop_in(home: Path, name: str, *lines: str, unit: str = UNIT) -> None:
    """Write a drop-in of the unit, with lines of its section `Service`."""
    folder = home / ".config" / "systemd" / "user" / f"{unit}.d"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(["[Service]", *lines, ""]))


def beside_systemd(
    home: Path, script: str, *, keep: set[str] | None = None
) -> list[str]:
    """Run a shell script as the user beside the user's systemd; the lines it prints.

    `keep` are folders that stay visible besides those that the daemon is loaded from.
    """
    done = subprocess.run(
        [
            BESIDE_SYSTEMD,
            home,
            ":".join(sorted(kept() | (keep or set()))),
            "bash",
            "-euc",
            WAIT_UNTIL + script,
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode == CANNOT_HERE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
