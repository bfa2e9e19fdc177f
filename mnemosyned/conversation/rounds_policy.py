"""Rounds policy of compaction: messages of the user stay, the agent's work between them is summarized.

A round is the work of the agent between two messages of the user. Each finished round becomes one
summary in its place; the last is compacted only if the conversation is still over the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from mnemosyned.conversation import compaction
from mnemosyned.conversation.key_facts import (
    CONCLUSION,
    excerpt_highlights,
    excerpt_last_sentences,
    extract_facts,
    remove_repetitions,
)
from mnemosyned.conversation.messages import (
    FullCounter,
    Message,
    MessageCounter,
    MessageGroups,
    PartKind,
    count_pinned,
    is_intent,
    is_system,
    message_parts,
    message_text,
)
from mnemosyned.conversation.summary_message import (
    ROUND_HEADER,
    SummaryContent,
    is_summary,
    make_summary_message,
    merge_summaries,
    read_summary,
    remove_header,
    render_summary,
)
from mnemosyned.text.token_counts import TokenEstimator

TOKEN_LIMIT = 80_000


class RoundsPolicy:
    """Policy with a summary for each round; messages of the system and the user stay."""

    name: ClassVar[str] = "rounds"

    def __init__(
        self,
        token_limit: int = TOKEN_LIMIT,
        *,
        keep_last: int = compaction.KEEP_RECENT,
        summarize: compaction.SummarizeMessages | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        """Compact above `token_limit`; the `keep_last` newest messages of the last round stay."""
        self.token_limit = token_limit
        self.keep_last = max(0, keep_last)
        self._summarize = summarize
        self._counter = counter or FullCounter(TokenEstimator())

    def due(self, usage: int) -> compaction.CompactionDecision:
        """Decide to compact if `usage` tokens are more than the limit, but not at the limit."""
        over = usage > self.token_limit
        return compaction.CompactionDecision(
            over, f"over {self.token_limit:,}" if over else ""
        )

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> compaction.Compaction:
        """Above the limit, replace the agent's work in earlier rounds by shorter summaries.

        A round is the work between two messages of the user. If that is not enough, the last round
        is summarized as well, except its `keep_recent` newest messages.
        """
        keep = self.keep_last if keep_recent is None else keep_recent
        tokens = sum(map(self._counter.message, messages))
        split = compaction.SplitConversation(messages, keep=keep)
        unchanged = split.unchanged(
            tokens, policy=self.name, counter=self._counter, limit=self.token_limit
        )
        if not self.due(tokens).due:
            return unchanged
        immovable = _mark_immovable_messages(messages, split.groups)
        last_round = _find_last_round_start(messages, immovable)
        done = self._summarize_runs(
            unchanged, _find_compactable_runs(immovable, 0, last_round)
        )
        if not self.due(done.tokens_after).due:
            return done
        end = max(last_round, split.tail_start)
        removed = len(messages) - len(done.messages)
        runs = _find_compactable_runs(
            immovable[removed:], last_round - removed, end - removed
        )
        return self._summarize_runs(done, runs)

    def _summarize_runs(
        self, done: compaction.Compaction, runs: Iterator[range]
    ) -> compaction.Compaction:
        """Return the compaction with each run of messages replaced by a shorter summary.

        A run is a range of positions in the compaction's messages; one whose summary would be
        longer is left.
        """
        messages = done.messages
        kept: list[Message] = []
        made: list[_RoundSummary] = []
        copied = 0
        for run in runs:
            summary = self._summarize_run(messages[run.start : run.stop])
            if summary:
                kept += [*messages[copied : run.start], summary.message]
                copied = run.stop
                made.append(summary)
        kept += messages[copied:]
        removed = (message for summary in made for message in summary.archived)
        bodies = (remove_header(summary.message["content"]) for summary in made)
        reasons = (summary.fallback_reason for summary in made)
        return replace(
            done,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=(*done.archived, *removed),
            summaries=(*done.summaries, *bodies),
            facts=_merge_summary_facts(kept),
            fallback_reason=done.fallback_reason or next(filter(None, reasons), ""),
        )

    def _summarize_run(self, run: Sequence[Message]) -> _RoundSummary | None:
        """Return the summary of successive messages; None if nothing is new or it would be longer.

        Summaries among the messages are merged into it.
        """
        old = [message for message in run if not is_summary(message)]
        if not old:
            return None
        earlier = merge_summaries(map(read_summary, filter(is_summary, run)))
        archived = compaction.mark_as_removed(old)
        ids = (removed.id for removed in archived)
        content = SummaryContent(
            facts=tuple(
                remove_repetitions(
                    [*earlier.facts, *extract_facts(old, excerpt=excerpt_highlights)]
                )
            ),
            values=earlier.values,
            summary_of=tuple(remove_repetitions([*earlier.summary_of, *ids])),
        )
        room = sum(map(self._counter.message, run))

        def make_message(prose: str) -> dict[str, Any] | None:
            """Return the summary message with this prose; None if not shorter than the run."""
            body = render_summary(content.facts, header=ROUND_HEADER, prose=prose)
            message = make_summary_message(
                body, replace(content, prose=prose), policy=self.name
            )
            return message if self._counter.message(message) < room else None

        if make_message("") is None:
            return None
        prose, reason = compaction.summarize_with_model(
            self._summarize,
            old,
            earlier=earlier.prose,
            fits=lambda prose: make_message(prose) is not None,
        )
        by_rule = (earlier.prose, describe_actions(old))
        message = make_message(prose or "\n".join(filter(None, by_rule)))
        return _RoundSummary(message, archived, reason) if message else None


class _RoundSummary(NamedTuple):
    """Summary message of a round, its originals, and the reason if a model failed."""

    message: dict[str, Any]
    archived: tuple[compaction.RemovedMessage, ...]
    fallback_reason: str


def describe_actions(messages: Sequence[Message]) -> str:
    """Return in words what an agent did: number of messages, tools called, last sentences."""
    tools = Counter(
        part.name or "tool"
        for message in messages
        for part in message_parts(message)
        if part.kind is PartKind.CALL
    )
    called = ", ".join(
        f"{name} ×{count}" if count > 1 else name for name, count in tools.items()
    )
    heading = f"{len(messages)} messages"
    if called:
        heading += f", tools called: {called}"
    texts = (message_text(message).strip() for message in reversed(messages))
    closing = excerpt_last_sentences(next(filter(None, texts), ""))
    return f"{heading}\n{CONCLUSION}{closing}" if closing else heading


def _merge_summary_facts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the facts of the summaries among messages."""
    return merge_summaries(map(read_summary, filter(is_summary, messages))).facts


def _mark_immovable_messages(
    messages: Sequence[Message], groups: MessageGroups
) -> list[bool]:
    """Return for each message whether it must stay, as messages of system and user do.

    With such a message its whole group of tool calls and results stays.
    """
    marks = [
        is_system(message) or (is_intent(message) and not is_summary(message))
        for message in messages
    ]
    for begin, end in pairwise(groups.cuts):
        if end - begin > 1 and any(marks[begin:end]):
            marks[begin:end] = [True] * (end - begin)
    return marks


def _find_last_round_start(
    messages: Sequence[Message], immovable: Sequence[bool]
) -> int:
    """Return the position after the user's last message; without one, after the pinned messages.

    `immovable` tells of each message whether it stays; only a message that does counts.
    """
    intents = [
        position
        for position, stays in enumerate(immovable)
        if stays and is_intent(messages[position])
    ]
    return intents[-1] + 1 if intents else count_pinned(messages)


def _find_compactable_runs(
    immovable: Sequence[bool], begin: int, end: int
) -> Iterator[range]:
    """Yield the longest ranges of positions from `begin` to `end` without an immovable message."""
    start = begin
    for position in range(begin, end + 1):
        if position == end or immovable[position]:
            if position > start:
                yield range(start, position)
            start = position + 1
