"""A learning: a lesson, an instruction, a preference or a name that applies in later sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class LearningKind(StrEnum):
    """The kind of a learning: agents state lessons; the others are a user's own words."""

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
    """The source it applies to, in every session."""
    memory: str | None = None
    """Id of the memory it was recognized in; none if an agent stated it."""
    superseded_by: str | None = None
    """The newer learning that contradicts it."""
