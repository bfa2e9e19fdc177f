"""Policies: all settings that may change while the memory is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mnemosyned.backup_schedule import Keep
from mnemosyned.conversation.budget import TokenBudget
from mnemosyned.conversation.messages import FullCounter, MessageCounter
from mnemosyned.memory.forgetting import Retention
from mnemosyned.service.intake import Intake
from mnemosyned.sleep.policy import SleepPolicy
from mnemosyned.text.token_counts import TokenEstimator, WithMargin


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The installation: facts that do not change while the memory is open."""

    version: str
    database: str
    """Where the memory is, as it may be shown."""
    file: Path | None
    """The database's file; None where it is on a server."""
    schema_version: int
    in_background: bool = False
    """Whether threads work in the background: not in a program that embeds the memory."""
    is_shared: bool = False
    """Whether the database holds memories of other owners, too."""


def default_counter() -> MessageCounter:
    """Return the counter used without a tokenizer: the estimate, with a margin for budgets."""
    return FullCounter(WithMargin(TokenEstimator()))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPolicy:
    """Defaults for requests that set no limits of their own."""

    budget: TokenBudget = field(default_factory=TokenBudget)
    counter: MessageCounter = field(default_factory=default_counter)
    model_limit_s: float = 20.0
    """Time limit of all model calls of one compaction together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPolicy:
    """Policy of the hooks of agents' tools."""

    capture: bool = True
    """Whether what was said is stored."""
    tell: bool = True
    """Whether agents are told of earlier sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPolicy:
    """When the daemon makes backups by itself, where, and how many it keeps."""

    folder: Path | None = None
    """None: `backups` next to the database."""
    interval: timedelta | None = None
    cron: str | None = None
    """Five fields in UTC, in place of the interval."""
    keep: Keep = field(default_factory=Keep)

    @property
    def scheduled(self) -> bool:
        """Whether there is a schedule."""
        return bool(self.interval or self.cron)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """One set of policies."""

    intake: Intake = field(default_factory=Intake)
    sleep: SleepPolicy = field(default_factory=SleepPolicy)
    retention: Retention = field(default_factory=Retention)
    window: WindowPolicy = field(default_factory=WindowPolicy)
    hooks: HookPolicy = field(default_factory=HookPolicy)
    backup: BackupPolicy = field(default_factory=BackupPolicy)
    grace_hours: float = 0
    """So long what is forgotten can be put back."""


class PolicyHolder:
    """The set in force, which every part that follows a policy reads when it needs it.

    A reload of the settings replaces `current`.
    """

    def __init__(self, policies: Policies) -> None:
        self.current = policies
        self.restart_needed: tuple[str, ...] = ()
        """Settings that were changed, and are in force only after a restart."""

    @property
    def intake(self) -> Intake:
        """The rules for new memories."""
        return self.current.intake

    @property
    def sleep(self) -> SleepPolicy:
        """The rules of sleep."""
        return self.current.sleep

    @property
    def retention(self) -> Retention:
        """How much of the archive keeps its text."""
        return self.current.retention

    @property
    def window(self) -> WindowPolicy:
        """The defaults of `context` and `compact`."""
        return self.current.window

    @property
    def hooks(self) -> HookPolicy:
        """Policy of the hooks of agents' tools."""
        return self.current.hooks

    @property
    def backup(self) -> BackupPolicy:
        """The rules for backups."""
        return self.current.backup
