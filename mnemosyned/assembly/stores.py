"""Opens the store that the settings name: in a file, or on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from mnemosyned.config import DatabaseLocation
from mnemosyned.domain.errors import ConfigInvalid
from mnemosyned.domain.ports.servers.owners import LOCAL_NAME, OwnerStore
from mnemosyned.domain.ports.servers.server import DatabaseServer
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.vectors import OwnedVectorStore, VectorStore
from mnemosyned.logs import logger
from mnemosyned.paths import shipped
from mnemosyned.version import install_command

log = logger()

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresStore


class OpenStore(MemoryStore, Protocol):
    """A store, with what assembly hands to others."""

    schema_version: int
    read_only: bool
    """Whether the server takes no writes, as a standby does."""

    @property
    def vectors(self) -> VectorStore:
        """Vectors of memories."""
        ...


@contextmanager
def open_store(
    location: DatabaseLocation, *, socket: Path | None = None, embeds: bool = False
) -> Iterator[OpenStore]:
    """Open the store and serve it while the block runs; `embeds`: vectors will be asked for.

    Raises `ConfigInvalid` where the driver is missing, `DatabaseInUse`, `SchemaTooNew` and
    `StorageFailed`.
    """
    if location.file is None:
        with _postgres(location.url, embeds=embeds) as store:
            if socket:  # a daemon says it once
                for exposure in server_exposures(location):
                    log.warning("database_exposed", reason=exposure)
            yield cast("OpenStore", store)
        return
    # Loaded here, as below: one engine is used.
    from mnemosyned.storage.sqlite import open_store as open_file  # noqa: PLC0415

    with open_file(
        location.file, migrations=shipped("migrations"), socket=socket
    ) as file:
        yield file


@contextmanager
def open_owners(location: DatabaseLocation) -> Iterator[OwnerStore]:
    """Open the owners of a database on a server while the block runs.

    Raises `ConfigInvalid` for a file, which has one owner, and what `open_store` raises.
    """
    if location.file is not None:
        raise ConfigInvalid(
            "a memory in a file has one owner; for many, set database to postgresql://…",
            field="database",
        )
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    with opening.open_owners(
        location.url, migrations=shipped("migrations") / "postgres"
    ) as owners:
        yield owners


class OwnedStore(MemoryStore, Protocol):
    """The memory of one of many owners."""

    @property
    def vectors(self) -> OwnedVectorStore:
        """Vectors of its memories."""
        ...


class OwnedStores(Protocol):
    """The memories of all owners of a database."""

    schema_version: int
    read_only: bool

    @property
    def owners(self) -> OwnerStore:
        """Who they belong to."""
        ...

    def store(self, owner: int) -> OwnedStore:
        """The memory of an owner; there is nothing to close."""
        ...


@contextmanager
def open_owned_stores(
    location: DatabaseLocation, *, embeds: bool = False, beside: OpenStore | None = None
) -> Iterator[OwnedStores]:
    """Open a database on a server for the memories of all its owners, while the block runs.

    `embeds`: vectors will be asked for. `beside` is an open store whose connections are used, too.

    Raises what `open_store` raises.
    """
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    with opening.open_owned_stores(
        location.url,
        migrations=shipped("migrations") / "postgres",
        embeds=embeds,
        beside=cast("PostgresStore | None", beside),
    ) as stores:
        yield cast("OwnedStores", stores)


@contextmanager
def open_store_of(
    location: DatabaseLocation, owner: str = LOCAL_NAME
) -> Iterator[OpenStore]:
    """Open the store of an owner, by name; a file has one owner and is opened as it is.

    Raises `NotFound`, and what `open_store` raises.
    """
    if owner == LOCAL_NAME or location.file is not None:
        with open_store(location) as store:
            yield store
        return
    with open_owned_stores(location) as stores:
        yield cast("OpenStore", stores.store(stores.owners.number(owner)))


def open_server(location: DatabaseLocation) -> DatabaseServer:
    """Return the database of a server as a whole.

    Raises `ConfigInvalid` for a file, and what `open_store` raises.
    """
    if location.file is not None:
        raise ConfigInvalid(
            f"{location} is a file, which is purged by every forget; these commands are for "
            "database: postgresql://…",
            field="database",
        )
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    return opening.open_server(
        location.url, migrations=shipped("migrations") / "postgres"
    )


def server_exposures(location: DatabaseLocation) -> list[str]:
    """Name who may connect to a server's database, or read along, without need.

    Raises what `open_store` raises.
    """
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    return opening.exposures(location.url)


def refuses_writes(location: DatabaseLocation) -> bool:
    """Whether the server of a database answers, and takes no writes, as a standby does.

    Raises `ConfigInvalid` where no daemon could use it, and `StorageFailed`.
    """
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    return opening.refuses_writes(location.url)


@contextmanager
def _postgres(url: str, *, embeds: bool) -> Iterator[PostgresStore]:
    with _driver():
        from mnemosyned.storage.postgres import opening  # noqa: PLC0415 its driver is an extra
    with opening.open_store(
        url, migrations=shipped("migrations") / "postgres", embeds=embeds
    ) as store:
        yield store


@contextmanager
def _driver() -> Iterator[None]:
    """Say what to install where the driver is missing. Raises `ConfigInvalid`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise ConfigInvalid(
            f"a PostgreSQL database needs psycopg: {install_command('postgres')}",
            field="database",
        ) from error
