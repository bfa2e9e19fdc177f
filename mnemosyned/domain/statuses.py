"""States of the models and activity of the agents, as `status` reports them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SummarizerState(StrEnum):
    """Who writes the next summary."""

    RULES = "rules"
    """No model is configured."""
    MODEL = "model"
    FALLBACK = "fallback"
    """A model is configured and left alone for a while, or for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerStatus:
    """The summarizer in force as `status` shows it, with its counts since the start."""

    name: str
    reason: str
    """Why it is in force, in one sentence."""
    state: SummarizerState = SummarizerState.RULES
    accepted: int = 0
    """Summaries of the model that were kept."""
    retried: int = 0
    """Groups the model was asked twice about, as its first answer was not kept."""
    rejected: int = 0
    """Groups of which no answer of the model was kept."""
    fallbacks: int = 0
    """Summaries by rule in the place of the model's, for whatever reason."""
    sentences: int = 0
    """Sentences that a small model wrote."""
    sentences_kept: int = 0
    """Those of them that stand in summaries."""


class EmbedderState(StrEnum):
    """Whether recall goes by meaning too."""

    OFF = "off"
    """No model is configured."""
    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderStatus:
    """The embedding model as `status` shows it."""

    state: EmbedderState = EmbedderState.OFF
    name: str = ""
    reason: str = ""
    """Why it is unavailable, in one sentence."""
    embedded: int = 0
    """Memories that have a vector of this model."""
    searched: int = 0
    """Those of them that are found without a word in common: the newest, where memory is full."""
    failed: int = 0
    """Memories it made no vector of since the start; the next start tries them again."""
    missed: int = 0
    """Questions answered by words alone since the start, as it was not ready in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActivity:
    """Activity of one client's hooks on one kind of event."""

    client: str
    event: str
    calls: int
    stored: int
    """Memories stored."""
    characters: int
    """Characters told to the agent."""
    failures: int
    mean_ms: float
    slowest_ms: float
    called_at: datetime
    """When it was last called."""
    stored_at: datetime | None = None
    """When it last stored something."""
    informed_at: datetime | None = None
    """When it last told the agent something."""
    failed_at: datetime | None = None
    failure: str = ""
    """Why it last failed."""
