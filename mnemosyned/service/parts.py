"""The parts of an open memory that do its verbs."""

from __future__ import annotations

from dataclasses import dataclass

from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.vectors import MemoryVectors
from mnemosyned.service.backups.keeper import BackupKeeper
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.sleep.sleeper import Sleeper


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """The parts that `MemoryService` is handed."""

    store: MemoryStore
    sleeper: Sleeper
    retention: RetentionService
    policies: PolicyHolder
    about: About
    keeper: BackupKeeper
    vectors: MemoryVectors | None = None
