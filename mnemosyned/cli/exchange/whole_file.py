"""Private files that take their name when they are whole, and nothing that is no file replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mnemosyned.domain.errors import InvalidRequest

PRIVATE = 0o600
PARTIAL = ".partial"


def check_target(path: Path, *, force: bool) -> None:
    """Refuse to replace what is no file, and a file unless forced. Raises `InvalidRequest`."""
    if not path.exists():
        return
    if not path.is_file():
        raise InvalidRequest(
            f"{path} is not a regular file; name another one, or redirect standard output",
            field="file",
        )
    if not force:
        raise InvalidRequest(f"{path} exists; --force replaces it", field="file")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file next to the path, which takes its name once the block is done."""
    target = path.resolve()
    partial = target.with_name(target.name + PARTIAL)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(partial, flags, PRIVATE)
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be written: {error.strerror}", field="file"
        ) from error
    try:
        with os.fdopen(descriptor, "wb", 1 << 20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
