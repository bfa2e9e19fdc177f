"""The verb `watch`: folders whose files the daemon follows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.verbs.request import Request

R = TypeVar("R")

PATHS_MAX = 100
Paths = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=4_096)]],
    Meta(max_length=PATHS_MAX),
]


class WatchedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that is followed."""

    path: str
    added_by: Literal["command", "settings"]
    files: int = 0
    """Files that have a format that is followed."""
    stored: int = 0
    """Memories stored of them so far."""
    read_at: datetime | None = None
    """When one of them was last read."""
    problem: str = ""
    """Why it is not followed, or not by its events; empty if all is well."""


class Watching(msgspec.Struct, frozen=True):
    """The folders that are followed."""

    folders: list[WatchedFolder]
    waiting: int = 0
    """Files that are still to be read."""

    def __iter__(self) -> Iterator[WatchedFolder]:
        return iter(self.folders)

    def __len__(self) -> int:
        return len(self.folders)


class _Watched(Request[R], frozen=True, forbid_unknown_fields=True):
    paths: Annotated[
        Paths, Meta(description="absolute paths of folders or files to follow")
    ] = msgspec.field(default_factory=list)


class Watch(_Watched[Watching], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Follow folders, and list those that are followed.

    What is added to transcripts of agents' tools, notes in Markdown, JSON lines and shell histories in them
    is remembered. An edited note takes the place of its earlier version. Only over the Unix socket.

    Raises `InvalidRequest`, `InvalidText` and `NotFound`.
    """

    writes = True
    local_only = True

    remove: Annotated[
        bool, Meta(description="stop following these; their memories stay")
    ] = False
