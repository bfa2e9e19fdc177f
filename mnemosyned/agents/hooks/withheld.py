"""Texts that this machine's own settings keep from a memory on a server, which knows only its own settings.

Hooks and `mnem mcp` wait for this, so it reads the settings only where they set one of these.
"""

from __future__ import annotations

import os
import re
import time
import zlib

from mnemosyned import errors, socket_path
from mnemosyned.agents.hooks import spool
from mnemosyned.importers.projects import is_below

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


PREFIX = "MNEMOSYNE_HOOKS_"
"""Prefix of the environment variables of these settings."""
_SET = re.compile(
    rb"\\|\b(?:capture|tell|exclude)\b(?!:[ \t]+(?:true|\[\])[ \t]*(?:#|\r?$))",
    re.MULTILINE,
)
"""Text of a file that may set one of them to another value than its default."""
MARKS_KEPT_S = 366 * 86_400
"""Age from which the mark of a transcript is deleted: no tool continues the conversation."""
LINE_BYTES_MAX = 64 << 20


class OwnSettings:
    """The settings of hooks on this machine; no struct, as hooks cannot wait for its module."""

    def __init__(self, *, capture: bool, tell: bool, exclude: Sequence[str]) -> None:
        self.capture = capture
        self.tell = tell
        self.exclude = exclude


def own_settings() -> OwnSettings | None:
    """Return the settings of hooks on this machine, or None for the defaults. Raises `ConfigInvalid`."""
    named = os.environ.get(socket_path.CONFIG_VARIABLE)
    file = named or socket_path.config_path("mnemosyned.yaml")
    by_variable = any(name.startswith(PREFIX) for name in os.environ)
    is_set = by_variable
    state: list[object] = []
    try:
        with open(file, "rb") as opened:
            status = os.fstat(opened.fileno())
            content = opened.read()
        state = [file, status.st_ino, status.st_size, status.st_mtime_ns]
        is_set |= bool(_SET.search(content)) or b"\0" in content
    except FileNotFoundError:
        is_set |= bool(named)
    except OSError:
        is_set = True
    if not is_set:
        return None
    # Loaded here: few people set one of these.
    import json  # noqa: PLC0415

    copy = os.path.join(_folder(), "settings")
    try:
        with open(copy, "rb") as opened:
            known = json.load(opened)
        if state and not by_variable and known["of"] == state:
            return OwnSettings(**known["settings"])
    except (OSError, ValueError, LookupError, TypeError):  # of none, or another version
        pass
    # Loaded here: it takes longer than all else of a hook, and so its result is kept.
    from pathlib import Path  # noqa: PLC0415

    from mnemosyned.config.loading import load_config  # noqa: PLC0415

    hooks = load_config(Path(file) if state or named else None).hooks
    fields = {name: getattr(hooks, name) for name in ("capture", "tell", "exclude")}
    try:
        if not by_variable:
            _write(copy, json.dumps({"of": state, "settings": fields}))
    except OSError:  # the next hook reads them again
        pass
    return OwnSettings(**fields)


def describe_own_settings() -> str:
    """Return in words what this machine's settings keep from memory or from agents; empty for nothing.

    A mistake in the settings is described, too.
    """
    try:
        settings = own_settings()
    except errors.ConfigInvalid as error:
        return error.message
    if settings is None:
        return ""
    excluded = ", ".join(settings.exclude)
    parts = (
        "" if settings.capture else "nothing is captured (hooks.capture)",
        "" if settings.tell else "agents are given nothing (hooks.tell)",
        excluded and f"nothing of {excluded} (hooks.exclude)",
    )
    return "; ".join(filter(None, parts))


def describe_silence(directory: str) -> str:
    """Return in words why agents in a directory are given nothing; empty if they are.

    Raises `ConfigInvalid`.
    """
    settings = own_settings()
    if settings is None or (settings.tell and not is_excluded(settings, [directory])):
        return ""
    reason = "hooks.exclude has this folder" if settings.tell else "hooks.tell is off"
    return f"agents are given nothing of this here: {reason}"


def is_excluded(settings: OwnSettings | None, directories: Iterable[str]) -> bool:
    """Return whether one of these directories is in a folder that the settings exclude."""
    return settings is not None and any(
        is_below(directory, settings.exclude) for directory in directories
    )


def withhold(path: str, part: Mapping[str, object] | None) -> None:
    """Mark the present content of a transcript as never to be sent, whatever the settings are later.

    `part` has its `file`, device and inode, and its `size`; None for no transcript. Raises `OSError`.
    """
    if part is None:
        return
    mark = _mark_of(path)
    folder = os.path.dirname(mark)
    socket_path.make_private_folder(folder)
    if not os.path.exists(mark):
        for entry in os.scandir(folder):
            if time.time() - entry.stat().st_mtime > MARKS_KEPT_S:
                os.unlink(entry)
    _write(mark, f"{part['file']} {part['size']}")


def find_sendable(
    path: str, part: Mapping[str, object], wanted: int
) -> tuple[int | None, float]:
    """Return the first byte from `wanted` on that may be sent, and the time of the last `withhold`.

    The byte begins a line; None if no line begins after the withheld content. The time is in seconds since
    1970, 0 for never; a tool may write a message once more that it had written before. `part` is as for
    `withhold`.
    """
    try:
        with open(_mark_of(path), encoding="utf-8") as file:
            name, _, size = file.read().partition(" ")
            withheld_at = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return wanted, 0.0
    is_there = name == part["file"] and wanted < int(size) <= int(str(part["size"]))
    if not is_there or path.endswith(".json"):
        return wanted, withheld_at
    with open(path, "rb") as transcript:
        transcript.seek(int(size) - 1)
        line = transcript.readline(LINE_BYTES_MAX)
    begin = int(size) - 1 + len(line)
    return (begin if line.endswith(b"\n") else None), withheld_at


def _mark_of(path: str) -> str:
    """Return the path of the file that marks a transcript as withheld."""
    stem = "".join(filter(str.isalnum, os.path.basename(path)))[-60:]
    crc = zlib.crc32(path.encode("utf-8", "replace"))
    return os.path.join(_folder(), f"{stem}-{crc:08x}")


def _folder() -> str:
    """Return the path of the folder with the marks of withheld transcripts and the last settings read."""
    return os.path.join(os.path.dirname(spool.folder()), "withheld")


def _write(path: str, content: str) -> None:
    """Write a file in the folder of marks, whole or not at all. Raises `OSError`."""
    socket_path.make_private_folder(os.path.dirname(path))
    temporary = f"{path}{spool.TEMPORARY}{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(content)
    os.rename(temporary, path)
