"""A service over a store, put together as `open_memory` does, without background threads."""

from datetime import UTC

from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.service.backups import BackupKeeper
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.service.service import MemoryService, ServiceParts
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.storage.sqlite import SqliteStore


def about(store: SqliteStore) -> About:
    return About(
        version="0",
        database=str(getattr(store, "database", "a server")),
        file=getattr(store, "database", None),
        schema_version=store.schema_version,
    )


def make_keeper(
    store: SqliteStore, cycle: SleepCycle, policies: PolicyHolder
) -> BackupKeeper:
    return BackupKeeper(
        store=store.maintenance,
        policies=policies,
        about=about(store),
        clock=cycle.clock,
        lease=cycle.lease,
    )


def make_service(
    store: SqliteStore,
    cycle: SleepCycle,
    retention: RetentionService,
    policies: PolicyHolder,
    *,
    vectors: VectorIndexer | None = None,
    in_background: bool = False,
) -> MemoryService:
    """A service; with `in_background` its schedule starts with its `sleeper`."""
    sleeper = Sleeper(
        store=store,
        cycle=cycle,
        zone=UTC,
        after_cycle=retention.after_cycle,
        in_background=in_background,
    )
    parts = ServiceParts(
        store=store,
        sleeper=sleeper,
        retention=retention,
        policies=policies,
        about=about(store),
        keeper=make_keeper(store, cycle, policies),
        vectors=vectors,
    )
    return MemoryService(parts)
