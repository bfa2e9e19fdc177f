"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned import __version__
from mnemosyned.config import API_KEY_VARIABLE, NO_MODEL, Config, EmbeddingConfig, LlmConfig
from mnemosyned.domain.consolidation import CycleReport, GroupLimits, Trigger
from mnemosyned.domain.ports import Clock, Summarizer, TextModel, VectorStore
from mnemosyned.domain.sensitive import SecretRule
from mnemosyned.paths import shipped
from mnemosyned.service import About, Limits, MemoryService, SystemClock
from mnemosyned.sleep.cycle import SleepCycle, SleepPolicy
from mnemosyned.sleep.scheduler import SleepScheduler, cron_trigger
from mnemosyned.storage.sqlite import open_store
from mnemosyned.summarizers.sharing import SharingSummarizer

if TYPE_CHECKING:
    from mnemosyned.embedders.vectors import Vectors


@dataclass(slots=True)
class OpenMemory:
    """The parts in force while a memory is open."""

    service: MemoryService
    cycle: SleepCycle
    scheduler: SleepScheduler | None
    clock: Clock
    config: Config

    def reconfigure(self, config: Config) -> None:
        """Take over the settings that need no restart. Raises `ConfigInvalid`."""
        same = (config.llm, config.sleep.summary_ratio) == (
            self.config.llm,
            self.config.sleep.summary_ratio,
        )
        # A model that is loaded stays so, with what is known of it; a key file is read again.
        same = same and config.llm.api_key_file is None
        summarizer = None if same else make_summarizer(config, self.clock)
        if self.scheduler:
            _schedule(self.scheduler, config)
        if summarizer:
            self.cycle.use_summarizer(summarizer)
        self.cycle.policy = _policy(config)
        self.service.use_limits(_limits(config))
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
    clock = clock or SystemClock()
    summarizer = make_summarizer(config, clock)
    with (
        open_store(database, migrations=shipped("migrations"), socket=socket) as store,
        ExitStack() as stack,
    ):
        cycle = SleepCycle(
            store=store,
            summarizer=summarizer,
            clock=clock,
            policy=_policy(config),
        )
        stack.callback(cycle.close)
        vectors = _vectors(config.embedding, store.vectors)
        if vectors:
            stack.enter_context(vectors)
        service = MemoryService(
            store=store,
            cycle=cycle,
            clock=clock,
            limits=_limits(config),
            about=About(
                version=__version__,
                database=database,
                schema_version=store.schema_version,
            ),
            vectors=vectors,
        )
        if socket is None and not config.auto_sleep:
            yield OpenMemory(service, cycle, None, clock, config)
            return
        scheduler = SleepScheduler(
            sleep=lambda trigger: cycle.run(trigger=trigger), relieve=service.relieve
        )
        _schedule(scheduler, config)
        with scheduler:
            service.use_scheduler(scheduler)
            try:
                yield OpenMemory(service, cycle, scheduler, clock, config)
            finally:
                cycle.interrupt()


def check_settings(config: Config) -> None:
    """Hold settings to the rules of the parts they are for. Raises `ConfigInvalid`."""
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)
    make_summarizer(config, SystemClock()).close()


def final_consolidation(
    memory: OpenMemory, config: Config, *, go_on: Callable[[], bool]
) -> CycleReport:
    """The cycle at the end: the age rule holds, the deadline cuts it short between two groups.

    It asks no model: there is no time, and what a model is writing when it begins is ended.
    """
    memory.cycle.interrupt()
    return memory.cycle.run(
        trigger=Trigger.SHUTDOWN,
        quick=True,
        deadline_s=config.sleep.shutdown_deadline_s,
        go_on=go_on,
    )


def make_summarizer(config: Config, clock: Clock) -> Summarizer:
    """The summariser that is configured. Raises `ConfigInvalid`."""
    # Its owner's "yesterday" is a day of the owner's calendar.
    ratio, zone = config.sleep.summary_ratio, get_localzone()
    rules = SharingSummarizer(ratio=ratio, zone=zone)
    model = _language_model(config.llm)
    if model is None:
        return rules
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.summarizers.chain import ChainSummarizer  # noqa: PLC0415
    from mnemosyned.summarizers.model import ModelSummarizer  # noqa: PLC0415

    primary = ModelSummarizer(model=model, ratio=ratio, zone=zone, max_tokens=config.llm.max_tokens)
    return ChainSummarizer(
        primary=primary,
        model=model,
        fallback=rules,
        clock=clock,
        cycle_budget_s=config.llm.cycle_budget_s,
    )


def _language_model(llm: LlmConfig) -> TextModel | None:
    """The model that is configured. Raises `ConfigInvalid` for one that must not be asked."""
    if llm.endpoint:
        from mnemosyned.summarizers.endpoint import EndpointModel, api_key  # noqa: PLC0415

        return EndpointModel(
            endpoint=llm.endpoint,
            model=llm.endpoint_model,
            context_tokens=llm.context_tokens,
            time_limit_s=llm.time_limit_s,
            local_only=llm.local_only,
            key=api_key(llm.api_key_file, variable=os.environ.get(API_KEY_VARIABLE)),
        )
    if llm.model_path and llm.model_path != NO_MODEL:
        from mnemosyned.summarizers.llama import LlamaModel  # noqa: PLC0415

        return LlamaModel(
            model_path=Path(llm.model_path).expanduser(),
            context_tokens=llm.context_tokens,
            threads=llm.threads or max(1, (os.cpu_count() or 1) // 2),
            gpu_layers=llm.gpu_layers,
            nice=llm.nice,
            time_limit_s=llm.time_limit_s,
            idle_s=llm.idle_s,
        )
    return None


def _vectors(embedding: EmbeddingConfig, store: VectorStore) -> Vectors | None:
    """What keeps vectors of the memories, where a model for them is configured."""
    if not embedding.model_path:
        return None
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.embedders.llama import LlamaEmbedder  # noqa: PLC0415
    from mnemosyned.embedders.vectors import Vectors  # noqa: PLC0415

    embedder = LlamaEmbedder(
        model_path=Path(embedding.model_path).expanduser(),
        threads=embedding.threads,
        nice=embedding.nice,
        time_limit_s=embedding.time_limit_s,
        idle_s=embedding.idle_s,
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


def _policy(config: Config) -> SleepPolicy:
    sleep = config.sleep
    return SleepPolicy(
        ttl=timedelta(hours=sleep.ttl_hours),
        groups=GroupLimits(
            entries_max=sleep.group_entries_max,
            chars_max=sleep.group_chars_max,
            pause=timedelta(hours=sleep.group_pause_hours),
        ),
    )


def _limits(config: Config) -> Limits:
    return Limits(
        content_bytes_max=config.limits.content_bytes_max,
        wm_max=config.wm_max,
        secrets=SecretRule(config.secrets),
    )


def _schedule(scheduler: SleepScheduler, config: Config) -> None:
    scheduler.set_schedule(
        auto=config.auto_sleep,
        interval=timedelta(minutes=config.sleep.interval_minutes),
        cron=config.sleep.cron,
    )
