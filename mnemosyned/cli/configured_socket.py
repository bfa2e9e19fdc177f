"""The socket that the daemon's configuration file names; a mistake in that file stops nobody."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mnemosyned.domain.errors import ConfigInvalid
from mnemosyned.paths import config_dir
from mnemosyned.socket_path import SOCKET_VARIABLE
from mnemosyned.terminal import say

_LINE = re.compile(r"""^(["']?)socket\1[ \t]*:[ \t]*(.*)$""", re.MULTILINE)
_UNSET = re.compile(r"(null|~|)[ \t\r]*(#.*)?", re.IGNORECASE)
_TEXT = re.compile(r"""(["']?)([^"'#]+?)\1[ \t\r]*(?:#.*)?""")


def configured_socket() -> str | None:
    """The socket of the configuration file; None where it names none.

    The file is read as YAML only where it names one: most name none, and commands must start at
    once. If the file has a mistake, it is named on standard error, and its line on the socket
    counts.
    """
    if SOCKET_VARIABLE in os.environ:
        return None
    named_file = os.environ.get("MNEMOSYNE_CONFIG")
    file = Path(named_file) if named_file else config_dir() / "mnemosyned.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        _remark(f"{file} cannot be read: {error}")
        return None
    line = _LINE.search(text)
    if line is None or _UNSET.fullmatch(line[2]):
        return None
    # Loaded here: most files name no socket.
    from mnemosyned.config import load_config  # noqa: PLC0415

    try:
        named = load_config(file, environ={}).socket
    except ConfigInvalid as error:
        _remark(error.message)
        value = _TEXT.fullmatch(line[2])
        named = value[2] if value else None
    return os.path.expanduser(named) if named else None  # noqa: PTH111 no such user: as it is


def _remark(problem: str) -> None:
    say(f"mnem: a mistake in the settings was ignored: {problem}", err=True)
