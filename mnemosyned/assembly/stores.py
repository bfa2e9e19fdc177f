"""Opens the store that the settings name, in a file or on a server, and builds the summarizer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mnemosyned import errors, fairness, paths
from mnemosyned.config.loading import API_KEY_VARIABLE
from mnemosyned.config.settings import NO_MODEL, Config, DatabaseLocation, LlmConfig
from mnemosyned.logs import logger
from mnemosyned.memory import engine_ports, ports
from mnemosyned.memory.clock import Clock
from mnemosyned.models.parallel import ParallelSummarizer
from mnemosyned.verbs.times import local_zone
from mnemosyned.version import install_command

if TYPE_CHECKING:
    from mnemosyned.fairness import OwnerAllowance
    from mnemosyned.models.sharing import ModelTurns
    from mnemosyned.service.audit import AuditLog
    from mnemosyned.storage.postgres.audit import AuditTable
    from mnemosyned.storage.postgres.owners import PostgresOwners
    from mnemosyned.storage.postgres.store import (
        OwnedStores,
        PostgresServer,
        PostgresStore,
    )


log = logger()


@contextmanager
def _require_driver() -> Iterator[None]:
    """Return a context manager or decorator that raises `ConfigInvalid` without PostgreSQL's driver."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise errors.ConfigInvalid(
            f"a PostgreSQL database needs psycopg: {install_command('postgres')}",
            field="database",
        ) from error


def _postgres_migrations() -> Path:
    """Return the folder with the migrations of PostgreSQL's schema."""
    return paths.shipped("migrations") / "postgres"


@contextmanager
def open_store(
    location: DatabaseLocation, *, socket: Path | None = None, embeds: bool = False
) -> Iterator[ports.MemoryStore]:
    """Return a context manager that opens a memory's database and gives its store.

    `embeds` creates tables for vectors on a server. `socket`, on which this process will serve, is
    written into a file's lock for other processes. Raises `ConfigInvalid` without the driver,
    `DatabaseInUse`, `SchemaTooNew` and `StorageFailed`.
    """
    if location.file is None:
        with _require_driver():
            from mnemosyned.storage.postgres import store as postgres  # noqa: PLC0415 an extra
        with postgres.open_store(
            location.url, migrations=_postgres_migrations(), embeds=embeds
        ) as store:
            if socket:  # a daemon says it once
                for exposure in find_server_exposures(location):
                    log.warning("database_exposed", reason=exposure)
            yield store
        return
    from mnemosyned.storage.sqlite.store import open_store as open_file  # noqa: PLC0415 one engine is used

    with open_file(
        location.file, migrations=paths.shipped("migrations"), socket=socket
    ) as file:
        yield file


@_require_driver()
def open_owners(location: DatabaseLocation) -> AbstractContextManager[PostgresOwners]:
    """Open the table of owners and tokens as a context manager. Raises `ConfigInvalid` and `StorageFailed`."""
    if location.file is not None:
        raise errors.ConfigInvalid(
            "a memory in a file has one owner; for many, set database to postgresql://…",
            field="database",
        )
    from mnemosyned.storage.postgres import store as postgres  # noqa: PLC0415 an extra

    return postgres.open_owners(location.url, migrations=_postgres_migrations())


@_require_driver()
def open_owned_stores(
    location: DatabaseLocation,
    *,
    embeds: bool = False,
    beside: ports.MemoryStore | None = None,
) -> AbstractContextManager[OwnedStores]:
    """Return a context manager that opens the stores of all owners on a database server.

    `embeds` creates tables for vectors; `beside` is an open store of the same database, whose
    connections are used too. Raises `ConfigInvalid`, `SchemaTooNew` and `StorageFailed`.
    """
    from mnemosyned.storage.postgres import store as postgres  # noqa: PLC0415 an extra

    return postgres.open_owned_stores(
        location.url,
        migrations=_postgres_migrations(),
        embeds=embeds,
        beside=cast("PostgresStore | None", beside),
    )


@_require_driver()
def open_audit_table(location: DatabaseLocation) -> AuditTable:
    """Return the audit log's table, a context manager. Raises `ConfigInvalid` for a database file."""
    if location.file is not None:
        raise errors.ConfigInvalid(
            "the audit log is kept in a database on a server; a memory in a file has one owner",
            field="database",
        )
    from mnemosyned.storage.postgres.audit import AuditTable  # noqa: PLC0415 an extra

    return AuditTable(location.url)


@contextmanager
def open_audit(config: Config, *, user: str = "") -> Iterator[AuditLog | None]:
    """Return a context manager that opens the audit log for writing; None if it is turned off.

    By default, the log is on for a command by `user`, and in a daemon that serves owners. Raises
    `ConfigInvalid`, and `StorageFailed` if the database was restored from a backup and memories
    forgotten since then are not deleted again yet.
    """
    is_on = config.audit.table
    if not (config.owners.serve or bool(user) if is_on is None else is_on):
        yield None
        return
    from mnemosyned.service import audit  # noqa: PLC0415 most daemons keep none

    file = config.audit_file
    if user:
        audit.REQUESTER.set(audit.Requester(name=user, via="command"))
    with (
        open_audit_table(config.location) as table,
        audit.AuditLog(
            table, audit.AuditFile(file) if file else None, strict=config.audit.strict
        ) as opened,
    ):
        yield opened


@contextmanager
def open_store_of(
    location: DatabaseLocation, owner: str = engine_ports.LOCAL_NAME
) -> Iterator[ports.MemoryStore]:
    """Return a context manager that opens the memory of the owner with this name.

    A file has only one owner, whatever the name. Raises `NotFound`, `ConfigInvalid`,
    `DatabaseInUse`, `SchemaTooNew` and `StorageFailed`.
    """
    if owner == engine_ports.LOCAL_NAME or location.file is not None:
        with open_store(location) as store:
            yield store
        return
    with open_owned_stores(location) as stores:
        yield stores.store(stores.owners.number(owner))


@_require_driver()
def open_server(location: DatabaseLocation) -> PostgresServer:
    """Return the database server for commands on all owners. Raises `ConfigInvalid`, `StorageFailed`."""
    if location.file is not None:
        raise errors.ConfigInvalid(
            f"{location} is a file, which is purged by every forget; these commands are for "
            "database: postgresql://…",
            field="database",
        )
    from mnemosyned.storage.postgres import store as postgres  # noqa: PLC0415 an extra

    return postgres.PostgresServer(location.url, _postgres_migrations())


@_require_driver()
def find_server_exposures(location: DatabaseLocation) -> list[str]:
    """Return texts on how others could log in or read along. Raises `ConfigInvalid` and `StorageFailed`."""
    from mnemosyned.storage.postgres import health  # noqa: PLC0415 an extra

    return health.exposures(location.url)


@_require_driver()
def refuses_writes(location: DatabaseLocation) -> bool:
    """Return True if a server is read-only, as a standby is. Raises `ConfigInvalid`, `StorageFailed`."""
    from mnemosyned.storage.postgres import connections, health  # noqa: PLC0415 an extra

    with connections.explaining_failures("nothing was looked at"):
        return health.check_server(location.url)


def make_summarizer(
    config: Config,
    clock: Clock,
    gate: fairness.ForegroundGate | None = None,
    *,
    model: engine_ports.TextModel | None = None,
) -> engine_ports.Summarizer:
    """Return the summarizer of the settings: extractive, or a model with an extractive fallback.

    It yields to the requests that `gate` counts. `model`, if given, is used in place of the configured
    model. Raises `ConfigInvalid`.
    """
    ratio, gate = config.sleep.summary_ratio, gate or fairness.ForegroundGate()
    rules = ParallelSummarizer(ratio=ratio, is_serving=lambda: gate.active)
    model = model or _language_model(config.llm)
    if model is None:
        return rules
    from mnemosyned.models.fallback import FallbackSummarizer  # noqa: PLC0415 only with a model
    from mnemosyned.models.summarizer import ModelSummarizer  # noqa: PLC0415 only with a model

    primary = ModelSummarizer(
        model=model,
        ratio=ratio,
        find_zone=local_zone,  # its owner's "yesterday" is a day of the owner's calendar
        max_tokens=config.llm.max_tokens,
    )
    return FallbackSummarizer(
        primary=primary,
        model=model,
        fallback=rules,
        clock=clock,
        cycle_budget_s=config.llm.cycle_budget_s,
    )


def owner_model(
    turns: ModelTurns | None, owner: int, *, allowance: OwnerAllowance | None = None
) -> engine_ports.TextModel | None:
    """Return a model that waits for the owner's turn, within an `allowance`; None without `turns`."""
    if turns is None:
        return None
    from mnemosyned.models.sharing import OwnerModel  # noqa: PLC0415 one owner shares none

    return OwnerModel(turns, owner, allowance=allowance)


def make_model_turns(config: Config) -> ModelTurns | None:
    """Build the queue for models that owners share; None without owners or a model. Raises `ConfigInvalid`."""
    llm = config.llm
    model = _language_model(llm) if config.owners.serve else None
    if model is None:
        return None
    from mnemosyned.models.sharing import ModelTurns  # noqa: PLC0415 one owner shares none

    models = [model]
    # A model of this machine takes its memory once more for each; an endpoint has room of its own.
    further = llm.concurrency - 1 if llm.endpoint else 0
    models += filter(None, (_language_model(llm) for _ in range(further)))
    return ModelTurns(models, wait_s=llm.cycle_budget_s)


def _language_model(llm: LlmConfig) -> engine_ports.TextModel | None:
    """Build the language model of the settings, None without one. Raises `ConfigInvalid`."""
    # Loaded here: a start needs one of them, or none.
    if llm.endpoint:
        from mnemosyned.models.endpoint import EndpointModel, read_api_key  # noqa: PLC0415 see above

        return EndpointModel(
            endpoint=llm.endpoint,
            model=llm.endpoint_model,
            context_tokens=llm.context_tokens,
            time_limit_s=llm.time_limit_s,
            local_only=llm.local_only,
            key=read_api_key(
                llm.api_key_file, variable=os.environ.get(API_KEY_VARIABLE)
            ),
        )
    if llm.model_path and llm.model_path != NO_MODEL:
        from mnemosyned.models.llama import LlamaModel  # noqa: PLC0415 see above

        return LlamaModel(model_path=Path(llm.model_path).expanduser(), settings=llm)
    return None
