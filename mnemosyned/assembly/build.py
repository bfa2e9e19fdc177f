"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mnemosyned.assembly.stores import (
    make_model_turns,
    make_summarizer,
    open_store,
    owner_model,
)
from mnemosyned.config.settings import (
    Config,
    EmbeddingConfig,
    SettingsInForce,
    changed_keys,
    needs_restart,
)
from mnemosyned.conversation.learnings import recognize, relevance
from mnemosyned.conversation.messages import MessageCounter
from mnemosyned.fairness import ForegroundGate
from mnemosyned.memory import engine_ports, ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.service import backups, context, forgetting, reading
from mnemosyned.service.endings import EndingFinder
from mnemosyned.service.events import EventBus
from mnemosyned.service.service import MemoryService, SystemClock
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper, SleepHost, cron_trigger
from mnemosyned.sleep.triggers import ClockGuard, JumpTolerantClock
from mnemosyned.socket_path import usual_socket_path
from mnemosyned.verbs.upkeep import Watch, WatchedFolder, Watching

if TYPE_CHECKING:
    from mnemosyned.agents.hooks.service import HookService
    from mnemosyned.importers.capture import Capture
    from mnemosyned.importers.watch.watcher import Watcher
    from mnemosyned.models.sharing import ModelTurns
    from mnemosyned.search.vectors.bearing import BearingRater
    from mnemosyned.search.vectors.owners import SharedVectors
    from mnemosyned.service.audit import AuditLog
    from mnemosyned.storage.postgres.store import OwnedStores

EMBEDDER_TURNS = 4
"""Maximum calls of other threads that a thread waits for, each as long as it may take."""


@dataclass(slots=True, kw_only=True)
class SharedParts:
    """Parts that the memories of one process have in common."""

    settings: SettingsInForce
    gate: ForegroundGate
    clock: Clock
    age_clock: Clock
    """The clock by which memories age."""
    turns: ModelTurns | None = None
    """Language models, where owners share them."""
    embedder: engine_ports.Embedder | None = None
    """The embedding model, where one is configured."""
    rater: BearingRater | None = None
    """Rates learnings, prompts and sentences by their vectors, where the model runs in this process."""
    guard: ClockGuard | None = None
    """Judges the clock for what cannot be undone; None where it is always believed."""
    audit: AuditLog | None = None
    """The audit log, where one is kept."""
    find_bus: Callable[[int], EventBus] | None = None
    """Returns the bus of an owner's events, where several processes serve them."""
    makes_rounds: bool = True
    """Whether sleep cycles begin by themselves here; not in a further process of a daemon."""

    def replace_turns(self, turns: ModelTurns | None) -> None:
        """Replace the models that owners share; former models are closed after the waiting calls."""
        former, self.turns = self.turns, turns
        if former:
            former.close()


def assemble_service(
    store: ports.MemoryStore,
    lease: SummarizerLease,
    shared: SharedParts,
    *,
    gate: ForegroundGate,
    database: str,
    schema_version: int,
    in_background: bool,
    vectors: engine_ports.MemoryVectors,
    file: Path | None = None,
    host: SleepHost | None = None,
    purge_soon: Callable[[], None] | None = None,
    owner: int = engine_ports.LOCAL_OWNER,
) -> MemoryService:
    """Return the service of one memory, built with its sleep cycles and retention.

    Sleep cycles yield to the requests that `gate` counts. For one of many owners, `host` starts the
    cycles and `purge_soon` requests a purge; otherwise the memory's own threads do if `in_background`.
    `database` is the name of the database for users, `file` its path unless on a server.
    """
    settings, find_bus = shared.settings, shared.find_bus
    bus = find_bus(owner) if find_bus else EventBus(clock=shared.clock, owner=owner)
    cycle = SleepCycle(
        store=store,
        lease=lease,
        clock=shared.clock,
        settings=settings,
        age_clock=shared.age_clock,
        gate=gate,
        publish=bus.publish,
    )
    forgotten = None
    if file is None:
        from mnemosyned.service.audit import AuditedForgets  # noqa: PLC0415 only on a server

        forgotten = AuditedForgets(lambda: shared.audit, owner)
    retention = forgetting.RetentionService(
        store=store,
        cycle=cycle,
        settings=settings,
        file=file,
        in_background=in_background,
        guard=shared.guard,
        purge_soon=purge_soon,
        forgotten=forgotten,
    )

    def learn(memory: values.MemoryRecord) -> Sequence[recognize.LateLearning] | None:
        """Return learnings that only vectors find in a memory, if wanted; None if the encoder is loading."""
        recognizes = settings.config.learnings.recognize and not memory.superseded_at
        if not (shared.rater and recognizes):
            return ()
        if (state := vectors.state) is not values.EmbedderState.READY:
            return None if state is values.EmbedderState.LOADING else ()
        now = shared.clock.now()
        return recognize.extract_late_learnings(
            memory, now=now, rate=shared.rater.rate_sentences
        )

    def prepare_rater() -> None:
        """Embed the rater's examples if the encoder is ready."""
        if shared.rater and vectors.state is values.EmbedderState.READY:
            shared.rater.load_examples()

    endings = EndingFinder(
        store=store,
        clock=shared.clock,
        gate=gate,
        in_background=in_background,
        learn=learn,
        meanings=shared.rater,
        vectors=vectors,
    )
    endings.on_found = retention.rewrite_stale_or_log

    def note_put_back(positions: Sequence[int]) -> None:
        """Have unread memories read for endings, and the memories at `positions` embedded again."""
        endings.note_new_memories()
        vectors.note_edits(positions)

    retention.on_put_back = note_put_back
    retention.on_removal = vectors.note_deletions
    keeper = backups.BackupKeeper(
        store=store.maintenance,
        settings=settings,
        file=file,
        clock=shared.clock,
        lease=lease,
    )
    lists = reading.ListService(
        store=store.lists,
        clock=shared.clock,
        # Of a database that others share, the size is not this owner's to know.
        bytes_on_disk=(lambda: 0) if host else store.maintenance.bytes_on_disk,
    )
    chores = (
        keeper.run_scheduled,
        endings.find_in_background,
        prepare_rater,
        lists.save_if_due,
    )
    sleeper = Sleeper(
        store=store,
        cycle=cycle,
        after_cycle=retention.after_cycle,
        chores=chores,
        in_background=in_background and host is None,
        host=host,
    )
    return MemoryService(
        store=store,
        sleeper=sleeper,
        retention=retention,
        settings=settings,
        events=bus,
        database=database,
        schema_version=schema_version,
        keeper=keeper,
        endings=endings,
        lists=lists,
        vectors=vectors,
        rater=shared.rater,
    )


def make_embedder(
    embedding: EmbeddingConfig, *, is_shared: bool
) -> engine_ports.Embedder | None:
    """Return the configured embedder, or None; with `is_shared`, calls to a model file take turns."""
    if not embedding.model_path:
        if embedding.encoder == "none":
            return None
        from mnemosyned.models.sentence_encoder import SentenceEncoder  # noqa: PLC0415 only with a model

        return SentenceEncoder()
    from mnemosyned.models.sharing import SharedEmbedder  # noqa: PLC0415, I001 only with a model
    from mnemosyned.models.llama import LlamaEmbedder  # noqa: PLC0415 only with a model

    path = Path(embedding.model_path).expanduser()
    embedder = LlamaEmbedder(embedding, model_path=path)
    if not is_shared:
        return embedder
    return SharedEmbedder(embedder, wait_s=EMBEDDER_TURNS * embedding.time_limit_s)


def similarity_min_of(
    embedding: EmbeddingConfig, embedder: engine_ports.Embedder
) -> float:
    """Return the least cosine for a hit that has no word of the query: as set, or else the model's own."""
    if embedding.similarity_min is None:
        return embedder.similarity_min
    return embedding.similarity_min


def make_shared_vectors(
    stores: OwnedStores, embedder: engine_ports.Embedder | None, gate: ForegroundGate
) -> SharedVectors | None:
    """Return the embedding thread for all owners' memories, which yields to requests; None without a model."""
    if embedder is None:
        return None
    from mnemosyned.search.vectors.owners import SharedVectors  # noqa: PLC0415 only with a model

    def list_owners_lacking_vectors(
        identity: str, after: int, limit: int
    ) -> Sequence[int]:
        """Return up to `limit` owners after `after` who lack vectors of a model, without the local owner."""
        first = max(after, engine_ports.LOCAL_OWNER)  # which has an index of its own
        return stores.owners.lacking_vectors(identity, after=first, limit=limit)

    return SharedVectors(
        store=lambda owner: stores.store(owner).vectors,
        owners_lacking_vectors=list_owners_lacking_vectors,
        embedder=embedder,
        pause=gate.wait_until_quiet,
    )


CACHE_BYTES_MAX = 12_000_000
"""A little less than one busy connection would fill. Under load all five connections filled theirs: 48 MB."""


@dataclass(eq=False)
class WatcherHost:
    """Owner of the folder watcher, which exists once a folder is watched; safe from any thread."""

    service: MemoryService
    capture: Capture

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None

    def __enter__(self) -> Self:
        self.service.watcher = self
        paths = self.service.settings.config.watch.paths
        if paths or self.service.store.watches.folders():
            self._ensure_watcher()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher:
            watcher.__exit__()

    def watch(self, request: Watch) -> Watching:
        """Add or remove watched folders, as the request says; return all watched folders."""
        if not (request.paths or self._watcher):
            return Watching([])
        return self._ensure_watcher().watch(request)

    def folders(self) -> list[WatchedFolder]:
        """Return the watched folders with their state; none if there is no watcher."""
        watcher = self._watcher
        return watcher.folders() if watcher else []

    def update_folders(self) -> None:
        """Watch the folders in the setting `watch.paths` as it is now."""
        if self._watcher:
            self._watcher.update_folders()
        elif self.service.settings.config.watch.paths:
            self._ensure_watcher()

    def _ensure_watcher(self) -> Watcher:
        """Return the folder watcher; the first call creates and starts it."""
        from mnemosyned.importers.watch import watched_files, watcher  # noqa: PLC0415 only to watch

        with self._lock:
            if self._watcher is None:
                reader = watched_files.FileReader(self.service, self.capture)
                made = watcher.Watcher(self.service, reader)
                self._watcher = made.__enter__()
            return self._watcher


@dataclass(slots=True, eq=False, weakref_slot=True)
class OpenMemory:
    """An open memory: its store, its services and the settings in force."""

    store: ports.MemoryStore
    service: MemoryService
    shared: SharedParts
    started_with: Config
    hooks: HookService | None = None
    """The hooks of agents' tools; only where a socket is served."""

    @property
    def config(self) -> Config:
        """The settings as last read."""
        return self.shared.settings.config

    def reconfigure(self, config: Config) -> None:
        """Apply new settings, and list those that need a restart. Raises `ConfigInvalid`, changing nothing."""
        cycle, settings = self.service.sleeper.cycle, self.shared.settings
        summarizer, turns = None, self.shared.turns
        former, ratio = self.config, config.sleep.summary_ratio
        is_same = (config.llm, ratio) == (former.llm, former.sleep.summary_ratio)
        if not is_same or config.llm.api_key_file is not None:  # the key is read again
            turns = make_model_turns(config)
            model = owner_model(turns, engine_ports.LOCAL_OWNER)
            summarizer = make_summarizer(config, cycle.clock, cycle.gate, model=model)
        counter = _make_checked_counter(config, summarizer or cycle.lease.current)
        changed = changed_keys(self.started_with, config)
        settings.config, settings.counter = config, counter
        settings.restart_needed = tuple(filter(needs_restart, changed))
        self.service.sleeper.reschedule()
        if self.service.watcher:
            self.service.watcher.update_folders()
        if summarizer:
            cycle.lease.replace(summarizer)
            self.shared.replace_turns(turns)


@contextmanager
def open_memory(
    config: Config,
    *,
    clock: Clock | None = None,
    socket: Path | None = None,
    find_bus: Callable[[int], EventBus] | None = None,
    makes_rounds: bool = True,
) -> Iterator[OpenMemory]:
    """Return a context manager that opens a memory's database and starts its background threads.

    `socket` is the Unix socket on which the caller will serve; without one, threads run only with the
    setting `auto_sleep`. `clock` replaces the system's clock. In a daemon of several processes,
    `find_bus` returns the bus of an owner's events, and `makes_rounds` is True for the only process that
    starts sleep cycles. Raises `ConfigInvalid`, `DatabaseInUse` and `SchemaTooNew`.
    """
    shared, lease = _make_shared_parts(config, clock)
    shared.find_bus, shared.makes_rounds = find_bus, makes_rounds
    location = config.location
    if socket and location.file:  # an embedding program sets its own limits
        from mnemosyned.storage.sqlite.connections import bound_caches  # noqa: PLC0415 only for a file

        bound_caches(CACHE_BYTES_MAX)
    embeds = shared.embedder is not None and not shared.embedder.in_process
    with (
        open_store(location, socket=socket, embeds=embeds) as store,
        ExitStack() as stack,
    ):
        in_background = not store.read_only and bool(
            socket or (config.auto_sleep and makes_rounds)
        )
        stack.callback(shared.replace_turns, None)
        stack.callback(lease.close)
        if clock is None and not store.read_only:
            shared.guard = stack.enter_context(
                ClockGuard(store=store.clock, clock=shared.clock)
            )
        vectors = None
        if shared.embedder and not store.read_only:
            from mnemosyned.search.vectors.indexer import VectorIndexer  # noqa: PLC0415 only with a model

            vectors = VectorIndexer(
                store=store.vectors,
                embedder=shared.embedder,
                wait_s=config.embedding.wait_ms / 1_000,
                similarity_min=similarity_min_of(config.embedding, shared.embedder),
                pause=partial(
                    shared.gate.wait_until_quiet, is_busy=lambda: lease.is_in_cycle
                ),
            )
        service = assemble_service(
            store,
            lease,
            shared,
            gate=shared.gate,
            database=str(location),
            schema_version=store.schema_version,
            in_background=in_background,
            file=location.file,
            vectors=vectors or engine_ports.MemoryVectors(),
        )
        if not store.read_only:
            stack.callback(service.lists.save_figures)
            stack.enter_context(service.retention)
        if vectors:
            stack.enter_context(vectors)
        memory = OpenMemory(
            store=store,
            service=service,
            shared=shared,
            started_with=config,
        )
        stack.enter_context(service.sleeper)
        if socket or find_bus:
            from mnemosyned.agents.hooks import spool  # noqa: PLC0415 only in a daemon
            from mnemosyned.agents.hooks.service import HookService  # noqa: PLC0415 the same

            # A daemon on another socket is not the one that hooks look for.
            is_usual = socket is not None and str(socket) == usual_socket_path()
            waiting = spool.folder() if is_usual and not store.read_only else ""
            memory.hooks = stack.enter_context(HookService(service, waiting=waiting))
            if not store.read_only and makes_rounds:
                stack.enter_context(WatcherHost(service, memory.hooks.capture))
        yield memory


def _make_shared_parts(
    config: Config, clock: Clock | None
) -> tuple[SharedParts, SummarizerLease]:
    """Return the parts that all memories of a process share, and the local owner's summarizer."""
    wall, gate = clock or SystemClock(), ForegroundGate()
    turns = make_model_turns(config)
    summarizer = make_summarizer(
        config, wall, gate, model=owner_model(turns, engine_ports.LOCAL_OWNER)
    )
    settings = SettingsInForce(
        config, counter=_make_checked_counter(config, summarizer)
    )
    embedder = make_embedder(config.embedding, is_shared=config.owners.serve)
    rater = None
    if embedder and embedder.in_process:  # others are too slow to rate by
        from mnemosyned.search.vectors.bearing import BearingRater  # noqa: PLC0415 only with a model

        rater = BearingRater(embedder, relevance.load_topics())
    shared = SharedParts(
        settings=settings,
        gate=gate,
        clock=wall,
        # A clock that tests move is believed.
        age_clock=clock or JumpTolerantClock(wall, hold=config.sleep.consolidation_age),
        turns=turns,
        embedder=embedder,
        rater=rater,
    )
    return shared, SummarizerLease(summarizer, rater.rate_events if rater else None)


def _make_checked_counter(
    config: Config, summarizer: engine_ports.Summarizer
) -> MessageCounter:
    """Check schedule, token budget and backup time; return the token counter. Raises `ConfigInvalid`."""
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)
    context.token_budget(config.context)
    backups.next_backup_after(config, SystemClock().now())
    return context.make_counter(config.context.tokenizer, summarizer)


def check_settings(config: Config) -> None:
    """Raise `ConfigInvalid` if the daemon could not start with these settings."""
    _ = config.location, config.socket_path, config.tls_files, config.listen_address
    summarizer = make_summarizer(config, SystemClock())
    _make_checked_counter(config, summarizer)
    summarizer.close()
