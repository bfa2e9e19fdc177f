"""Making a conversation shorter: what every policy answers with, and the Missy seed's policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from mnemosyned.domain.conversation.budget import exact_fraction
from mnemosyned.domain.conversation.key_facts import bullets, extract_facts, unique
from mnemosyned.domain.conversation.message_tokens import (
    CharsCounter,
    MessageCounter,
    estimate_tokens,
)
from mnemosyned.domain.conversation.messages import (
    Message,
    count_pinned,
    group_messages,
    message_id,
)
from mnemosyned.domain.conversation.summary_message import (
    NO_FACTS,
    SESSION_HEADER,
    SummaryContent,
    body_of,
    is_summary,
    merge_summaries,
    prose_to_facts,
    read_summary,
    summary_message,
)
from mnemosyned.domain.memory import Detail

KEEP_RECENT = 4
THRESHOLD = 0.8
MAX_TOKENS = 30_000


@dataclass(frozen=True, slots=True)
class RemovedMessage:
    """A message that a compaction took out, and what it can be asked back by."""

    id: str
    message: Message


@dataclass(frozen=True, slots=True)
class ConsolidationAudit:
    """The record of one compaction; there is none where nothing was removed."""

    messages_removed: int
    summary_length: int
    """Characters."""


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """Whether a policy would compact now, and which of its rules says so."""

    due: bool
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a compaction made of a conversation."""

    messages: list[Message]
    """Those that are kept are the very same; a summary has `metadata.kind == "summary"`."""
    policy: str
    counter: str
    """Who counted the tokens."""
    tokens_before: int
    tokens_after: int
    limit: int = 0
    """What the conversation was held to, 0 for none."""
    archived: tuple[RemovedMessage, ...] = ()
    """The messages taken out or stubbed, oldest first: `expand` with their ids brings them back."""
    summaries: tuple[str, ...] = ()
    """The text of each summary written, without its header."""
    facts: tuple[str, ...] = ()
    """All that the summaries hold, earlier ones included."""
    details: tuple[Detail, ...] = ()
    """The exact values of what was archived, secrets marked."""
    orphans: tuple[int, ...] = ()
    """Tool calls without result, and results without call, as they came in: positions there."""
    fallback_reason: str = ""
    """Why a rule wrote a summary that a model was asked for."""

    @property
    def changed(self) -> bool:
        return bool(self.archived or self.summaries)

    @property
    def over_budget(self) -> bool:
        """Whether what must be kept is itself more than the limit."""
        return 0 < self.limit < self.tokens_after

    @property
    def expand(self) -> tuple[str, ...]:
        """The ids to ask the archive for."""
        return tuple(one.id for one in self.archived)

    @property
    def audit(self) -> ConsolidationAudit | None:
        if not self.archived:
            return None
        return ConsolidationAudit(len(self.archived), sum(map(len, self.summaries)))


class Policy(Protocol):
    """When to compact a conversation, and how; pure."""

    name: ClassVar[str]

    def due(self, usage: int) -> CompactionDecision:
        """Whether so many tokens are too many, by this policy's own operator."""
        ...

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        """The conversation as this policy shortens it; unchanged where there is nothing to do.

        `keep_recent` newest messages stay, instead of the policy's own number.
        """
        ...


def should_compact(policy: Policy, usage: int) -> CompactionDecision:
    """Whether the policy would compact at so many tokens, and by which rule."""
    return policy.due(usage)


def at_threshold(usage: int, fraction: float, max_tokens: int) -> CompactionDecision:
    """Whether usage has reached a fraction of a window; never with a window of 0 or less."""
    reached = max_tokens > 0 and usage >= exact_fraction(fraction) * max_tokens
    return CompactionDecision(
        reached, f"{fraction:.0%} of {max_tokens:,}" if reached else ""
    )


class SplitConversation:
    """A conversation parted into what is pinned, what is old, and the tail that stays."""

    def __init__(self, messages: Sequence[Message], *, keep: int) -> None:
        self.messages = messages
        self.ties = group_messages(messages)
        self.head = count_pinned(messages)
        summaries = [
            at for at in range(self.head, len(messages)) if is_summary(messages[at])
        ]
        self.earlier = [read_summary(messages[at]) for at in summaries]
        """What the summaries hold that are there already, wherever they stand."""
        known = set(summaries)
        self.live = [at for at in range(self.head, len(messages)) if at not in known]
        self.begin = self._tail(keep)
        self.old = [at for at in self.live if at < self.begin]
        self.tail = [at for at in self.live if at >= self.begin]

    def _tail(self, keep: int) -> int:
        """Where the tail begins: no call without its results, and none that still waits."""
        if len(self.live) <= keep:
            return self.head
        begin = self.live[-keep] if keep > 0 else len(self.messages)
        waiting = self.ties.waiting
        return self.ties.cut(begin if waiting is None else min(begin, waiting))

    def take(self, positions: Sequence[int]) -> list[Message]:
        return [self.messages[at] for at in positions]


class MemoryConsolidator:
    """Replaces all but the newest messages by one summary of their key facts.

    Source: the Missy consolidation seed. `on_audit` is told of each consolidation that removed
    something. An earlier summary's facts go into the new one first; with nothing new to
    consolidate, nothing changes.
    """

    name: ClassVar[str] = "facts"

    def __init__(
        self,
        threshold_pct: float = THRESHOLD,
        max_tokens: int = MAX_TOKENS,
        *,
        keep_recent: int = KEEP_RECENT,
        on_audit: Callable[[ConsolidationAudit], object] | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        self.threshold_pct = threshold_pct
        self.max_tokens = max_tokens
        self.keep_recent = max(0, keep_recent)
        self._on_audit = on_audit
        self._counter = counter or CharsCounter()

    def should_consolidate(self, current_tokens: int) -> bool:
        """Whether usage has reached the threshold; never with a budget of 0 or less."""
        return self.due(current_tokens).due

    def due(self, usage: int) -> CompactionDecision:
        return at_threshold(usage, self.threshold_pct, self.max_tokens)

    def consolidate(
        self,
        messages: Sequence[Message],
        system_prompt: str = "",  # noqa: ARG002 it stands apart, so that it is never consolidated
    ) -> tuple[list[Message], str]:
        """The shorter conversation, and the summary's text: empty where nothing was to be done."""
        done = self.compact(messages)
        return done.messages, done.summaries[0] if done.summaries else ""

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        keep = self.keep_recent if keep_recent is None else keep_recent
        divided = SplitConversation(messages, keep=keep)
        before = sum(map(self._counter.message, messages))
        unchanged = Compaction(
            messages=list(messages),
            policy=self.name,
            counter=self._counter.name,
            tokens_before=before,
            tokens_after=before,
            limit=max(0, self.max_tokens),
            facts=merge_summaries(divided.earlier).facts,
            orphans=divided.ties.orphans,
        )
        if not divided.old:
            return unchanged
        old = divided.take(divided.old)
        archived = tuple(RemovedMessage(message_id(one), one) for one in old)
        summary = self._summary(
            prose_to_facts(merge_summaries(divided.earlier)), old, archived
        )
        kept = [*messages[: divided.head], summary, *divided.take(divided.tail)]
        done = replace(
            unchanged,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=archived,
            summaries=(body_of(summary["content"]),),
            facts=tuple(summary["metadata"]["facts"]),
        )
        if self._on_audit and done.audit:
            self._on_audit(done.audit)
        return done

    def _summary(
        self,
        earlier: SummaryContent,
        old: Sequence[Message],
        archived: Sequence[RemovedMessage],
    ) -> dict[str, Any]:
        holds = SummaryContent(
            facts=tuple(unique([*earlier.facts, *extract_facts(old)])),
            summary_of=tuple(
                unique([*earlier.summary_of, *(one.id for one in archived)])
            ),
        )
        listed = bullets(holds.facts) or f"- {NO_FACTS} [expand {holds.id}]"
        return summary_message(f"{SESSION_HEADER}\n\n{listed}", holds, policy=self.name)

    @staticmethod
    def estimate_tokens(messages: Sequence[Message]) -> int:
        """Characters of all messages over four."""
        return estimate_tokens(messages)
