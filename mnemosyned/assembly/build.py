"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned.assembly.policies import make_policies
from mnemosyned.assembly.stores import open_store
from mnemosyned.config import (
    API_KEY_VARIABLE,
    NO_MODEL,
    Config,
    DatabaseLocation,
    EmbeddingConfig,
    LlmConfig,
    changed_keys,
    needs_restart,
)
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer, TextModel
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.domain.ports.vectors import VectorStore
from mnemosyned.logs import logger
from mnemosyned.service.backups.keeper import BackupKeeper
from mnemosyned.service.clock_guard import ClockGuard
from mnemosyned.service.events import EventBus
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.parts import ServiceParts
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.service.service import MemoryService, SystemClock
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.host import JumpTolerantClock
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.throttle import ForegroundGate
from mnemosyned.summarizers.parallel import ParallelSummarizer
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.assembly.watching import WatcherHost
    from mnemosyned.hooks.service import HookService
    from mnemosyned.vectors.indexer import Vectors

CACHE_BYTES_MAX = 12_000_000
"""A little less than one busy connection would fill. Under load all five filled theirs: 48 MB."""

log = logger()


@dataclass(slots=True)
class OpenMemory:
    """The parts in force while a memory is open."""

    service: MemoryService
    sleeper: Sleeper
    retention: RetentionService
    policies: PolicyHolder
    agents: AgentStore
    config: Config
    """The settings as they were read last."""
    started_with: Config
    hooks: HookService | None = None
    """The hooks of agents' tools; only where a socket is served."""
    watcher: WatcherHost | None = None
    """Follows folders; only where a socket is served."""

    def reconfigure(self, config: Config) -> None:
        """Apply the settings that need no restart. Raises `ConfigInvalid`."""
        cycle = self.sleeper.cycle
        summarizer = None
        if self._needs_summarizer(config):
            summarizer = make_summarizer(config, cycle.clock, cycle.gate)
        self.policies.current = make_policies(config, summarizer or cycle.lease.current)
        self.sleeper.reschedule()
        if self.watcher:
            self.watcher.reconfigure(config)
        if summarizer:
            cycle.lease.replace(summarizer)
        changed = changed_keys(self.started_with, config)
        self.policies.restart_needed = tuple(filter(needs_restart, changed))
        self.config = config

    def _needs_summarizer(self, config: Config) -> bool:
        """Return whether another summarizer is needed; a model that is loaded stays if possible."""
        if config.llm.api_key_file is not None:  # the key is read again
            return True
        return (config.llm, config.sleep.summary_ratio) != (
            self.config.llm,
            self.config.sleep.summary_ratio,
        )


@contextmanager
def open_memory(
    config: Config, *, clock: Clock | None = None, socket: Path | None = None
) -> Iterator[OpenMemory]:
    """Open the database and start the background threads; close all of it in the end.

    `socket` is where the caller will serve the verbs; without one the memory is embedded, and
    has background threads only with `auto_sleep`. Raises `ConfigInvalid`, `DatabaseInUse` and
    `SchemaTooNew`.
    """
    gate = ForegroundGate()
    lease = SummarizerLease(make_summarizer(config, clock or SystemClock(), gate))
    policies = PolicyHolder(make_policies(config, lease.current))
    location = config.location
    if socket and location.file:  # an embedding program sets its own limits
        _bound_caches()
    with open_store(location, socket=socket) as store, ExitStack() as stack:
        in_background = socket is not None or config.auto_sleep
        about = _make_about(location, store.schema_version, in_background=in_background)
        cycle = _make_cycle(store, lease, policies, gate, clock)
        stack.callback(lease.close)
        guard = None
        if clock is None:
            guard = stack.enter_context(
                ClockGuard(store=store.surroundings.clock, clock=cycle.clock)
            )
        vectors = _vectors(config.embedding, store.vectors)
        retention = _make_retention(
            store, cycle, policies, about, guard=guard, vectors=vectors
        )
        stack.enter_context(retention)
        if vectors:
            stack.enter_context(vectors)
        keeper = _make_keeper(store, cycle, policies, about)
        parts = ServiceParts(
            store=store,
            sleeper=_make_sleeper(store, cycle, retention, keeper, about),
            retention=retention,
            policies=policies,
            about=about,
            keeper=keeper,
            vectors=vectors,
        )
        memory = _make_memory(parts, config)
        stack.enter_context(memory.sleeper)
        if socket:
            _follow_outside(stack, memory, store, gate)
        yield memory


def _make_retention(
    store: MemoryStore,
    cycle: SleepCycle,
    policies: PolicyHolder,
    about: About,
    *,
    guard: ClockGuard | None,
    vectors: Vectors | None,
) -> RetentionService:
    """Build what forgets and prunes; the vector index follows it."""
    retention = RetentionService(
        store=store,
        cycle=cycle,
        policies=policies,
        about=about,
        guard=guard,
        on_removal=vectors.forgot if vectors else None,
    )
    if vectors:
        retention.grace.on_put_back = vectors.reworded
    return retention


def _make_keeper(
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


def _make_sleeper(
    store: MemoryStore,
    cycle: SleepCycle,
    retention: RetentionService,
    keeper: BackupKeeper,
    about: About,
) -> Sleeper:
    """Build what runs cycles, and after them what is due."""
    return Sleeper(
        store=store,
        cycle=cycle,
        zone=get_localzone(),
        after_cycle=retention.after_cycle,
        in_background=about.in_background,
        chores=[keeper.run_scheduled],
    )


def _make_memory(parts: ServiceParts, config: Config) -> OpenMemory:
    """Build the verbs over the parts; cycles and verbs tell their events to one bus."""
    cycle = parts.sleeper.cycle
    events = EventBus(clock=cycle.clock)
    cycle.observer = events
    return OpenMemory(
        service=MemoryService(parts, events=events),
        sleeper=parts.sleeper,
        retention=parts.retention,
        policies=parts.policies,
        agents=parts.store.surroundings.agents,
        config=config,
        started_with=config,
    )


def _follow_outside(
    stack: ExitStack, memory: OpenMemory, store: MemoryStore, gate: ForegroundGate
) -> None:
    """Start what serves agents' tools and follows folders, until the stack is closed."""
    clock = memory.sleeper.cycle.clock
    hooks = stack.enter_context(
        _make_hooks(memory.service, store, clock, memory.policies)
    )
    memory.hooks = hooks
    memory.watcher = stack.enter_context(
        _make_watcher(memory.service, store, hooks, gate, memory.config)
    )


def _make_hooks(
    service: MemoryService, store: MemoryStore, clock: Clock, policies: PolicyHolder
) -> HookService:
    """Build the service of agents' hooks."""
    # Loaded here: an embedded memory has no hooks.
    from mnemosyned.hooks.service import HookService  # noqa: PLC0415

    return HookService(
        service=service,
        agents=store.surroundings.agents,
        learnings=store.learnings,
        clock=clock,
        policies=policies,
    )


def _make_watcher(
    service: MemoryService,
    store: MemoryStore,
    hooks: HookService,
    gate: ForegroundGate,
    config: Config,
) -> WatcherHost:
    """Build the host of the watcher."""
    # Loaded here, as above.
    from mnemosyned.assembly.watching import WatcherHost  # noqa: PLC0415

    return WatcherHost(
        service=service, store=store, capture=hooks.capture, gate=gate, config=config
    )


def _bound_caches() -> None:
    """Bound the page caches of SQLite."""
    # Loaded here: on a server there are none.
    from mnemosyned.storage.sqlite import bound_caches  # noqa: PLC0415

    bound_caches(CACHE_BYTES_MAX)


def _make_about(
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


def _make_cycle(
    store: MemoryStore,
    lease: SummarizerLease,
    policies: PolicyHolder,
    gate: ForegroundGate,
    clock: Clock | None,
) -> SleepCycle:
    """Build the sleep cycle; a clock that tests move is believed."""
    wall = clock or SystemClock()
    aging = clock or JumpTolerantClock(wall, hold=policies.sleep.ttl / 2)
    return SleepCycle(
        store=store,
        lease=lease,
        clock=wall,
        policies=policies,
        age_clock=aging,
        gate=gate,
    )


def check_settings(config: Config) -> None:
    """Check settings by the rules of the parts that follow them. Raises `ConfigInvalid`."""
    _ = config.location, config.socket_path, config.tls_files, config.listen_address
    summarizer = make_summarizer(config, SystemClock())
    make_policies(config, summarizer)
    summarizer.close()


def make_summarizer(
    config: Config, clock: Clock, gate: ForegroundGate | None = None
) -> Summarizer:
    """The summarizer that is configured, which yields to requests. Raises `ConfigInvalid`."""
    # Its owner's "yesterday" is a day of the owner's calendar.
    ratio, zone = config.sleep.summary_ratio, get_localzone()
    gate = gate or ForegroundGate()
    rules = ParallelSummarizer(ratio=ratio, zone=zone, present=lambda: gate.active)
    model = _language_model(config.llm)
    if model is None:
        return rules
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.summarizers.fallback import FallbackSummarizer  # noqa: PLC0415
    from mnemosyned.summarizers.llm import ModelSummarizer  # noqa: PLC0415

    primary = ModelSummarizer(
        model=model, ratio=ratio, zone=zone, max_tokens=config.llm.max_tokens
    )
    return FallbackSummarizer(
        primary=primary,
        model=model,
        fallback=rules,
        clock=clock,
        cycle_budget_s=config.llm.cycle_budget_s,
    )


def _language_model(llm: LlmConfig) -> TextModel | None:
    """The model that is configured. Raises `ConfigInvalid` for one that must not be asked."""
    # Loaded here: a start needs one of them, or none.
    if llm.endpoint:
        from mnemosyned.models.endpoint import EndpointModel, api_key  # noqa: PLC0415

        return EndpointModel(
            endpoint=llm.endpoint,
            model=llm.endpoint_model,
            context_tokens=llm.context_tokens,
            time_limit_s=llm.time_limit_s,
            local_only=llm.local_only,
            key=api_key(llm.api_key_file, variable=os.environ.get(API_KEY_VARIABLE)),
        )
    if llm.model_path and llm.model_path != NO_MODEL:
        from mnemosyned.models.llama import LlamaModel, LlamaOptions  # noqa: PLC0415

        return LlamaModel(
            model_path=Path(llm.model_path).expanduser(),
            options=LlamaOptions(
                context_tokens=llm.context_tokens,
                threads=llm.threads or max(1, (os.cpu_count() or 1) // 2),
                gpu_layers=llm.gpu_layers,
                nice=llm.nice,
                time_limit_s=llm.time_limit_s,
                idle_s=llm.idle_s,
            ),
        )
    return None


def _vectors(embedding: EmbeddingConfig, store: VectorStore) -> Vectors | None:
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
