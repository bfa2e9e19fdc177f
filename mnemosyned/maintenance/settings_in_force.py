"""The settings in force with the origin of each: those of the running daemon, where one runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mnemosyned.config import (
    CONFIG_VARIABLE,
    KEYS,
    Config,
    config_file,
    is_server,
    load_with_origins,
    needs_restart,
    value_of,
    without_password,
)
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.maintenance.daemon_process import (
    DaemonProcess,
    configured_daemon,
    daemon_environment,
    daemon_options,
)
from mnemosyned.paths import config_dir

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as it is in force."""

    key: str
    value: object
    origin: str
    """`default`, a file with its line, a variable, or the daemon's command line."""
    restart: bool
    """Whether a change takes effect at the next start only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """From where settings are read: as the running daemon does, or as the next one would."""

    file: Path | None
    environment: Mapping[str, str]
    options: Mapping[str, str]
    """Settings on the daemon's command line, by key."""
    process: DaemonProcess | None = None


def usual_file() -> Path:
    """The configuration file, which may not exist yet."""
    return config_file() or config_dir() / "mnemosyned.yaml"


def surroundings() -> Surroundings:
    """The surroundings of the running daemon, if one runs."""
    present = Surroundings(file=config_file(), environment=os.environ, options={})
    process = _process(present)
    if process is None:
        return present
    options = daemon_options(process.pid)
    environment = daemon_environment(process.pid)
    named = options.pop("--config", None) or environment.get(CONFIG_VARIABLE)
    return Surroundings(
        file=Path(named) if named else present.file,
        environment=environment,
        options={name.removeprefix("--"): value for name, value in options.items()},
        process=process,
    )


def settings_in_force(around: Surroundings) -> list[Setting]:
    """Every setting with its value and origin. Raises `ConfigInvalid`."""
    config, origins = load_with_origins(
        around.file, environ=around.environment, overrides=around.options
    )
    pid = around.process.pid if around.process else 0
    return [
        Setting(
            key=key,
            value=shown_value(key, value_of(config, key)),
            origin=_origin(origins.get(key, DEFAULT), pid),
            restart=needs_restart(key),
        )
        for key in KEYS
    ]


def shown_value(key: str, value: object) -> object:
    """The value of a setting without the password of a URL."""
    if key == "database" and isinstance(value, str) and is_server(value):
        return without_password(value)
    return value


def ask_for_reload() -> DaemonProcess | None:
    """Have the running daemon read its settings again; None if none runs."""
    process = surroundings().process
    if process is None or process.socket is None or not process.pid:
        return None
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGHUP)
        return process
    return None


def _process(present: Surroundings) -> DaemonProcess | None:
    try:
        config = load_with_origins(present.file, environ=present.environment)[0]
    except MnemosynedError:
        config = Config()
    with suppress(MnemosynedError, OSError):
        return configured_daemon(config)
    return None


def _origin(origin: str, pid: int) -> str:
    if origin == "argument":
        return f"command line of process {pid}"
    place, _, line = origin.rpartition(", line ")
    return f"{place}:{line}" if place else origin
