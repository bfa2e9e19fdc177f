"""The memories of many owners, each opened when one asks for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.assembly.owner_rounds import OwnerHost, OwnerRounds
from mnemosyned.assembly.parts import (
    SharedParts,
    about_shared,
    make_cycle,
    make_keeper,
    make_owner_vectors,
    make_retention,
    make_service,
    make_shared_vectors,
    make_sleeper,
)
from mnemosyned.assembly.stores import OwnedStores, open_owned_stores
from mnemosyned.assembly.summarizers import make_summarizer, owner_model
from mnemosyned.config import Config
from mnemosyned.domain.ports.models import Summarizer
from mnemosyned.domain.ports.servers.owners import OwnerStore
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.parts import ServiceParts
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.throttle import OwnerGate

# Loaded by who has an embedding model.
if TYPE_CHECKING:
    from mnemosyned.vectors.shared import SharedVectors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class OwnerMemory:
    """The open memory of one owner."""

    owner: int
    service: MemoryService
    sleeper: Sleeper
    retention: RetentionService
    agents: AgentStore
    lease: SummarizerLease


class OwnerMemories:
    """Open memories, by owner: those used last, within a limit. Safe from any thread.

    One that gives way is not closed: it has no thread and no connection of its own, and who still
    uses it can go on.
    """

    def __init__(
        self,
        stores: OwnedStores,
        shared: SharedParts,
        config: Config,
        *,
        vectors: SharedVectors | None = None,
    ) -> None:
        self.rounds = OwnerRounds(
            memory_of=self.visit,
            opened=self.opened,
            owners=stores.owners,
            shared=shared,
        )
        self._stores = stores
        self._shared = shared
        self._vectors = vectors
        self._config = config
        self._about = about_shared(stores.schema_version)
        self._lock = threading.Lock()
        self._opening: dict[int, threading.Lock] = {}
        self._open: OrderedDict[int, OwnerMemory] = OrderedDict()
        self._in_use: WeakSet[OwnerMemory] = WeakSet()
        """Those that are open, were visited, or gave way while somebody used them."""
        self._stopping = False

    @property
    def owners(self) -> OwnerStore:
        """Who the memories belong to."""
        return self._stores.owners

    def get(self, owner: int) -> OwnerMemory:
        """Return the memory of an owner, opened if it is not. Raises `NotFound` and `StorageFailed`."""
        with self._lock:
            if memory := self._open.get(owner):
                self._open.move_to_end(owner)
                return memory
            opening = self._opening.setdefault(owner, threading.Lock())
        try:
            with opening:
                return self._opened(owner)
        finally:
            with self._lock:
                self._opening.pop(owner, None)

    def visit(self, owner: int) -> OwnerMemory:
        """Return the memory of an owner, for a moment: it takes no place from one that is used."""
        with self._lock:
            memory = self._open.get(owner)
        return memory or self._make(owner)

    def opened(self) -> list[OwnerMemory]:
        """Return those that are open."""
        with self._lock:
            return list(self._open.values())

    def reconfigure(self, config: Config) -> None:
        """Follow settings that the local memory follows already."""
        self._config = config
        for memory in self.opened():
            memory.lease.replace(self._summarizer(memory.owner))
        self.rounds.reschedule()

    def release(self) -> None:
        """Free what is cached in memory; later requests read it again."""
        for memory in self.opened():
            memory.service.release()

    def stop_writes(self) -> None:
        """From now on, refuse every verb that changes a memory, and end running cycles."""
        with self._lock:
            self._stopping = True
            in_use = list(self._in_use)
        for memory in in_use:
            self._stop(memory)

    def _opened(self, owner: int) -> OwnerMemory:
        """Open a memory, unless another thread has just done so; one at a time for each owner."""
        with self._lock:
            if memory := self._open.get(owner):
                return memory
        memory = self._make(owner)
        with self._lock:
            self._open[owner] = memory
            self._shrink()
        return memory

    def _shrink(self) -> None:
        """Let those go that were not used for longest, but for those whose events are read."""
        excess = len(self._open) - self._config.owners.open_max
        unused = [
            each for each in self._open.values() if not each.service.events.listening
        ]
        for memory in unused[: max(0, excess)]:
            del self._open[memory.owner]

    def _make(self, owner: int) -> OwnerMemory:
        shared, store = self._shared, self._stores.store(owner)
        lease = SummarizerLease(self._summarizer(owner))
        cycle = make_cycle(store, lease, shared, OwnerGate(shared.gate))
        vectors = make_owner_vectors(
            owner, store, self._vectors, self._config.embedding
        )
        retention = make_retention(
            cycle,
            store,
            shared,
            self._about,
            vectors=vectors,
            purge_soon=lambda: self.rounds.ask_purge(owner),
        )
        keeper = make_keeper(store, cycle, shared.policies, self._about)
        host = OwnerHost(self.rounds, owner)
        parts = ServiceParts(
            store=store,
            sleeper=make_sleeper(
                store, cycle, retention, keeper, self._about, host=host
            ),
            retention=retention,
            policies=shared.policies,
            about=self._about,
            keeper=keeper,
            vectors=vectors,
        )
        memory = OwnerMemory(
            owner=owner,
            service=make_service(parts),
            sleeper=parts.sleeper,
            retention=retention,
            agents=store.surroundings.agents,
            lease=lease,
        )
        with self._lock:
            self._in_use.add(memory)
            stopping = self._stopping
        if stopping:
            self._stop(memory)
        if not self._stores.read_only:
            retention.start()
        return memory

    def _summarizer(self, owner: int) -> Summarizer:
        shared = self._shared
        model = owner_model(shared.turns, owner)
        return make_summarizer(self._config, shared.clock, shared.gate, model=model)

    @staticmethod
    def _stop(memory: OwnerMemory) -> None:
        memory.service.stop_writes()
        memory.lease.interrupt()


@contextmanager
def serve_owners(memory: OpenMemory) -> Iterator[OwnerMemories]:
    """Open the memories of all owners of the database beside the local one, while the block runs.

    Raises `StorageFailed`, also where the database's user may not separate owners.
    """
    embedder = memory.shared.embedder
    location = memory.config.location
    with (
        open_owned_stores(
            location, embeds=embedder is not None, beside=memory.store
        ) as stores,
        ExitStack() as stack,
    ):
        # On a standby nothing sleeps and nothing is embedded.
        vectors = None if stores.read_only else make_shared_vectors(stores, embedder)
        if vectors:
            stack.enter_context(vectors)
        memories = OwnerMemories(stores, memory.shared, memory.config, vectors=vectors)
        if not stores.read_only:
            memories.rounds.start()
        try:
            yield memories
        finally:
            memories.stop_writes()
            memories.rounds.stop()
