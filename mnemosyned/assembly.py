"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned import __version__
from mnemosyned.config import (
    API_KEY_VARIABLE,
    MODEL_TOKENIZER,
    NO_MODEL,
    Config,
    EmbeddingConfig,
    LlmConfig,
)
from mnemosyned.contexts import WindowSettings, estimating
from mnemosyned.domain.budget import TokenBudget
from mnemosyned.domain.consolidation import CycleReport, GroupLimits, Selection, Trigger
from mnemosyned.domain.counting import FullCounter, MessageCounter
from mnemosyned.domain.errors import ConfigInvalid, InvalidRequest, TokenizerUnusable
from mnemosyned.domain.forgetting import Retention
from mnemosyned.domain.model_ports import Summarizer, TextModel, VectorStore
from mnemosyned.domain.ports import Clock
from mnemosyned.domain.sensitive import SecretRule
from mnemosyned.domain.tokens import Estimated, WithMargin
from mnemosyned.forgetting import Forgetting
from mnemosyned.paths import shipped
from mnemosyned.service import About, Limits, MemoryService, SystemClock
from mnemosyned.sleep import final
from mnemosyned.sleep.background import Background, BackgroundPolicy
from mnemosyned.sleep.budget import Budget
from mnemosyned.sleep.company import Company
from mnemosyned.sleep.cycle import SleepCycle, SleepPolicy
from mnemosyned.sleep.fold import LevelPolicy
from mnemosyned.sleep.machine import SteadyClock, machine_now
from mnemosyned.sleep.scheduler import SleepScheduler, cron_trigger
from mnemosyned.sleep.triggers import (
    Age,
    Count,
    Idle,
    ModelWork,
    QuietHours,
    Size,
    SleepTrigger,
    Tokens,
)
from mnemosyned.sleep.watch import Watch
from mnemosyned.storage.sqlite import open_store
from mnemosyned.summarizers.sharing import SharingSummarizer

if TYPE_CHECKING:
    from mnemosyned.embedders.vectors import Vectors


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
        summarizer = None if same else make_summarizer(config, self.clock, self.cycle.company)
        limits = _limits(config, summarizer or self.cycle.summarizer)
        if self.scheduler:
            _schedule(self.scheduler, config)
        if self.background and self.watch:
            self.background.policy = _background(config)
            self.watch.triggers = _triggers(config)
        if summarizer:
            self.cycle.use_summarizer(summarizer)
        self.cycle.policy = _policy(config)
        self.service.use_limits(limits)
        self.forgetting.retention = _retention(config)
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
    company = Company()
    summarizer = make_summarizer(config, clock, company)
    with (
        open_store(database, migrations=shipped("migrations"), socket=socket) as store,
        ExitStack() as stack,
    ):
        policy = _policy(config)
        # A clock that tests move is to be believed.
        aging = SteadyClock(clock, hold=policy.ttl / 2) if given is None else clock
        cycle = SleepCycle(
            store=store,
            summarizer=summarizer,
            clock=clock,
            policy=policy,
            age_clock=aging,
            company=company,
        )
        stack.callback(cycle.close)
        forgetting = Forgetting(
            store=store,
            cycle=cycle,
            clock=clock,
            database=database,
            retention=_retention(config),
        )
        forgetting.mend()  # what a crash left emptied
        vectors = _vectors(config.embedding, store.vectors)
        if vectors:
            stack.enter_context(vectors)
        service = MemoryService(
            store=store,
            cycle=cycle,
            clock=clock,
            limits=_limits(config, summarizer),
            about=About(
                version=__version__,
                database=database,
                schema_version=store.schema_version,
            ),
            forgetting=forgetting,
            vectors=vectors,
        )
        if socket is None and not config.auto_sleep:
            yield OpenMemory(service, cycle, forgetting, None, clock, config)
            return
        background = Background(
            store=store,
            cycle=cycle,
            clock=aging,
            zone=get_localzone(),
            machine=machine_now,
            policy=_background(config),
        )

        def sleep(trigger: Trigger, selection: Selection | None = None) -> CycleReport | None:
            report = background.sleep(trigger, selection)
            forgetting.tidy()
            return report

        def relieve() -> None:
            service.relieve(quick=bool(background.refusal()))
            forgetting.tidy()

        watch = Watch(activity=background.activity, now=background.now, sleep=sleep)
        watch.triggers = _triggers(config)
        scheduler = SleepScheduler(
            sleep=sleep,
            relieve=relieve,
            look=watch.look,
            tick_s=config.sleep.tick_s,
        )
        _schedule(scheduler, config)
        with scheduler:
            service.use_scheduler(scheduler, background)
            try:
                yield OpenMemory(
                    service, cycle, forgetting, scheduler, clock, config, background, watch
                )
            finally:
                cycle.interrupt()


def check_settings(config: Config) -> None:
    """Hold settings to the rules of the parts they are for. Raises `ConfigInvalid`."""
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)
    summarizer = make_summarizer(config, SystemClock())
    _limits(config, summarizer)
    summarizer.close()


def final_consolidation(
    memory: OpenMemory, config: Config, *, go_on: Callable[[], bool]
) -> CycleReport:
    """The cycle at the end, within `sleep.shutdown_deadline_s`, as long as `go_on` says yes."""
    return final.final_consolidation(
        memory.cycle, deadline_s=config.sleep.shutdown_deadline_s, go_on=go_on
    )


def make_summarizer(config: Config, clock: Clock, company: Company | None = None) -> Summarizer:
    """The summariser that is configured, which spares `company`. Raises `ConfigInvalid`."""
    # Its owner's "yesterday" is a day of the owner's calendar.
    ratio, zone = config.sleep.summary_ratio, get_localzone()
    company = company or Company()
    rules = SharingSummarizer(ratio=ratio, zone=zone, present=lambda: company.present)
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
        levels=LevelPolicy(grace=timedelta(hours=sleep.fold_grace_hours), minimum=sleep.fold_min),
        budget=Budget(
            time=timedelta(minutes=sleep.cycle_minutes) if sleep.cycle_minutes else None,
            tokens=sleep.cycle_tokens,
        ),
    )


def _background(config: Config) -> BackgroundPolicy:
    sleep = config.sleep
    begins, _, ends = (sleep.quiet_hours or "").partition("-")
    hours = [QuietHours(time.fromisoformat(begins), time.fromisoformat(ends))] if ends else []
    return BackgroundPolicy(
        model=ModelWork(
            on_battery=sleep.when != "ac_power",
            idle_only=sleep.when == "idle",
            load_max=sleep.load_max,
            quiet_hours=hours,
        ),
        fresh=timedelta(minutes=sleep.fresh_minutes),
    )


def _triggers(config: Config) -> list[SleepTrigger]:
    """Those that are switched on, in the order in which they are asked."""
    if not config.auto_sleep:
        return []
    sleep = config.sleep
    fresh = timedelta(minutes=sleep.fresh_minutes)
    found: list[SleepTrigger] = [Size(rows_max=config.wm_max, bytes_max=sleep.on_bytes)]
    if sleep.on_age:
        slack = timedelta(minutes=sleep.age_slack_minutes)
        found.append(Age(ttl=timedelta(hours=sleep.ttl_hours), slack=slack))
    if sleep.on_session_tokens:
        found.append(Tokens(budget=sleep.on_session_tokens))
    if sleep.on_count:
        found.append(Count(entries=sleep.on_count, fresh=fresh))
    if sleep.on_idle_minutes:
        quiet = timedelta(minutes=sleep.on_idle_minutes)
        found.append(Idle(quiet=quiet, gain_min=sleep.gain_min, fresh=fresh))
    return found


def _limits(config: Config, summarizer: Summarizer) -> Limits:
    """What the service takes and keeps to. Raises `ConfigInvalid`."""
    context = config.context
    try:
        budget = TokenBudget(
            total=context.total,
            system_reserve=context.system_reserve,
            tool_definitions_reserve=context.tools_reserve,
            memory_fraction=context.memory_fraction,
            learnings_fraction=context.learnings_fraction,
            fresh_tail_count=context.fresh_tail,
        )
    except InvalidRequest as error:
        raise ConfigInvalid(f"context: {error.message}", field="context") from error
    return Limits(
        content_bytes_max=config.limits.content_bytes_max,
        wm_max=config.wm_max,
        secrets=SecretRule(config.secrets),
        recognise=config.learnings.recognise,
        window=WindowSettings(
            budget=budget,
            counter=_counter(context.tokenizer, summarizer),
            model_limit_s=context.model_limit_s,
        ),
    )


def _retention(config: Config) -> Retention:
    days = config.archive.keep_days
    return Retention(
        keep=None if days is None else timedelta(days=days),
        characters_max=config.archive.characters_max,
    )


def _counter(tokenizer: str | None, summarizer: Summarizer) -> MessageCounter:
    """Who counts the tokens of contexts. Raises `ConfigInvalid`."""
    if tokenizer is None:
        return estimating()
    # Loaded here: the estimate needs none of them.
    from mnemosyned.tokenizers import ModelCounter, open_counter  # noqa: PLC0415

    if tokenizer == MODEL_TOKENIZER:
        model = summarizer.model
        if model is None:
            raise ConfigInvalid(
                'context.tokenizer is "model", but no model is configured; name one in llm, or a '
                "tokenizer's file",
                field="context.tokenizer",
            )
        return FullCounter(ModelCounter(model, otherwise=WithMargin(Estimated())))
    try:
        return FullCounter(open_counter(Path(tokenizer).expanduser()))
    except TokenizerUnusable as error:
        raise ConfigInvalid(
            f"context.tokenizer: {error.message}", field="context.tokenizer"
        ) from error


def _schedule(scheduler: SleepScheduler, config: Config) -> None:
    scheduler.set_schedule(
        auto=config.auto_sleep,
        interval=timedelta(minutes=config.sleep.interval_minutes),
        cron=config.sleep.cron,
    )
