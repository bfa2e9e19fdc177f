"""Values and port of the ledger of injected context, and of a person's edits of briefings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

INJECTIONS_MAX = 5_000
"""The injections that are kept, the newest ones."""
PROMPT_CHARS_MAX = 200
"""Characters kept of the beginning of a prompt."""
LINE_CHARS_MAX = 600
"""Characters kept of a line."""
BRIEFING_EDITS_MAX = 1_000


class InjectionKind(StrEnum):
    """The occasion of an injection."""

    START = "start"
    PROMPT = "prompt"
    CONTEXT = "context"


class InjectionOutcome(StrEnum):
    """Outcome of an injection: how useful it was."""

    UNKNOWN = "unknown"
    USEFUL = "useful"
    NOT_USEFUL = "not_useful"
    SAID_AGAIN = "said_again"
    """Nothing was injected, and the user repeated what was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedLine:
    """A line given to an agent, with the id of its source and the reason."""

    id: str
    """Id of the memory or learning that it quotes."""
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A text given to an agent, or a failure to give one, as recorded in the ledger."""

    id: str
    created_at: datetime
    client: str
    session: str
    project: str = ""
    kind: InjectionKind
    prompt: str = ""
    """The beginning of the prompt, with secrets masked."""
    characters: int = 0
    tokens: int = 0
    """Estimated tokens of the text."""
    outcome: InjectionOutcome = InjectionOutcome.UNKNOWN
    lines: tuple[InjectedLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionTotals:
    """Sums over the injections that are kept."""

    injections: int = 0
    """Texts that were injected."""
    tokens: int = 0
    useful: int = 0
    not_useful: int = 0
    said_again: int = 0
    """Times that a user repeated what was known and not injected."""
    precision: float | None = None
    """Share of useful ones among the rated; None without a rating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionFilter:
    """Conditions on injections; those that are None match all."""

    session: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    outcome: InjectionOutcome | None = None
    after: str | None = None
    """Only those older than the one with this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingEdit:
    """A person's decision about a line of briefings: pinned, dropped, or reworded."""

    id: str
    """Id of the memory or learning that the line quotes."""
    pinned: bool = False
    dropped: bool = False
    text: str = ""
    """The words to show instead of the source's; empty for none."""
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class BriefingEdits:
    """The edits of briefings by the ids of their lines."""

    by_id: dict[str, BriefingEdit] = field(default_factory=dict)

    def is_dropped(self, id: str) -> bool:
        """Return whether a line was dropped: no agent may get it."""
        return id in self.by_id and self.by_id[id].dropped

    def is_pinned(self, id: str) -> bool:
        """Return whether a line was pinned: briefings begin with it."""
        return id in self.by_id and self.by_id[id].pinned

    def text_of(self, id: str) -> str:
        """Return the words that a person gave to a line; empty if nobody reworded it."""
        return self.by_id[id].text if id in self.by_id else ""
