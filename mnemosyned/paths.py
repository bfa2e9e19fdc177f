"""Directories and files on this machine: systemd's directories, or the user's by the XDG rules."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.socket_path import directory, usual_socket_path


def state_dir() -> Path:
    """The default directory of the database."""
    return _directory(
        "STATE_DIRECTORY", "XDG_STATE_HOME", Path.home() / ".local" / "state"
    )


def models_dir() -> Path:
    """The directory of language models."""
    return state_dir() / "models"


def token_path() -> Path:
    """The file with the token for requests over TCP."""
    return state_dir() / "token"


def config_dir() -> Path:
    """The directory of the configuration file."""
    return _directory(
        "CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", Path.home() / ".config"
    )


def default_socket() -> Path:
    """The socket of the daemon, unless the settings name another."""
    return Path(usual_socket_path())


def shipped(folder: str) -> Path:
    """`migrations`, `config` or `systemd`: next to the package in a checkout, in it once installed.

    Raises `FileNotFoundError` if the installation is damaged.
    """
    package = Path(__file__).parent
    for candidate in (package / "_data" / folder, package.parent / folder):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(
        f"{folder} is missing next to {package}; install mnemosyned again"
    )


def _directory(systemd: str, xdg: str, default: Path) -> Path:
    """The directory that systemd names, or `mnemosyned` in the one that XDG names."""
    return Path(directory(systemd, xdg, str(default)))
