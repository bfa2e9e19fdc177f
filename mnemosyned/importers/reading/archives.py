"""Members of zip files, within limits."""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

SIGNATURE = b"PK\x03\x04"
MEMBERS_MAX = 100_000
BYTES_MAX = 16 << 30
"""The largest member, unpacked."""
RATIO_MAX = 300
"""Bytes unpacked of one packed; conversations have 3 to 20, and a bomb has 1,000."""
RATIO_FROM_BYTES = 64 << 20
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
"""What broken, cut off and encrypted archives raise, at their opening and while they are read."""


class ArchiveRefused(Exception):
    """The archive is broken, or unpacks to more than any of its kind."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive."""

    name: str
    size: int
    packed: int


def members_of(path: Path, names: re.Pattern[str]) -> list[Member]:
    """Return the members whose name without folders matches, by name. Raises `ArchiveRefused`."""
    try:
        with zipfile.ZipFile(path) as archive:
            listed = archive.infolist()
    except ARCHIVE_ERRORS as error:
        raise _refused(error) from error
    if len(listed) > MEMBERS_MAX:
        raise ArchiveRefused(f"the archive has more than {MEMBERS_MAX:,} members")
    return sorted(
        (
            Member(each.filename, each.file_size, each.compress_size)
            for each in listed
            if names.fullmatch(each.filename.rpartition("/")[2])
        ),
        key=lambda member: member.name,
    )


@contextmanager
def open_member(path: Path, member: Member) -> Iterator[BinaryIO]:
    """Open a member. Raises `ArchiveRefused`, also where its content turns out to be broken."""
    largest = max(RATIO_FROM_BYTES, RATIO_MAX * max(member.packed, 1))
    if member.size > min(largest, BYTES_MAX):
        raise ArchiveRefused(
            f"{member.name} unpacks from {member.packed:,} to {member.size:,} bytes, "
            "which no export does"
        )
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(member.name) as stream,
        ):
            yield cast("BinaryIO", stream)
    except ARCHIVE_ERRORS as error:
        raise _refused(error) from error


def _refused(error: Exception) -> ArchiveRefused:
    reason = str(error) or type(error).__name__
    return ArchiveRefused(f"the archive cannot be read: {reason}")
