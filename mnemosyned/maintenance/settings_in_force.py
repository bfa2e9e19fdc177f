"""The settings in force with the origin of each: those of the running daemon, where one runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mnemosyned.config import (
    KEYS,
    Config,
    config_file,
    load_with_origins,
    needs_restart,
    value_of,
)
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.maintenance.daemon_process import (
    DaemonProcess,
    configured_daemon,
    daemon_arguments,
    daemon_environment,
)
from mnemosyned.paths import config_dir

DEFAULT = "default"
_OVERRIDES = {"--database": "database", "--socket": "socket"}


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
    """The surroundings of the running daemon, if one runs on the configured database."""
    present = Surroundings(file=config_file(), environment=os.environ, options={})
    process = _process(present)
    if process is None:
        return present
    options = _options(daemon_arguments(process.pid))
    named = options.pop("--config", None)
    return Surroundings(
        file=Path(named) if named else present.file,
        environment=daemon_environment(process.pid),
        options={_OVERRIDES[name]: value for name, value in options.items()},
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
            value=value_of(config, key),
            origin=_origin(origins.get(key, DEFAULT), pid),
            restart=needs_restart(key),
        )
        for key in KEYS
    ]


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


def _options(words: list[str]) -> dict[str, str]:
    """The options of a command line and their values."""
    options: dict[str, str] = {}
    waiting = ""
    for word in words:
        name, given, value = word.partition("=")
        if waiting:
            options[waiting], waiting = word, ""
        elif given:
            options[name] = value
        else:
            waiting = name
    return options


def _origin(origin: str, pid: int) -> str:
    if origin == "argument":
        return f"command line of process {pid}"
    place, _, line = origin.rpartition(", line ")
    return f"{place}:{line}" if place else origin
