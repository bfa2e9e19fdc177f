"""Policies made from the settings."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path

from mnemosyned.backup_schedule import INTERVALS, Keep
from mnemosyned.config import BACKUP_SCHEDULES, MODEL_TOKENIZER, Config
from mnemosyned.conversation.budget import TokenBudget
from mnemosyned.conversation.messages import FullCounter, MessageCounter
from mnemosyned.errors import ConfigInvalid, InvalidRequest, TokenizerUnusable
from mnemosyned.memory.consolidation import GroupLimits
from mnemosyned.memory.engine_ports import Summarizer
from mnemosyned.memory.forgetting import Retention
from mnemosyned.memory.masking import SecretRule
from mnemosyned.service.intake import Intake
from mnemosyned.service.policies import (
    BackupPolicy,
    HookPolicy,
    Policies,
    WindowPolicy,
    default_counter,
)
from mnemosyned.sleep.policy import (
    BackgroundPolicy,
    Budget,
    RollupPolicy,
    Schedule,
    SleepPolicy,
)
from mnemosyned.sleep.scheduler import cron_trigger
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
from mnemosyned.text.token_counts import TokenEstimator, WithMargin


def make_policies(config: Config, summarizer: Summarizer) -> Policies:
    """Return the policies that the settings describe. Raises `ConfigInvalid`."""
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)
    return Policies(
        intake=Intake(
            content_bytes_max=config.limits.content_bytes_max,
            secrets=SecretRule(config.secrets),
            recognize=config.learnings.recognize,
        ),
        sleep=_sleep_policy(config),
        retention=_retention(config),
        grace_hours=config.forget.grace_hours,
        window=_window_policy(config, summarizer),
        hooks=HookPolicy(capture=config.hooks.capture, tell=config.hooks.tell),
        backup=backup_policy(config),
    )


def _sleep_policy(config: Config) -> SleepPolicy:
    sleep = config.sleep
    return SleepPolicy(
        ttl=timedelta(hours=sleep.ttl_hours),
        wm_max=config.wm_max,
        schedule=Schedule(
            auto=config.auto_sleep,
            interval=timedelta(minutes=sleep.interval_minutes),
            cron=sleep.cron,
            tick_s=sleep.tick_s,
        ),
        triggers=_triggers(config),
        background=_background_policy(config),
        groups=GroupLimits(
            entries_max=sleep.group_entries_max,
            chars_max=sleep.group_chars_max,
            pause=timedelta(hours=sleep.group_pause_hours),
        ),
        rollup=RollupPolicy(
            grace=timedelta(hours=sleep.rollup_delay_hours),
            minimum=sleep.rollup_min_items,
        ),
        budget=Budget(
            time=timedelta(minutes=sleep.cycle_minutes)
            if sleep.cycle_minutes
            else None,
            tokens=sleep.cycle_tokens,
        ),
    )


def _background_policy(config: Config) -> BackgroundPolicy:
    sleep = config.sleep
    begins, _, ends = (sleep.quiet_hours or "").partition("-")
    hours = (
        [QuietHours(time.fromisoformat(begins), time.fromisoformat(ends))]
        if ends
        else []
    )
    return BackgroundPolicy(
        model=ModelWork(
            on_battery=sleep.model_policy != "ac_power",
            idle_only=sleep.model_policy == "idle",
            load_max=sleep.load_max,
            quiet_hours=hours,
        ),
        fresh=timedelta(minutes=sleep.min_age_minutes),
    )


def _triggers(config: Config) -> list[SleepTrigger]:
    """Return the triggers that are switched on, in the order in which they are checked."""
    if not config.auto_sleep:
        return []
    sleep = config.sleep
    fresh = timedelta(minutes=sleep.min_age_minutes)
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
        found.append(Idle(quiet=quiet, gain_min=sleep.idle_min_entries, fresh=fresh))
    return found


def _window_policy(config: Config, summarizer: Summarizer) -> WindowPolicy:
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
    return WindowPolicy(
        budget=budget,
        counter=_counter(context.tokenizer, summarizer),
        model_limit_s=context.model_limit_s,
    )


def _retention(config: Config) -> Retention:
    days = config.archive.keep_days
    return Retention(
        keep=None if days is None else timedelta(days=days),
        characters_max=config.archive.characters_max,
    )


def backup_policy(config: Config) -> BackupPolicy:
    """Return the rules for backups: daily ones where a folder is set and no schedule."""
    backup = config.backup
    schedule = backup.schedule or ("daily" if backup.dir else "off")
    has_name = schedule in BACKUP_SCHEDULES
    if not has_name:
        cron_trigger(schedule, key="backup.schedule")
    return BackupPolicy(
        folder=config.backup_folder,
        interval=INTERVALS.get(schedule),
        cron=None if has_name else schedule,
        keep=Keep.parse(str(backup.keep)),
    )


def _counter(tokenizer: str | None, summarizer: Summarizer) -> MessageCounter:
    """Return the counter of the tokens of contexts. Raises `ConfigInvalid`."""
    if tokenizer is None:
        return default_counter()
    # Loaded here: the estimate needs none of them.
    from mnemosyned.models.tokenizers import (  # noqa: PLC0415
        ModelCounter,
        open_counter,
    )

    if tokenizer == MODEL_TOKENIZER:
        model = summarizer.model
        if model is None:
            raise ConfigInvalid(
                'context.tokenizer is "model", but no model is configured; name one in llm, or a '
                "tokenizer's file",
                field="context.tokenizer",
            )
        return FullCounter(ModelCounter(model, otherwise=WithMargin(TokenEstimator())))
    try:
        return FullCounter(open_counter(Path(tokenizer).expanduser()))
    except TokenizerUnusable as error:
        raise ConfigInvalid(
            f"context.tokenizer: {error.message}", field="context.tokenizer"
        ) from error
