"""A memory moved from a file to a server, or back: both stores opened, moved, compared and asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from mnemosyned.assembly.stores import OpenStore, open_store_of
from mnemosyned.config import Config, DatabaseLocation
from mnemosyned.config.location import is_server
from mnemosyned.domain.errors import (
    DatabaseInUse,
    InvalidRequest,
    PartlyDone,
    StorageFailed,
)
from mnemosyned.domain.ports.servers.owners import LOCAL_NAME
from mnemosyned.maintenance.daemon_process import (
    configured_daemon,
    database_of,
    running_daemon,
)
from mnemosyned.paths import DATABASE_PATH_BYTES_MAX, DATABASE_SUFFIX, usable_path
from mnemosyned.service.exchange.move import (
    Advance,
    Compared,
    Delivered,
    Moving,
    size_of,
)
from mnemosyned.service.exchange.same_answers import Answers, compare_answers

LEFT_OUT = (
    "what waits to be purged of the old database, as that concerns its own pages alone"
)
Watched = Callable[[str, int], AbstractContextManager[Advance]]
"""Shows the progress of a step out of so many memories and summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move that was done."""

    source: DatabaseLocation
    target: DatabaseLocation
    delivered: Delivered
    compared: Compared
    answers: Answers
    owner: str


def location_of(text: str, *, field: str | None = None) -> DatabaseLocation:
    """The place that an argument names. Raises `InvalidRequest`."""
    if is_server(text):
        return DatabaseLocation(url=text)
    path = usable_path(
        text,
        field=field,
        suffix=DATABASE_SUFFIX,
        bytes_max=DATABASE_PATH_BYTES_MAX,
    )
    return DatabaseLocation(path.absolute())


def move(
    source: DatabaseLocation,
    target: DatabaseLocation,
    *,
    config: Config,
    watched: Watched,
    owner: str = LOCAL_NAME,
) -> Move:
    """Bring all that the source keeps into the target, which is empty or was begun to be filled.

    `owner` is whose memory it is on the server. Raises `NotFound` where there is no such owner,
    `InvalidRequest`, `DatabaseInUse`, `ConfigInvalid`, `SleepInProgress`, `PartlyDone` and
    `StorageFailed`.
    """
    _check(source, target)
    for location in (source, target):
        _refuse_in_use(location, config, owner)
    with ExitStack() as stack:
        old = stack.enter_context(_opened(source, owner))
        size = size_of(old.archive.exchange)
        if size is None:
            raise InvalidRequest(f"{source} keeps nothing to move", field="from")
        new = stack.enter_context(_opened(target, owner))
        moving = Moving(old.archive.exchange, new.archive.exchange)
        with watched("moving", size) as advance:
            _deliver(moving, advance)
        with watched("comparing", size) as advance:
            compared = moving.compare(advance)
        answers = compare_answers(
            old.search, new.search, compared.sample, now=datetime.now(UTC)
        )
    return Move(
        source=source,
        target=target,
        delivered=moving.delivered,
        compared=compared,
        answers=answers,
        owner=owner,
    )


def _deliver(moving: Moving, advance: Advance) -> None:
    """Deliver all; a failure amid it says how to go on. Raises `PartlyDone`."""
    try:
        moving.deliver(advance)
    except StorageFailed as error:
        raise PartlyDone(
            f"{error.message}. What was moved stays: repeat the command to go on from there",
            reason=error.reason,
        ) from error


def _check(source: DatabaseLocation, target: DatabaseLocation) -> None:
    """Raise `InvalidRequest` for places between which nothing is moved."""
    if source.file and target.file:
        raise InvalidRequest(
            f"{source} and {target} are both files: `mnem backup` copies one into the other",
            field="to",
        )
    if source.url and target.url:
        raise InvalidRequest(
            f"{source} and {target} are both on a server: pg_dump and pg_restore copy a database",
            field="to",
        )
    if source.file and not source.file.is_file():
        raise InvalidRequest(f"there is no database {source}", field="from")
    if target.file and not target.file.parent.is_dir():
        raise InvalidRequest(f"there is no folder {target.file.parent}", field="to")


def _refuse_in_use(location: DatabaseLocation, config: Config, owner: str) -> None:
    """Raise `DatabaseInUse` while a process of this machine has a memory open.

    Daemons that serve many owners go on: what one of them stores meanwhile is noticed in the end.
    """
    process = None
    if location.file:
        process = running_daemon(location.file) if location.file.exists() else None
    elif owner == LOCAL_NAME and (daemon := configured_daemon(config)):
        process = daemon if database_of(daemon) == str(location) else None
    if process:
        raise DatabaseInUse(
            f"process {process.pid} has {location} open: stop it with `mnem stop`, so that "
            "nothing changes while it is moved"
        )


@contextmanager
def _opened(location: DatabaseLocation, owner: str) -> Iterator[OpenStore]:
    """Open a store in which no daemon consolidates meanwhile."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store_of(location, owner))
        stack.enter_context(store.sleep.claim())
        yield store
