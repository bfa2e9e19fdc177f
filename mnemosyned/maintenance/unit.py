"""The systemd user unit: whether it is there and running, and how it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

UNIT = "mnemosyned.service"
ASK_TIMEOUT_S = 10.0
"""systemd answers such questions at once, or is not well."""
CHANGE_TIMEOUT_S = 120.0
_PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "MainPID", "Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The user unit as systemd sees it."""

    loaded: bool
    active: str
    """Such as active, inactive, failed."""
    enabled: bool
    pid: int
    result: str

    @property
    def running(self) -> bool:
        """Whether systemd runs the daemon or is about to."""
        return self.active in ("active", "activating", "reloading")


def unit_file() -> Path:
    """The place where `make install` puts the user unit."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "systemd" / "user" / UNIT


def present_unit() -> Unit | None:
    """The user unit, or None where no systemd of this user answers."""
    shown = systemctl("show", UNIT, *(f"--property={name}" for name in _PROPERTIES))
    if shown is None or shown.returncode != 0:
        return None
    values = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
    return Unit(
        loaded=values.get("LoadState") == "loaded",
        active=values.get("ActiveState", ""),
        enabled=values.get("UnitFileState") in ("enabled", "enabled-runtime"),
        pid=int(values.get("MainPID") or 0),
        result=values.get("Result", ""),
    )


def systemctl(
    *words: str, timeout_s: float = ASK_TIMEOUT_S
) -> subprocess.CompletedProcess[str] | None:
    """Ask the user's systemd; None where there is none, or it does not answer."""
    program = shutil.which("systemctl")
    if program is None:
        return None
    try:
        return subprocess.run(  # noqa: S603 our own words
            [program, "--user", "--no-pager", *words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def lingers() -> bool | None:
    """Whether this user's services run without a login; None where nobody knows."""
    program = shutil.which("loginctl")
    if program is None:
        return None
    try:
        shown = subprocess.run(  # noqa: S603 our own words
            [program, "show-user", str(os.geteuid()), "--property=Linger"],
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if shown.returncode != 0:
        return None
    return shown.stdout.strip() == "Linger=yes"
