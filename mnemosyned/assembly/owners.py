"""The memories of many owners, each opened at its first request, and the rounds of their sleep cycles."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from mnemosyned import errors, fairness
from mnemosyned.agents.hooks.service import HookService
from mnemosyned.assembly import build
from mnemosyned.assembly.stores import make_summarizer, open_owned_stores, owner_model
from mnemosyned.logs import logger
from mnemosyned.memory import consolidation, engine_ports
from mnemosyned.memory.periods import Level, open_from
from mnemosyned.service.forgetting import RETRY_S, retention_of
from mnemosyned.service.owners import OwnerLimiter
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep import context, sleeper

if TYPE_CHECKING:
    from mnemosyned.search.vectors.owners import SharedVectors
    from mnemosyned.storage.postgres.owners import PostgresOwners
    from mnemosyned.storage.postgres.store import OwnedStores

PAGE = 200
"""Number of owners that a round lists at once."""
FIGURES_S = 30.0
"""Minimum seconds between two reads of all owners' totals."""
TURN_S = 20.0
"""Seconds after which a background cycle lets the next owner have a turn, between two groups."""
PASSES_MAX = 1_000
"""Maximum turns of one owner in a round; the rest waits for the next round."""
REST_TIMES, REST_MAX_S = 4, 30.0
"""Rest after purges, as a multiple of their time, and its maximum in seconds."""
ASKED_MAX = 100_000
"""Maximum owners in the queue for upkeep; the next round finds the others."""

R = TypeVar("R")
log = logger()


@dataclass(frozen=True, slots=True)
class FinishedRound:
    """A round of sleep cycles that has ended, with how many owners it visited."""

    owners: int
    duration_s: float
    ended_at: datetime


@dataclass(eq=False, kw_only=True)
class OwnerRounds:
    """Sleep cycles of all owners: by schedule, on triggers, and when an owner requests upkeep.

    Each daemon of a database makes its own rounds: it skips owners whose cycle another daemon runs,
    and owners without work.
    """

    open_memory: Callable[[int], OwnerMemory]
    """Opens an owner's memory by number."""
    list_open: Callable[[], Sequence[OwnerMemory]]
    """Lists the open memories."""
    owners: PostgresOwners
    shared: build.SharedParts

    def __post_init__(self) -> None:
        self._requested: set[int] = set()
        self._purge_not_before = 0.0
        self._is_started = False
        self.last_round: FinishedRound | None = None
        """The last round that ended since the start."""
        self._stopped = threading.Event()
        workers = len(self.shared.turns.models) if self.shared.turns else 1
        self._workers = ThreadPoolExecutor(workers, "owners")
        self.scheduler = sleeper.SleepScheduler(
            sleep=self.run,
            enforce_cap=self._serve_requested,
            check_triggers=self.check_triggers,
            tick_s=self.shared.settings.config.sleep.tick_s,
        )

    def start(self) -> None:
        """Start the thread of sleep cycles by schedule and trigger. Raises `ConfigInvalid`."""
        self.reschedule()
        self.scheduler.start()
        self._is_started = True

    def reschedule(self) -> None:
        """Schedule the sleep cycles by the present settings. Raises `ConfigInvalid`."""
        self.scheduler.set_schedule(self.shared.settings.config)

    def wake(self) -> None:
        """Correct the time of the next round after a jump of the wall clock, such as by a suspend."""
        if self._is_started:
            self.scheduler.wake()

    def stop(self) -> None:
        """Stop all rounds, wait for running sleep cycles, and save how access tokens were used."""
        self._stopped.set()
        if self._is_started:
            self.scheduler.stop()
        self._workers.shutdown()
        self.owners.save_uses(now=True)

    def request_upkeep(self, owner: int) -> None:
        """Queue the purge of an owner's deleted texts and the cut to its capacity, unless the queue is full."""
        if len(self._requested) < ASKED_MAX:
            self._requested.add(owner)
            self.scheduler.enforce_cap_soon()

    def request_purge(self, owner: int) -> None:
        """Request an owner's upkeep, unless a purge failed lately. Raises `StorageFailed` if not permitted."""
        if time.monotonic() >= self._purge_not_before:
            self.request_upkeep(owner)
        self.owners.require_purge_rights()

    def _serve_requested(self) -> None:
        """Purge deleted texts for owners who requested upkeep, and consolidate what exceeds their capacity."""

        def purge_and_enforce(memory: OwnerMemory) -> None:
            """Purge deleted texts unless refused lately; consolidate what exceeds the owner's capacity."""
            began = time.monotonic()
            if began >= self._purge_not_before:
                if not memory.service.retention.purger.run_due():
                    self._purge_not_before = time.monotonic() + RETRY_S
                took.append(time.monotonic() - began)
            memory.service.sleeper.enforce_cap_now()

        took: list[float] = []
        while self._requested and not self._stopped.is_set():
            # A purge reads the tables of all owners, and is for all who forgot before it.
            self._stopped.wait(min(REST_MAX_S, REST_TIMES * sum(took)))
            took.clear()
            # In passes: an owner that is not done asks again, and comes after the others.
            for owner in [self._requested.pop() for _ in range(len(self._requested))]:
                self._run_for_owner(owner, purge_and_enforce)

    def check_triggers(self) -> None:
        """Start sleep cycles in open memories that reached a trigger; save how access tokens were used."""
        self.owners.save_uses()
        for memory in self.list_open():
            if self._stopped.is_set():
                return
            self._run_for_owner(
                memory.owner, lambda known: known.service.sleeper.check_triggers()
            )

    def run(self, trigger: consolidation.Trigger) -> None:
        """Run sleep cycles for all owners with memories to consolidate, prune or roll up.

        A cycle lasts `TURN_S` at most; owners with more to do get another turn after all others. `trigger`
        is the reason in the reports of the cycles. Without `makes_rounds`, do nothing.
        """
        if not self.shared.makes_rounds:
            return

        def sleep(owner: int) -> bool:
            """Run a sleep cycle of one owner; return True if work is left for another turn."""
            report = self._run_for_owner(
                owner,
                lambda memory: memory.service.sleeper.sleep_in_background(trigger),
            )
            is_cut = report is not None and report.duration_s >= TURN_S
            return is_cut and bool(report and report.evicted and report.remaining)

        owners: set[int] = set()
        began = time.monotonic()
        with self.owners.keep_claims_open():
            for _ in range(PASSES_MAX):
                is_left = False
                config, now = self.shared.settings.config, self.shared.age_clock.now()
                over = config.sleep.rollup_cutoff(now)
                list_owners = partial(
                    self.owners.with_work,
                    before=config.sleep.cutoff(now),
                    archived=retention_of(config).prunes,
                    closed={level: open_from(level, over) for level in Level if level},
                    limit=PAGE,
                )
                page = list_owners(after=engine_ports.LOCAL_OWNER)
                while page and not self._stopped.is_set():  # ends, as numbers ascend
                    owners.update(page)
                    is_left |= any(list(self._workers.map(sleep, page)))
                    page = list_owners(after=page[-1])
                if not is_left:
                    break
        done, duration_s = len(owners), time.monotonic() - began
        self.last_round = FinishedRound(done, duration_s, self.shared.clock.now())
        if done:
            log.info("round_finished", owners=done, duration_s=round(duration_s, 1))

    def _run_for_owner(self, owner: int, work: Callable[[OwnerMemory], R]) -> R | None:
        """Return the result of `work` on an owner's memory; None after `stop` or an error, which is logged.

        Only `DatabaseUnreachable` is raised.
        """
        if self._stopped.is_set():
            return None
        try:
            return work(self.open_memory(owner))
        except (errors.SleepInProgress, errors.MemoryBusy):
            log.debug("owner_passed_by", owner=owner)
        except errors.NotFound:
            log.info("owner_removed", owner=owner)
        except errors.DatabaseUnreachable:
            raise
        except Exception:
            log.exception("owner_failed", owner=owner)
        return None


@dataclass(eq=False)
class OwnerMemory:
    """The open memory of one owner, with its services."""

    owner: int
    service: MemoryService
    _hooks: HookService | None = None
    _making: threading.Lock = field(default_factory=threading.Lock)

    @property
    def hooks(self) -> HookService:
        """The service for agents' hooks, made at the first use, as most opened memories need none."""
        with self._making:
            self._hooks = self._hooks or HookService(self.service)
            return self._hooks


class OwnerMemories:
    """Open memories by owner number, the least recently used dropped; safe from any thread.

    A dropped memory is not closed: it has no thread and no connection of its own, and its present
    users can go on.
    """

    def __init__(
        self,
        stores: OwnedStores,
        shared: build.SharedParts,
        *,
        vectors: SharedVectors | None = None,
    ) -> None:
        self.rounds = OwnerRounds(
            open_memory=self.visit,
            list_open=self.open_memories,
            owners=stores.owners,
            shared=shared,
        )
        self.limits = OwnerLimiter(
            lambda: shared.settings.config.owners, stores.describe_owner
        )
        self._stores = stores
        self._shared = shared
        self._vectors = vectors
        if vectors:
            vectors.allowance = self.limits.encoder
        self._lock = threading.Lock()
        self._opening: dict[int, threading.Lock] = {}
        self._open: OrderedDict[int, OwnerMemory] = OrderedDict()
        self._in_use: WeakSet[OwnerMemory] = WeakSet()
        """Those that are open, were visited, or gave way while somebody used them."""
        self._stopping = False
        self._figures: tuple[float, engine_ports.OwnerFigures] | None = None
        """Totals of all owners, with the monotonic time of the question."""

    @property
    def owners(self) -> PostgresOwners:
        """The database's table of owners and their tokens."""
        return self._stores.owners

    def figures(self) -> engine_ports.OwnerFigures:
        """Return totals over all owners, at most `FIGURES_S` seconds old. Raises `StorageFailed`."""
        now, shared = time.monotonic(), self._shared
        if self._figures is None or now - self._figures[0] > FIGURES_S:
            before = shared.settings.config.sleep.cutoff(shared.age_clock.now())
            identity = self._vectors.identity if self._vectors else ""
            figures = self.owners.figures(before=before, identity=identity)
            self._figures = now, figures
        return self._figures[1]

    def get(self, owner: int) -> OwnerMemory:
        """Return the memory of an owner, opened at the first call. Raises `NotFound` and `StorageFailed`."""
        with self._lock:
            if memory := self._open.get(owner):
                self._open.move_to_end(owner)
                return memory
            opening = self._opening.setdefault(owner, threading.Lock())
        try:
            with opening:
                with self._lock:
                    memory = self._open.get(owner)  # if another thread has opened it
                if memory is None:
                    memory = self._make_memory(owner)
                    with self._lock:
                        self._open[owner] = memory
                        most = self._shared.settings.config.owners.open_max
                        unused = [
                            each
                            for each in self._open.values()
                            if not each.service.events.listening
                        ]
                        dropped = unused[: max(0, len(self._open) - most)]
                        for each in dropped:
                            del self._open[each.owner]
                    for each in () if self._stores.read_only else dropped:
                        each.service.lists.save_figures()
                return memory
        finally:
            with self._lock:
                self._opening.pop(owner, None)

    def visit(self, owner: int) -> OwnerMemory:
        """Return the memory of an owner for a background task: the open memory, or a new one, not kept open."""
        with self._lock:
            memory = self._open.get(owner)
        return memory or self._make_memory(owner, starts=False)

    def open_memories(self) -> list[OwnerMemory]:
        """Return the open memories, the least recently used first."""
        with self._lock:
            return list(self._open.values())

    def reconfigure(self) -> None:
        """Apply the present settings to the summarizers of open memories and to the schedule."""
        for memory in self.open_memories():
            summarizer = self._make_summarizer(memory.owner)
            memory.service.sleeper.cycle.lease.replace(summarizer)
        self.rounds.reschedule()

    def release(self) -> None:
        """Drop the caches of all open memories; requests read the data again."""
        for memory in self.open_memories():
            memory.service.store.maintenance.release_memory()

    def stop_writes(self) -> None:
        """Refuse requests that change any owner's memory from now on; interrupt sleep cycles."""
        with self._lock:
            self._stopping = True
            in_use = list(self._in_use)
        for memory in in_use:
            _stop_memory(memory)

    def _make_memory(self, owner: int, *, starts: bool = True) -> OwnerMemory:
        """Return a new object for an owner's memory.

        With `starts`, finish what an earlier process left undone, such as a purge, unless on a standby.
        """
        shared, store = self._shared, self._stores.store(owner)
        lease = context.SummarizerLease(
            self._make_summarizer(owner),
            shared.rater.rate_events if shared.rater else None,
        )
        vectors = engine_ports.MemoryVectors()
        if self._vectors:
            from mnemosyned.search.vectors.owners import OwnerVectors  # noqa: PLC0415 only with a model

            embedding = shared.settings.config.embedding
            least = build.similarity_min_of(embedding, self._vectors.embedder)
            vectors = OwnerVectors(
                owner,
                store.vectors,
                self._vectors,
                wait_s=embedding.wait_ms / 1_000,
                similarity_min=least,
            )
        service = build.assemble_service(
            store,
            lease,
            shared,
            gate=fairness.ForegroundGate(shared.gate),
            database="postgresql",  # its owner need not know where it is
            schema_version=self._stores.schema_version,
            in_background=True,
            vectors=vectors,
            host=sleeper.SleepHost(
                self.rounds.scheduler,
                partial(self.rounds.request_upkeep, owner),
                TURN_S,
            ),
            purge_soon=lambda: self.rounds.request_purge(owner),
            owner=owner,
        )

        service.limits = self.limits
        memory = OwnerMemory(owner, service)
        with self._lock:
            self._in_use.add(memory)
            stopping = self._stopping
        if stopping:
            _stop_memory(memory)
        if starts and not self._stores.read_only:
            service.retention.start()
        return memory

    def _make_summarizer(self, owner: int) -> engine_ports.Summarizer:
        """Return a summarizer for an owner, which waits for the owner's turn at the shared models."""
        shared = self._shared
        model = owner_model(shared.turns, owner, allowance=self.limits.model)
        config = shared.settings.config
        return make_summarizer(config, shared.clock, shared.gate, model=model)


def _stop_memory(memory: OwnerMemory) -> None:
    """Refuse requests that change the memory from now on, and interrupt its sleep cycle."""
    memory.service.stop_writes()
    memory.service.sleeper.cycle.lease.interrupt()


@contextmanager
def serve_owners(memory: build.OpenMemory) -> Iterator[OwnerMemories]:
    """Return a context manager that opens the memories of all owners and runs their sleep cycles.

    On a standby no sleep cycle runs. `memory` is the local owner's, already open. Raises
    `StorageFailed`, also if the database's user cannot be kept to one owner's rows.
    """
    embedder = memory.shared.embedder
    location = memory.config.location
    with (
        open_owned_stores(
            location,
            embeds=embedder is not None and not embedder.in_process,
            beside=memory.store,
        ) as stores,
        ExitStack() as stack,
    ):
        # On a standby nothing sleeps and nothing is embedded.
        vectors = (
            None
            if stores.read_only
            else build.make_shared_vectors(stores, embedder, memory.shared.gate)
        )
        if vectors:
            stack.enter_context(vectors)
        memories = OwnerMemories(stores, memory.shared, vectors=vectors)

        def find_warnings() -> list[str]:
            """Return warnings: owners that the settings name and nobody has, and lost lines of the log."""
            limited = memory.shared.settings.config.owners.limits_by_owner or {}
            audit = memory.shared.audit
            lost = [audit.loss] if audit and audit.loss else []
            return lost + [
                f"owners.limits_by_owner sets limits for {name!r}, and there is no such owner"
                for name in stores.owners.find_unknown(limited)
            ]

        memory.service.find_warnings = find_warnings
        for warning in find_warnings():
            log.warning("owner_unknown", reason=warning)
        if not stores.read_only:
            memories.rounds.start()
        try:
            yield memories
        finally:
            memories.stop_writes()
            memories.rounds.stop()
            if not stores.read_only:
                for each in memories.open_memories():
                    each.service.lists.save_figures()
