"""Implementation of `compact`: shorten a conversation."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mnemosyned.domain.conversation.messages import (
    Message,
    group_messages,
    message_time,
    text,
)
from mnemosyned.domain.conversation.policies.auto import AutoPolicy
from mnemosyned.domain.conversation.policies.model_summary import Summarize
from mnemosyned.domain.conversation.policies.policy import (
    THRESHOLD,
    MemoryConsolidator,
    Policy,
)
from mnemosyned.domain.conversation.policies.rounds import RoundsPolicy
from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.logs import logger
from mnemosyned.service.conversation.compactions import CompactionArchive
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.verbs.conversation import Compact, Shortened

log = logger()


class CompactService:
    """The verb `compact` ."""

    def __init__(
        self,
        *,
        lease: SummarizerLease,
        clock: Clock,
        archive: CompactionArchive,
        policies: PolicyHolder,
    ) -> None:
        self._policies = policies
        self._lease = lease
        self._clock = clock
        self._archive = archive

    def compact(self, request: Compact) -> Shortened:
        counter = self._policies.window.counter
        tokens = counter.total(request.messages)
        limit = self._limit(request, tokens)
        policy = self._policy(request, limit)
        if not (request.force or policy.due(tokens).due):
            return _unchanged(request, counter.name, tokens=tokens, limit=limit)
        conversation = self._archive.identify(
            request.messages, session=request.session, source=request.source
        )
        done = policy.compact(conversation.messages, keep_recent=request.keep_recent)
        archived = self._archive.keep(done, conversation) if done.changed else []
        log.info(
            "compacted",
            policy=done.policy,
            taken_out=len(done.archived),
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            fallback_reason=done.fallback_reason or None,
        )
        summary_ids = (content.id for _, content in conversation.new_summaries(done))
        return Shortened(
            changed=done.changed,
            messages=[conversation.restored(message) for message in done.messages],
            policy=done.policy,
            counter=done.counter,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            limit=limit,
            over_budget=0 < limit < done.tokens_after,
            summaries=list(done.summaries),
            expand=[*summary_ids, *conversation.new_stubs(done)],
            archived=archived,
            orphans=list(done.orphans),
            fallback_reason=done.fallback_reason,
        )

    def _limit(self, request: Compact, tokens: int) -> int:
        """Return the limit in tokens of our own counter."""
        limit = (
            self._policies.window.budget.total
            if request.max_tokens is None
            else request.max_tokens
        )
        if request.reported_tokens and tokens:
            # The API counted otherwise: scale its limit to our tokens.
            limit = limit * tokens // request.reported_tokens
        return limit

    def _policy(self, request: Compact, limit: int) -> Policy:
        counter = self._policies.window.counter
        threshold = THRESHOLD if request.threshold is None else request.threshold
        if request.policy == "facts":
            return MemoryConsolidator(threshold, limit, counter=counter)
        summarize = self._model_summarizer()
        if request.policy == "rounds":
            return RoundsPolicy(
                0 if request.force else limit, counter=counter, summarize=summarize
            )
        return AutoPolicy(
            limit,
            threshold=0.0 if request.force else threshold,
            counter=counter,
            summarize=summarize,
        )

    def _model_summarizer(self) -> Summarize | None:
        """Return the model as a summarizer of messages; None where none is configured."""
        if not self._lease.has_model:
            return None
        return _TimeLimitedModel(
            self._lease, self._clock, limit_s=self._policies.window.model_limit_s
        )


class _TimeLimitedModel:
    """A model that summarizes messages until the time for one compaction is used up."""

    def __init__(self, lease: SummarizerLease, clock: Clock, *, limit_s: float) -> None:
        self._lease = lease
        self._clock = clock
        self._limit_s = limit_s
        self._ends: float | None = None
        """Set at the first call, by the monotonic clock."""

    def __call__(self, messages: Sequence[Message]) -> str:
        """Summarize. Raises `SummarizerFailed`."""
        self._ends = self._ends or time.monotonic() + self._limit_s
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise SummarizerFailed(
                f"its {self._limit_s:g} s for one compaction are used up"
            )
        now = self._clock.now()
        memories = [
            MemoryRecord(
                id=str(position),
                content=text(message),
                created_at=message_time(message) or now,
                role=message["role"],
            )
            for position, message in enumerate(messages)
        ]
        summary = self._lease.summarize(memories, time_limit_s=left_s)
        if summary.fallback_reason:
            raise SummarizerFailed(summary.fallback_reason)
        return summary.text


def _unchanged(request: Compact, counter: str, *, tokens: int, limit: int) -> Shortened:
    return Shortened(
        changed=False,
        messages=request.messages,
        policy=request.policy,
        counter=counter,
        tokens_before=tokens,
        tokens_after=tokens,
        limit=limit,
        over_budget=0 < limit < tokens,
        orphans=list(group_messages(request.messages).orphans),
    )
