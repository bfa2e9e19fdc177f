"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned.assembly.policies import (
    background_policy,
    retention,
    service_limits,
    set_schedule,
    sleep_policy,
    sleep_triggers,
)
from mnemosyned.config import (
    API_KEY_VARIABLE,
    NO_MODEL,
    Config,
    EmbeddingConfig,
    LlmConfig,
)
from mnemosyned.domain.consolidation import CycleReport, Selection, Trigger
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer, TextModel
from mnemosyned.domain.ports.vectors import VectorStore
from mnemosyned.logs import logger
from mnemosyned.paths import shipped
from mnemosyned.service.retention import Forgetting
from mnemosyned.service.service import About, MemoryService, SystemClock
from mnemosyned.sleep import shutdown as final
from mnemosyned.sleep.background import Background
from mnemosyned.sleep.clock_guard import ClockGuard
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.host import SteadyClock, machine_now
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.scheduler import SleepScheduler, cron_trigger
from mnemosyned.sleep.throttle import ForegroundGate
from mnemosyned.sleep.triggers import Watch
from mnemosyned.storage.sqlite import bound_caches, open_store
from mnemosyned.summarizers.parallel import ParallelSummarizer
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.vectors.indexer import Vectors

CACHE_BYTES_MAX = 12_000_000
"""A little less than one busy connection would fill. Under load all five filled theirs: 48 MB."""

log = logger()


@dataclass(slots=True)
class OpenMemory:
    """The parts in force while a memory is open."""

    service: MemoryService
    cycle: SleepCycle
    forgetting: Forgetting
    scheduler: SleepScheduler | None
    clock: Clock
    config: Config
    background: Background | None = None
    watch: Watch | None = None

    def reconfigure(self, config: Config) -> None:
        """Take over the settings that need no restart. Raises `ConfigInvalid`."""
        same = (config.llm, config.sleep.summary_ratio) == (
            self.config.llm,
            self.config.sleep.summary_ratio,
        )
        # A model that is loaded stays so, with what is known of it; a key file is read again.
        same = same and config.llm.api_key_file is None
        summarizer = (
            None if same else make_summarizer(config, self.clock, self.cycle.gate)
        )
        limits = service_limits(config, summarizer or self.cycle.lease.current)
        if self.scheduler:
            set_schedule(self.scheduler, config)
        if self.background and self.watch:
            self.background.policy = background_policy(config)
            self.watch.triggers = sleep_triggers(config)
        if summarizer:
            self.cycle.lease.replace(summarizer)
        self.cycle.policy = sleep_policy(config)
        self.service.use_limits(limits)
        self.forgetting.retention = retention(config)
        self.config = config


@contextmanager
def open_memory(
    config: Config, *, clock: Clock | None = None, socket: Path | None = None
) -> Iterator[OpenMemory]:
    """Open the database and start what runs in the background; close all of it in the end.

    `socket` is where the caller will serve the verbs; without one the memory is embedded, and
    has a background thread only with `auto_sleep`. Raises `ConfigInvalid`, `DatabaseInUse` and
    `SchemaTooNew`.
    """
    database = config.database_path
    given, clock = clock, clock or SystemClock()
    gate = ForegroundGate()
    summarizer = make_summarizer(config, clock, gate)
    if socket:  # else the process is somebody else's
        bound_caches(CACHE_BYTES_MAX)
    with (
        open_store(database, migrations=shipped("migrations"), socket=socket) as store,
        ExitStack() as stack,
    ):
        policy = sleep_policy(config)
        # A clock that tests move is to be believed.
        aging = SteadyClock(clock, hold=policy.ttl / 2) if given is None else clock
        cycle = SleepCycle(
            store=store,
            lease=SummarizerLease(summarizer),
            clock=clock,
            policy=policy,
            age_clock=aging,
            gate=gate,
        )
        stack.callback(cycle.lease.close)
        background_threads = socket is not None or config.auto_sleep
        guard = ClockGuard(store=store.clock, clock=clock) if given is None else None
        if guard:
            guard.look()
            stack.callback(guard.close)
        forgetting = Forgetting(
            store=store,
            cycle=cycle,
            clock=clock,
            database=database,
            retention=retention(config),
            background=background_threads,
            guard=guard,
        )
        stack.callback(forgetting.purger.close)
        forgetting.mend_later()  # what a crash left emptied
        forgetting.purger.start()
        vectors = _vectors(config.embedding, store.vectors)
        if vectors:
            stack.enter_context(vectors)
        service = MemoryService(
            store=store,
            cycle=cycle,
            clock=clock,
            limits=service_limits(config, summarizer),
            about=About(
                version=__version__,
                database=database,
                schema_version=store.schema_version,
            ),
            forgetting=forgetting,
            vectors=vectors,
        )
        if not background_threads:
            yield OpenMemory(service, cycle, forgetting, None, clock, config)
            return
        background = Background(
            store=store,
            cycle=cycle,
            clock=aging,
            zone=get_localzone(),
            machine=machine_now,
            policy=background_policy(config),
        )

        def sleep(
            trigger: Trigger, selection: Selection | None = None
        ) -> CycleReport | None:
            report = background.sleep(trigger, selection)
            forgetting.tidy()
            return report

        def relieve() -> None:
            service.relieve(rules_only=bool(background.refusal()))
            forgetting.tidy()

        watch = Watch(activity=background.activity, now=background.now, sleep=sleep)
        watch.triggers = sleep_triggers(config)
        scheduler = SleepScheduler(
            sleep=sleep,
            relieve=relieve,
            look=watch.look,
            tick_s=config.sleep.tick_s,
        )
        set_schedule(scheduler, config)
        with scheduler:
            service.use_scheduler(scheduler, background)
            try:
                yield OpenMemory(
                    service,
                    cycle,
                    forgetting,
                    scheduler,
                    clock,
                    config,
                    background,
                    watch,
                )
            finally:
                cycle.lease.interrupt()


def check_settings(config: Config) -> None:
    """Hold settings to the rules of the parts they are for. Raises `ConfigInvalid`."""
    _ = config.database_path, config.socket_path
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)
    summarizer = make_summarizer(config, SystemClock())
    service_limits(config, summarizer)
    summarizer.close()


def final_consolidation(
    memory: OpenMemory, config: Config, *, keep_going: Callable[[], bool]
) -> CycleReport:
    """The cycle at the end, within `sleep.shutdown_deadline_s`, while `keep_going` returns True."""
    return final.final_consolidation(
        memory.cycle, deadline_s=config.sleep.shutdown_deadline_s, keep_going=keep_going
    )


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
    """What keeps vectors of the memories, where a model for them is configured."""
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
