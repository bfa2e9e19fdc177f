"""The line of a memory in the preview of a change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.memory import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewLine:
    """A memory that would be changed or deleted, as a preview shows it."""

    id: str
    tier: Tier
    created_at: datetime
    session: str
    role: str
    snippet: str
