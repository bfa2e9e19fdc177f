"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mnemosyned.assembly.parts import (
    SharedParts,
    make_about,
    make_cycle,
    make_embedder,
    make_keeper,
    make_retention,
    make_service,
    make_sleeper,
    make_vectors,
)
from mnemosyned.assembly.policies import make_policies
from mnemosyned.assembly.stores import OpenStore, open_store
from mnemosyned.assembly.summarizers import make_summarizer, model_turns, owner_model
from mnemosyned.config import Config, changed_keys, needs_restart
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.service.clock_guard import ClockGuard
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.parts import ServiceParts
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.service import MemoryService, SystemClock
from mnemosyned.sleep.host import JumpTolerantClock
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.throttle import ForegroundGate

if TYPE_CHECKING:
    from mnemosyned.assembly.watching import WatcherHost
    from mnemosyned.hooks.service import HookService

CACHE_BYTES_MAX = 12_000_000
"""A little less than one busy connection would fill. Under load all five filled theirs: 48 MB."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class OpenMemory:
    """The parts in force while a memory is open."""

    store: OpenStore
    service: MemoryService
    sleeper: Sleeper
    retention: RetentionService
    policies: PolicyHolder
    agents: AgentStore
    shared: SharedParts
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
        summarizer, turns = None, self.shared.turns
        if self._needs_summarizer(config):
            turns = model_turns(config)
            model = owner_model(turns, LOCAL_OWNER)
            summarizer = make_summarizer(config, cycle.clock, cycle.gate, model=model)
        self.policies.current = make_policies(config, summarizer or cycle.lease.current)
        self.sleeper.reschedule()
        if self.watcher:
            self.watcher.reconfigure(config)
        if summarizer:
            cycle.lease.replace(summarizer)
            self.shared.replace_turns(turns)
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
    shared, lease = _make_shared(config, clock)
    location = config.location
    if socket and location.file:  # an embedding program sets its own limits
        _bound_caches()
    embeds = shared.embedder is not None
    with (
        open_store(location, socket=socket, embeds=embeds) as store,
        ExitStack() as stack,
    ):
        in_background = (
            socket is not None or config.auto_sleep
        ) and not store.read_only
        about = make_about(location, store.schema_version, in_background=in_background)
        cycle = make_cycle(store, lease, shared)
        stack.callback(shared.close)
        stack.callback(lease.close)
        if clock is None and not store.read_only:
            shared.guard = stack.enter_context(
                ClockGuard(store=store.surroundings.clock, clock=shared.clock)
            )
        embedder = None if store.read_only else shared.embedder
        vectors = make_vectors(config.embedding, store.vectors, embedder)
        retention = make_retention(cycle, store, shared, about, vectors=vectors)
        if not store.read_only:
            stack.enter_context(retention)
        if vectors:
            stack.enter_context(vectors)
        keeper = make_keeper(store, cycle, shared.policies, about)
        parts = ServiceParts(
            store=store,
            sleeper=make_sleeper(store, cycle, retention, keeper, about),
            retention=retention,
            policies=shared.policies,
            about=about,
            keeper=keeper,
            vectors=vectors,
        )
        memory = _open_memory(store, parts, shared, config)
        stack.enter_context(memory.sleeper)
        if socket:
            _follow_outside(stack, memory, store, shared.gate)
        yield memory


def _make_shared(
    config: Config, clock: Clock | None
) -> tuple[SharedParts, SummarizerLease]:
    """Build the parts that memories share, and the lease of the local memory's summarizer."""
    wall, gate = clock or SystemClock(), ForegroundGate()
    turns = model_turns(config)
    lease = SummarizerLease(
        make_summarizer(config, wall, gate, model=owner_model(turns, LOCAL_OWNER))
    )
    policies = PolicyHolder(make_policies(config, lease.current))
    shared = SharedParts(
        policies=policies,
        gate=gate,
        clock=wall,
        # A clock that tests move is believed.
        age_clock=clock or JumpTolerantClock(wall, hold=policies.sleep.ttl / 2),
        turns=turns,
        embedder=make_embedder(config.embedding, is_shared=config.owners.serve),
    )
    return shared, lease


def _open_memory(
    store: OpenStore, parts: ServiceParts, shared: SharedParts, config: Config
) -> OpenMemory:
    return OpenMemory(
        store=store,
        service=make_service(parts),
        sleeper=parts.sleeper,
        retention=parts.retention,
        policies=parts.policies,
        agents=parts.store.surroundings.agents,
        shared=shared,
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
    if memory.store.read_only:
        return
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


def check_settings(config: Config) -> None:
    """Check settings by the rules of the parts that follow them. Raises `ConfigInvalid`."""
    _ = config.location, config.socket_path, config.tls_files, config.listen_address
    summarizer = make_summarizer(config, SystemClock())
    make_policies(config, summarizer)
    summarizer.close()
