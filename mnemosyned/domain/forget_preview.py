"""The line of a memory in the preview of `forget`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.memory import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPreview:
    """A memory that would go, as a preview shows it."""

    id: str
    tier: Tier
    created_at: datetime
    session: str
    role: str
    snippet: str
