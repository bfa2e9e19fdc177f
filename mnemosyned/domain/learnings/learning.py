"""The values of what was learned for good: lessons, instructions, preferences, a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class LearningKind(StrEnum):
    """What a learning is: agents state lessons, all else are a user's own words."""

    INSTRUCTION = "instruction"
    PREFERENCE = "preference"
    NAME = "name"
    LESSON = "lesson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A lesson, instruction or preference, in the words it was stated in."""

    id: str
    kind: LearningKind
    text: str
    created_at: datetime
    session: str
    source: str | None = None
    """Whose learning it is: it holds in every session of this source."""
    memory: str | None = None
    """The memory whose words they are; none where an agent stated them."""
    superseded_by: str | None = None
    """The newer learning that contradicts it."""
