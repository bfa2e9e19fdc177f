"""Compaction of a conversation: results, the key-facts policy, and summaries by a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from mnemosyned.conversation import key_facts, summary_message
from mnemosyned.conversation.budget import make_exact_fraction
from mnemosyned.conversation.messages import (
    TIME_KEYS,
    CharsCounter,
    Message,
    MessageCounter,
    PartKind,
    count_pinned,
    estimate_tokens,
    find_tool_names,
    group_messages,
    message_id,
    message_parts,
)
from mnemosyned.errors import reason_of
from mnemosyned.text.details import Detail
from mnemosyned.text.frames import neutralize
from mnemosyned.text.secrets.masking import KnownSecrets

KEEP_RECENT = 4
THRESHOLD = 0.8
MAX_TOKENS = 30_000


@dataclass(frozen=True, slots=True)
class RemovedMessage:
    """A message that a compaction removed, with the id to `expand`."""

    id: str
    message: Message


@dataclass(frozen=True, slots=True)
class ConsolidationAudit:
    """Record of a compaction that removed messages, for the policy's callback."""

    messages_removed: int
    summary_length: int
    """Characters."""


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """Decision whether a compaction is due, with the reason."""

    due: bool
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Result of a compaction: the conversation, its token counts, and the messages removed."""

    messages: list[Message]
    """Kept messages are the same objects; a summary has `metadata.kind == "summary"`."""
    policy: str
    counter: str
    """Name of the token counter."""
    tokens_before: int
    tokens_after: int
    limit: int = 0
    """Token limit applied, 0 for none."""
    archived: tuple[RemovedMessage, ...] = ()
    """Messages removed or stubbed, oldest first; `expand` with their ids restores them."""
    summaries: tuple[str, ...] = ()
    """Text of each summary written, without its header."""
    facts: tuple[str, ...] = ()
    """All facts of the summaries, earlier ones included."""
    details: tuple[Detail, ...] = ()
    """Exact values of the archived messages, secrets marked."""
    orphans: tuple[int, ...] = ()
    """Positions, in the input, of tool calls without result and results without call."""
    fallback_reason: str = ""
    """Reason why a rule wrote a summary that a model was asked for."""

    @property
    def changed(self) -> bool:
        """Whether messages were removed, truncated or summarized."""
        return bool(self.archived or self.summaries)

    @property
    def over_budget(self) -> bool:
        """Whether the messages that must stay exceed the limit."""
        return 0 < self.limit < self.tokens_after

    @property
    def expand(self) -> tuple[str, ...]:
        """Ids of the removed messages, as the verb `expand` takes them."""
        return tuple(removed.id for removed in self.archived)

    @property
    def audit(self) -> ConsolidationAudit | None:
        """Record of the compaction for the callback; None if no message was removed."""
        if not self.archived:
            return None
        return ConsolidationAudit(len(self.archived), sum(map(len, self.summaries)))


def mark_as_removed(messages: Iterable[Message]) -> tuple[RemovedMessage, ...]:
    """Return each message as a removed message with its id."""
    return tuple(RemovedMessage(message_id(message), message) for message in messages)


class CompactionPolicy(Protocol):
    """Port of rules for when and how to compact a conversation, without side effects."""

    name: ClassVar[str]

    def due(self, usage: int) -> CompactionDecision:
        """Return whether a conversation of `usage` tokens must be compacted, and why."""
        ...

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        """Return the compaction of a conversation; without old messages, it changes nothing.

        The `keep_recent` newest messages stay, by default the policy's own number.
        """
        ...


def should_compact(policy: CompactionPolicy, usage: int) -> CompactionDecision:
    """Return whether a policy would compact a conversation of `usage` tokens, and why."""
    return policy.due(usage)


def decide_at_threshold(
    usage: int, fraction: float, max_tokens: int
) -> CompactionDecision:
    """Return whether to compact: if `usage` reaches a `fraction` of `max_tokens`; never if that is 0."""
    reached = max_tokens > 0 and usage >= make_exact_fraction(fraction) * max_tokens
    return CompactionDecision(
        reached, f"{fraction:.0%} of {max_tokens:,}" if reached else ""
    )


class SplitConversation:
    """A conversation split into pinned messages, earlier summaries, old messages, and the tail."""

    def __init__(self, messages: Sequence[Message], *, keep: int) -> None:
        """Split messages so that the tail has at least the `keep` newest messages."""
        self.messages = messages
        self.groups = group_messages(messages)
        self.pinned = count_pinned(messages)
        unpinned = range(self.pinned, len(messages))
        summaries = [at for at in unpinned if summary_message.is_summary(messages[at])]
        self.earlier = [summary_message.read_summary(messages[at]) for at in summaries]
        """Contents of the summaries that earlier compactions wrote."""
        known = set(summaries)
        self.live = [at for at in unpinned if at not in known]
        """Positions of messages that are neither pinned nor summaries."""
        self.tail_start = self.pinned
        """First position of the tail: `keep` messages, in whole groups of tool calls."""
        if len(self.live) > keep:
            start = self.live[-keep] if keep > 0 else len(messages)
            pending = self.groups.pending_call
            if pending is not None:  # calls without results yet belong to the tail
                start = min(start, pending)
            self.tail_start = self.groups.cut_before(start)
        self.old = [at for at in self.live if at < self.tail_start]
        self.tail = [at for at in self.live if at >= self.tail_start]

    def unchanged(
        self, tokens: int, *, policy: str, counter: MessageCounter, limit: int
    ) -> Compaction:
        """Return a compaction by the policy named `policy` that changes nothing in the conversation."""
        return Compaction(
            messages=list(self.messages),
            policy=policy,
            counter=counter.name,
            tokens_before=tokens,
            tokens_after=tokens,
            limit=max(0, limit),
            facts=summary_message.merge_summaries(self.earlier).facts,
            orphans=self.groups.orphans,
        )

    def messages_at(self, positions: Sequence[int]) -> list[Message]:
        """Return the messages at these positions, in the order of `positions`."""
        return [self.messages[position] for position in positions]


class MemoryConsolidator:
    """Policy that replaces all but the newest messages with one summary of key facts.

    `on_audit` is called after each consolidation that removed messages. Facts of an earlier
    summary come first in the new summary; without new messages nothing changes.
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
        """Compact from the share `threshold_pct` (0 to 1) of `max_tokens` on."""
        self.threshold_pct = threshold_pct
        self.max_tokens = max_tokens
        self.keep_recent = max(0, keep_recent)
        self._on_audit = on_audit
        self._counter = counter or CharsCounter()

    def should_consolidate(self, current_tokens: int) -> bool:
        """Return True if `current_tokens` reach the threshold; never with a limit of 0 or less."""
        return self.due(current_tokens).due

    def due(self, usage: int) -> CompactionDecision:
        """Return whether to compact: if `usage` tokens reach the threshold of the window."""
        return decide_at_threshold(usage, self.threshold_pct, self.max_tokens)

    def consolidate(
        self,
        messages: Sequence[Message],
        system_prompt: str = "",  # noqa: ARG002 never consolidated
    ) -> tuple[list[Message], str]:
        """Return the compacted conversation and the summary's text, empty without a summary."""
        done = self.compact(messages)
        return done.messages, done.summaries[0] if done.summaries else ""

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        """Return a conversation with a summary in place of old messages, and call the audit callback.

        All but the `keep_recent` newest messages are replaced by a summary of their key facts.
        """
        keep = self.keep_recent if keep_recent is None else keep_recent
        split = SplitConversation(messages, keep=keep)
        unchanged = split.unchanged(
            sum(map(self._counter.message, messages)),
            policy=self.name,
            counter=self._counter,
            limit=self.max_tokens,
        )
        if not split.old:
            return unchanged
        old = split.messages_at(split.old)
        archived = mark_as_removed(old)
        earlier = summary_message.convert_prose_to_facts(
            summary_message.merge_summaries(split.earlier)
        )
        ids = (removed.id for removed in archived)
        content = summary_message.SummaryContent(
            facts=key_facts.merge_lists(earlier.facts, key_facts.extract_facts(old)),
            summary_of=key_facts.merge_lists(earlier.summary_of, ids),
        )
        listed = (
            key_facts.write_bullets(map(neutralize, content.facts))
            or f"- {summary_message.NO_FACTS} [expand {content.id}]"
        )
        text = f"{summary_message.SESSION_HEADER}\n\n{listed}"
        summary = summary_message.make_summary_message(text, content, policy=self.name)
        kept = [*messages[: split.pinned], summary, *split.messages_at(split.tail)]
        done = replace(
            unchanged,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=archived,
            summaries=(summary_message.remove_header(summary["content"]),),
            facts=tuple(summary["metadata"]["facts"]),
        )
        if self._on_audit and done.audit:
            self._on_audit(done.audit)
        return done

    @staticmethod
    def estimate_tokens(messages: Sequence[Message]) -> int:
        """Return the weighted characters of all messages divided by four, an estimate of their tokens."""
        return estimate_tokens(messages)


PART_CHARS_MAX = 4_000
"""Characters shown of one tool result or call; the rest adds little."""

SummarizeMessages = Callable[[Sequence[Message]], str]
"""Function that returns a summary of plain messages; an earlier summary comes first, with the role `summary`.
If it raises an error or returns nothing, the built-in extractive summary is used."""


def summarize_with_model(
    summarize: SummarizeMessages | None,
    messages: Sequence[Message],
    *,
    fits: Callable[[str], bool],
    earlier: str = "",
    secrets: Sequence[Detail] = (),
) -> tuple[str, str]:
    """Return (a model's summary, why there is none); both are empty without a model or messages.

    `summarize` asks the model. `fits` says whether the summary is short enough. `earlier` is a summary to be
    merged in, and `secrets` are masked first.
    """
    if summarize is None or not messages:
        return "", ""
    plain = write_plain_messages(messages, earlier=earlier, secrets=secrets)
    try:
        prose = summarize(plain)
    except Exception as error:  # noqa: BLE001 a rule writes the summary instead
        return "", reason_of(error)
    prose = prose.strip() if isinstance(prose, str) else ""
    if not prose:
        return "", "the model answered nothing"
    return (prose, "") if fits(prose) else ("", "the model's summary is too long")


def write_plain_messages(
    messages: Sequence[Message], *, earlier: str = "", secrets: Sequence[Detail] = ()
) -> list[Message]:
    """Return messages as plain text: tool calls in words, secrets masked, `earlier` summary first."""
    names = find_tool_names(messages)
    known = KnownSecrets(secrets)
    plain: list[Message] = []
    if earlier:
        plain.append({"role": "summary", "content": known.mask(earlier)})
    for message in messages:
        lines: list[str] = []
        for part in message_parts(message):
            name = part.name or names.get(part.id) or key_facts.NAMELESS
            shown = part.text[:PART_CHARS_MAX]
            line = {
                PartKind.TEXT: part.text,
                PartKind.CALL: f"calls {name} {shown}",
                PartKind.RESULT: f"{name} answers: {shown}",
            }.get(part.kind, "")
            if line.strip():
                lines.append(line)
        if lines:
            role = message.get("role")
            plain.append(
                {
                    "role": role if isinstance(role, str) else "",
                    "content": known.mask("\n".join(lines)),
                    **{key: message[key] for key in TIME_KEYS if key in message},
                }
            )
    return plain
