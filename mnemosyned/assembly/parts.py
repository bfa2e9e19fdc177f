"""Builds the parts of a memory over its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned.assembly.stores import OwnedStore, OwnedStores
from mnemosyned.config import DatabaseLocation, EmbeddingConfig
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Embedder
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.vectors import MemoryVectors, VectorStore
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
    from mnemosyned.vectors.owned import OwnerVectors
    from mnemosyned.vectors.shared import SharedVectors

EMBEDDER_TURNS = 4
"""A thread waits for so many calls of others at most, each as long as it may be."""


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
    embedder: Embedder | None = None
    """The embedding model, where one is configured."""
    guard: ClockGuard | None = None
    """Judges the clock for what cannot be undone; None where it is always believed."""

    def replace_turns(self, turns: ModelTurns | None) -> None:
        """Put other language models in force; those that are asked still end with their answer."""
        former, self.turns = self.turns, turns
        if former:
            former.close()

    def close(self) -> None:
        """End what runs for the language models."""
        self.replace_turns(None)


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
    vectors: MemoryVectors | None = None,
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


def make_embedder(embedding: EmbeddingConfig, *, is_shared: bool) -> Embedder | None:
    """Build the embedding model where one is configured; `is_shared`: several threads ask it."""
    if not embedding.model_path:
        return None
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.models.embedder import LlamaEmbedder  # noqa: PLC0415
    from mnemosyned.models.llama import LlamaOptions  # noqa: PLC0415
    from mnemosyned.models.shared_embedder import SharedEmbedder  # noqa: PLC0415

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
    if not is_shared:
        return embedder
    return SharedEmbedder(embedder, wait_s=EMBEDDER_TURNS * embedding.time_limit_s)


def make_vectors(
    embedding: EmbeddingConfig, store: VectorStore, embedder: Embedder | None
) -> Vectors | None:
    """Build the vector index where there is an embedding model; None elsewhere."""
    if embedder is None:
        return None
    # Loaded here: without a model the start need not wait for it.
    from mnemosyned.vectors.indexer import Vectors  # noqa: PLC0415

    return Vectors(
        store=store,
        embedder=embedder,
        wait_s=embedding.wait_ms / 1_000,
        similarity_min=embedding.similarity_min,
        rows_max=embedding.rows_max,
    )


def make_shared_vectors(
    stores: OwnedStores, embedder: Embedder | None
) -> SharedVectors | None:
    """Build what embeds the memories of many owners; None without an embedding model."""
    if embedder is None:
        return None
    # Loaded here: without a model the start need not wait for it.
    from mnemosyned.vectors.shared import OwnersWithVectors, SharedVectors  # noqa: PLC0415

    def lacking(identity: str, after: int, limit: int) -> Sequence[int]:
        first = max(after, LOCAL_OWNER)  # which has an index of its own
        return stores.owners.lacking_vectors(identity, after=first, limit=limit)

    owners = OwnersWithVectors(
        store=lambda owner: stores.store(owner).vectors, lacking=lacking
    )
    return SharedVectors(owners=owners, embedder=embedder)


def make_owner_vectors(
    owner: int,
    store: OwnedStore,
    shared: SharedVectors | None,
    embedding: EmbeddingConfig,
) -> OwnerVectors | None:
    """Build one owner's share of the embedding model; None where there is none."""
    if shared is None:
        return None
    # Loaded here, as above.
    from mnemosyned.vectors.owned import OwnerVectors  # noqa: PLC0415

    return OwnerVectors(
        owner,
        store.vectors,
        shared,
        wait_s=embedding.wait_ms / 1_000,
        similarity_min=embedding.similarity_min,
    )


def make_service(parts: ServiceParts) -> MemoryService:
    """Build the verbs over the parts; cycles and verbs tell their events to one bus."""
    cycle = parts.sleeper.cycle
    events = EventBus(clock=cycle.clock)
    cycle.observer = events
    return MemoryService(parts, events=events)
