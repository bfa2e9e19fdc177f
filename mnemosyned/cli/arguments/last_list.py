"""The ids of the list that this terminal showed last, so that `3` can stand for its third entry.

A private file for each session of processes: what another terminal lists changes nothing here.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.paths import state_dir

IDS_MAX = 10_000
KEPT_S = 7 * 24 * 3600
"""Lists of terminals that have not listed anything for so long are deleted."""
_NUMBER = re.compile(r"[#@%]([0-9]{1,5})|([0-9]{1,3})")


def number_of(word: str) -> int | None:
    """The number in the last list that a word names: `#3`, `@3`, `%3` or `3`."""
    match = _NUMBER.fullmatch(word)
    return int(match[1] or match[2]) if match else None


def is_marked(word: str) -> bool:
    """Whether a word can only be a number of the last list."""
    return word[:1] in ("#", "@", "%")


def keep_list(ids: Sequence[str]) -> None:
    """Keep the ids of a list that was shown; a directory that takes no file is no failure.

    An id of several lines, which only a program gives, cannot be kept.
    """
    file = _file()
    ids = ["" if "\n" in id else id for id in ids]
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _delete_old(file.parent)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".list-")
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write("".join(f"{id}\n" for id in ids[:IDS_MAX]))
        Path(temporary).replace(file)


def id_in_last_list(number: int) -> str:
    """The id of an entry of the last list. Raises `InvalidRequest`."""
    try:
        ids = _file().read_text("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError):
        ids = []
    if not ids:
        raise InvalidRequest(
            f"there is no number {number}: this terminal has shown no list yet; "
            "mnem recall shows one, or give an id"
        )
    if not 1 <= number <= len(ids):
        raise InvalidRequest(
            f"there is no number {number}: the last list has the numbers 1 to {len(ids)}"
        )
    if not ids[number - 1]:
        raise InvalidRequest(f"entry {number} of the last list has no id")
    return ids[number - 1]


def _file() -> Path:
    return state_dir() / "lists" / f"session-{os.getsid(0)}"


def _delete_old(folder: Path) -> None:
    oldest = time.time() - KEPT_S
    for file in folder.iterdir():
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()
