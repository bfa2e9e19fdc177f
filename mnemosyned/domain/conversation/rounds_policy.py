"""The Mini-Agent seed's policy: what the user says stays, what the agent did in a round is told.

A round is what the agent does between two messages of the user's. Each finished one becomes one
summary in its place; the last is left alone unless the conversation is still over the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from mnemosyned.domain.conversation.key_facts import extract_facts, unique
from mnemosyned.domain.conversation.message_tokens import FullCounter, MessageCounter
from mnemosyned.domain.conversation.messages import (
    Message,
    MessageGroups,
    PartKind,
    count_pinned,
    group_messages,
    is_intent,
    is_system,
    message_id,
    parts,
    text,
)
from mnemosyned.domain.conversation.model_summary import Summarize, summarize_with_model
from mnemosyned.domain.conversation.policy import (
    KEEP_RECENT,
    Compaction,
    CompactionDecision,
    RemovedMessage,
)
from mnemosyned.domain.conversation.summary_message import (
    ROUND_HEADER,
    SummaryContent,
    SummaryLayout,
    body_of,
    is_summary,
    merge_summaries,
    read_summary,
    render_summary,
    summary_message,
)
from mnemosyned.domain.text.token_estimate import Estimated

TOKEN_LIMIT = 80_000
CLOSING_CHARS = 200
"""Of the agent's last words in a round, where no rule finds a fact in them."""


class RoundsPolicy:
    """Keeps the system's and all of the user's messages; compacts what lies between them."""

    name: ClassVar[str] = "rounds"

    def __init__(
        self,
        token_limit: int = TOKEN_LIMIT,
        *,
        keep_last: int = KEEP_RECENT,
        summarize: Summarize | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        self.token_limit = token_limit
        self.keep_last = max(0, keep_last)
        self._summarize = summarize
        self._counter = counter or FullCounter(Estimated())

    def due(self, usage: int) -> CompactionDecision:
        """More than the limit; exactly the limit is not."""
        over = usage > self.token_limit
        return CompactionDecision(over, f"over {self.token_limit:,}" if over else "")

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        keep = self.keep_last if keep_recent is None else keep_recent
        tokens = sum(map(self._counter.message, messages))
        known = group_messages(messages)
        done = Compaction(
            messages=list(messages),
            policy=self.name,
            counter=self._counter.name,
            tokens_before=tokens,
            tokens_after=tokens,
            limit=max(0, self.token_limit),
            facts=merge_summaries(
                map(read_summary, filter(is_summary, messages))
            ).facts,
            orphans=known.orphans,
        )
        if not self.due(tokens).due:
            return done
        fixed = _immovable(messages, known)
        said = [
            at for at, stays in enumerate(fixed) if stays and is_intent(messages[at])
        ]
        last = said[-1] if said else count_pinned(messages) - 1
        done = self._told(done, messages, _runs(fixed, 0, last + 1))
        if self.due(done.tokens_after).due:
            begin, end = _last_round_range(messages, known, fixed, last + 1, keep=keep)
            rest = len(messages) - len(done.messages)
            done = self._told(
                done, done.messages, _runs(fixed[rest:], begin - rest, end - rest)
            )
        return done

    def _told(
        self, done: Compaction, messages: Sequence[Message], runs: Iterator[range]
    ) -> Compaction:
        """The conversation with each of these runs replaced by its summary, where that is less."""
        kept: list[Message] = []
        made: list[_RoundSummary] = []
        at = 0
        for run in runs:
            told = self._one(messages[run.start : run.stop])
            if told:
                kept += [*messages[at : run.start], told.summary]
                at = run.stop
                made.append(told)
        kept += messages[at:]
        reasons = (told.fallback_reason for told in made)
        return replace(
            done,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=(*done.archived, *(one for told in made for one in told.archived)),
            summaries=(
                *done.summaries,
                *(body_of(told.summary["content"]) for told in made),
            ),
            facts=merge_summaries(map(read_summary, filter(is_summary, kept))).facts,
            fallback_reason=done.fallback_reason or next(filter(None, reasons), ""),
        )

    def _one(self, run: Sequence[Message]) -> _RoundSummary | None:
        """The summary of a run; None where there is nothing new in it, or it would not be less."""
        old = [message for message in run if not is_summary(message)]
        if not old:
            return None
        earlier = merge_summaries(map(read_summary, filter(is_summary, run)))
        archived = tuple(
            RemovedMessage(message_id(message), message) for message in old
        )
        holds = SummaryContent(
            facts=tuple(unique([*earlier.facts, *extract_facts(old)])),
            values=earlier.values,
            summary_of=tuple(
                unique([*earlier.summary_of, *(one.id for one in archived)])
            ),
        )
        room = sum(map(self._counter.message, run))

        def told(prose: str) -> dict[str, Any] | None:
            body = render_summary(
                holds.facts, shape=SummaryLayout(header=ROUND_HEADER), prose=prose
            )
            summary = summary_message(
                body, replace(holds, prose=prose), policy=self.name
            )
            return summary if self._counter.message(summary) < room else None

        if told("") is None:
            return None
        prose, why = summarize_with_model(
            self._summarize,
            old,
            earlier=earlier.prose,
            fits=lambda prose: told(prose) is not None,
        )
        by_rule = "\n".join(
            part for part in (earlier.prose, describe_actions(old)) if part
        )
        summary = told(prose or by_rule)
        return _RoundSummary(summary, archived, why) if summary else None


class _RoundSummary(NamedTuple):
    summary: dict[str, Any]
    archived: tuple[RemovedMessage, ...]
    fallback_reason: str


def describe_actions(messages: Sequence[Message]) -> str:
    """What an agent did, by rule: how many messages, which tools, and how it closed."""
    tools = Counter(
        part.name or "tool"
        for message in messages
        for part in parts(message)
        if part.kind is PartKind.CALL
    )
    called = ", ".join(
        f"{name} ×{count}" if count > 1 else name for name, count in tools.items()
    )
    heading = f"{len(messages)} messages" + (
        f", tools called: {called}" if called else ""
    )
    closing = next(
        (words for one in reversed(messages) if (words := text(one).strip())), ""
    )
    if len(closing) > CLOSING_CHARS:
        closing = closing[: CLOSING_CHARS - 1] + "…"
    return f"{heading}\nIn the end: {closing}" if closing else heading


def _immovable(messages: Sequence[Message], known: MessageGroups) -> list[bool]:
    """What stays where it is: the system's, the user's, and whatever is tied to those."""
    fixed = [
        is_system(message) or (is_intent(message) and not is_summary(message))
        for message in messages
    ]
    for begin, end in pairwise(known.cuts):
        if end - begin > 1 and any(fixed[begin:end]):
            fixed[begin:end] = [True] * (end - begin)
    return fixed


def _last_round_range(
    messages: Sequence[Message],
    known: MessageGroups,
    fixed: Sequence[bool],
    begin: int,
    *,
    keep: int,
) -> tuple[int, int]:
    """The part of the last round that may go: all but its newest messages, pairs whole."""
    live = [
        at
        for at in range(begin, len(messages))
        if not fixed[at] and not is_summary(messages[at])
    ]
    if len(live) <= keep:
        return begin, begin
    end = live[-keep] if keep else len(messages)
    if known.waiting is not None:
        end = min(end, known.waiting)
    return begin, max(begin, known.cut(end))


def _runs(fixed: Sequence[bool], begin: int, end: int) -> Iterator[range]:
    """The stretches between two places in which nothing is fixed."""
    start = begin
    for at in range(begin, end + 1):
        if at == end or fixed[at]:
            if at > start:
                yield range(start, at)
            start = at + 1
