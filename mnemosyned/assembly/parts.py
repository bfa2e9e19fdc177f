"""Builds the parts of a memory over its store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned.config import DatabaseLocation, EmbeddingConfig
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.vectors import VectorStore
from mnemosyned.service.backups.keeper import BackupKeeper
from mnemosyned.service.clock_guard import ClockGuard
from mnemosyned.service.events import EventBus
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.parts import ServiceParts
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import Sleeper, SleepHost, Upkeep
from mnemosyned.sleep.throttle import ForegroundGate
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.models.turns import ModelTurns
    from mnemosyned.vectors.indexer import Vectors


@dataclass(slots=True, kw_only=True)
class SharedParts:
    """Parts that the memories of one process have in common."""

    policies: PolicyHolder
    gate: ForegroundGate
    clock: Clock
    age_clock: Clock
    """The clock by which memories age."""
    turns: ModelTurns | None = None
    """Language models, where owners share them."""
    guard: ClockGuard | None = None
    """Judges the clock for what cannot be undone; None where it is always believed."""


def make_cycle(
    store: MemoryStore,
    lease: SummarizerLease,
    shared: SharedParts,
    gate: ForegroundGate | None = None,
) -> SleepCycle:
    """Build the sleep cycle; `gate` counts the requests that it yields to."""
    return SleepCycle(
        store=store,
        lease=lease,
        clock=shared.clock,
        policies=shared.policies,
        age_clock=shared.age_clock,
        gate=gate or shared.gate,
    )


def make_retention(
    cycle: SleepCycle,
    store: MemoryStore,
    shared: SharedParts,
    about: About,
    *,
    vectors: Vectors | None = None,
    purge_soon: Callable[[], None] | None = None,
) -> RetentionService:
    """Build what forgets and prunes; the vector index follows it."""
    retention = RetentionService(
        store=store,
        cycle=cycle,
        policies=shared.policies,
        about=about,
        guard=shared.guard,
        purge_soon=purge_soon,
    )
    if vectors:
        retention.on_removal = vectors.forgot
        retention.grace.on_put_back = vectors.reworded
    return retention


def make_keeper(
    store: MemoryStore, cycle: SleepCycle, policies: PolicyHolder, about: About
) -> BackupKeeper:
    """Build what makes backups."""
    return BackupKeeper(
        store=store.maintenance,
        policies=policies,
        about=about,
        clock=cycle.clock,
        lease=cycle.lease,
    )


def make_sleeper(
    store: MemoryStore,
    cycle: SleepCycle,
    retention: RetentionService,
    keeper: BackupKeeper,
    about: About,
    *,
    host: SleepHost | None = None,
) -> Sleeper:
    """Build what runs cycles, and after them what is due; `host` starts them for it."""
    return Sleeper(
        store=store,
        cycle=cycle,
        zone=get_localzone(),
        upkeep=Upkeep(
            after_cycle=retention.after_cycle, chores=(keeper.run_scheduled,)
        ),
        in_background=about.in_background and host is None,
        host=host,
    )


def make_about(
    location: DatabaseLocation, schema: int, *, in_background: bool
) -> About:
    """Describe the open memory, for `status`."""
    return About(
        version=__version__,
        database=str(location),
        file=location.file,
        schema_version=schema,
        in_background=in_background,
    )


def about_shared(schema: int) -> About:
    """Describe a memory on a server that others share: where that is, its owner need not know."""
    return About(
        version=__version__,
        database="postgresql",
        file=None,
        schema_version=schema,
        in_background=True,
        is_shared=True,
    )


def make_vectors(embedding: EmbeddingConfig, store: VectorStore) -> Vectors | None:
    """Build the vector index where an embedding model is configured; None elsewhere."""
    if not embedding.model_path:
        return None
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.models.embedder import LlamaEmbedder  # noqa: PLC0415
    from mnemosyned.models.llama import LlamaOptions  # noqa: PLC0415
    from mnemosyned.vectors.indexer import Vectors  # noqa: PLC0415

    embedder = LlamaEmbedder(
        model_path=Path(embedding.model_path).expanduser(),
        options=LlamaOptions(
            threads=embedding.threads,
            nice=embedding.nice,
            time_limit_s=embedding.time_limit_s,
            idle_s=embedding.idle_s,
        ),
        query_prefix=embedding.query_prefix,
        memory_prefix=embedding.memory_prefix,
    )
    return Vectors(
        store=store,
        embedder=embedder,
        wait_s=embedding.wait_ms / 1_000,
        similarity_min=embedding.similarity_min,
        rows_max=embedding.rows_max,
    )


def make_service(parts: ServiceParts) -> MemoryService:
    """Build the verbs over the parts; cycles and verbs tell their events to one bus."""
    cycle = parts.sleeper.cycle
    events = EventBus(clock=cycle.clock)
    cycle.observer = events
    return MemoryService(parts, events=events)
