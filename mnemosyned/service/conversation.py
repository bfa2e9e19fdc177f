"""Implementation of `context` and `compact`: assemble an agent's context, or shorten it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mnemosyned.domain.conversation.auto_policy import AutoPolicy
from mnemosyned.domain.conversation.budget import TokenBudget
from mnemosyned.domain.conversation.context import ChosenWindow, ContextManager
from mnemosyned.domain.conversation.messages import (
    Message,
    group_messages,
    message_time,
    text,
)
from mnemosyned.domain.conversation.model_summary import Summarize
from mnemosyned.domain.conversation.policy import THRESHOLD, MemoryConsolidator, Policy
from mnemosyned.domain.conversation.rounds_policy import RoundsPolicy
from mnemosyned.domain.conversation.sections import Quoted
from mnemosyned.domain.conversation.summary_message import sendable
from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.learnings.select import select_relevant
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.search.query import Hit
from mnemosyned.domain.text.snippets import snippet
from mnemosyned.domain.text.terms import terms
from mnemosyned.logs import logger
from mnemosyned.service.compactions import CompactionArchive
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.verbs.conversation import Assembled, Compact, Context, Shortened
from mnemosyned.verbs.memories import Recall, Recalled
from mnemosyned.verbs.request import QUERY_CHARS_MAX, names

RECALLED_MAX = 30
"""More hits than fit into memory's share of a usual window."""
QUOTED_CHARS_MAX = 600
"""Characters of a longer memory that are shown: the stretch that matches best."""
LEARNINGS_MAX = 1_000
"""Newest learnings considered; a context shows five."""

log = logger()


class Recaller(Protocol):
    """Search of memory, as far as a context needs it."""

    def recall(self, request: Recall) -> Recalled:
        """Return the hits for a question."""
        ...


class ConversationService:
    """The verbs `context` and `compact` over one store."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        lease: SummarizerLease,
        clock: Clock,
        recaller: Recaller,
        archive: CompactionArchive,
        policies: PolicyHolder,
    ) -> None:
        self._policies = policies
        self._store = store
        self._lease = lease
        self._clock = clock
        self._recaller = recaller
        self._archive = archive

    # -------------------------------------------------------------- context

    def context(self, request: Context) -> Assembled:
        manager = ContextManager(
            self._budget(request),
            counter=self._policies.window.counter,
            memory_place=request.memory_place,
            shrink_learnings=True,
        )
        new = _as_message(request.message)
        question = _question(new)
        learnings = self._learnings(request, question, tokens=manager.budget.learnings)
        chosen = manager.select_window(request.system, new, request.messages)
        recalled = self._recalled(request, question, chosen, learnings)
        window = manager.assemble(
            chosen,
            memory_results=[quoted for _, quoted in recalled],
            learnings=[learning.text for learning in learnings],
            tool_definitions=request.tools,
        )
        return Assembled(
            system=window.system,
            messages=sendable(window.messages),
            tokens=window.breakdown,
            total=window.breakdown.total,
            over_budget=window.over_budget,
            kept=list(window.kept),
            dropped=list(window.dropped),
            recalled=[id for id, _ in recalled[: window.memory_shown]],
            learnings=[learning.id for learning in learnings[: window.learnings_shown]],
            orphans=list(window.orphans),
        )

    def _budget(self, request: Context) -> TokenBudget:
        """Return the configured budget, overridden by the values of the request."""
        given: dict[str, Any] = {
            "total": request.total,
            "system_reserve": request.system_reserve,
            "tool_definitions_reserve": request.tools_reserve,
            "memory_fraction": request.memory_fraction,
            "learnings_fraction": request.learnings_fraction,
            "fresh_tail_count": request.fresh_tail,
        }
        return replace(
            self._policies.window.budget,
            **{name: value for name, value in given.items() if value is not None},
        )

    def _learnings(
        self, request: Context, question: str, *, tokens: int
    ) -> list[Learning]:
        """Return the learnings that apply to the request, most relevant first."""
        in_force = self._store.learnings.find(
            sources=_learning_sources(request), limit=LEARNINGS_MAX
        )
        return select_relevant(
            in_force,
            question=terms(question),
            now=self._clock.now(),
            budget_tokens=tokens,
            count=self._policies.window.counter.text,
        )

    def _recalled(
        self,
        request: Context,
        question: str,
        chosen: ChosenWindow,
        learnings: Sequence[Learning],
    ) -> list[tuple[str, Quoted]]:
        """Return lines to quote, best first, with the ids of their memories.

        Texts that the window or a learning shows anyway are not quoted.
        """
        hits = self._hits(request, question)
        if not hits:
            return []
        in_window = (request.messages[position] for position in chosen.kept)
        seen = {
            *(_normalized(text(message)) for message in in_window),
            _normalized(text(_as_message(request.message))),
            *map(_normalized, self._superseded_learnings(request)),
        }
        known = {learning.memory for learning in learnings if learning.memory}
        return list(_quotable_lines(hits, question, seen=seen, known=known))

    def _superseded_learnings(self, request: Context) -> list[str]:
        """Return the texts of superseded learnings: quoted, they would contradict the new ones."""
        learnings = self._store.learnings.find(
            sources=_learning_sources(request), superseded=True, limit=LEARNINGS_MAX
        )
        return [learning.text for learning in learnings if learning.superseded_by]

    def _hits(self, request: Context, question: str) -> list[Hit]:
        if not question:
            return []
        recall = Recall(
            question, limit=RECALLED_MAX, session=request.session, source=request.source
        )
        return self._recaller.recall(recall).hits

    # -------------------------------------------------------------- compact

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


def _as_message(message: str | Message) -> Message:
    return {"role": "user", "content": message} if isinstance(message, str) else message


def _question(new: Message) -> str:
    """Return the text of the new message as a query."""
    return " ".join(text(new).replace("\0", " ").split())[:QUERY_CHARS_MAX]


def _learning_sources(request: Context) -> tuple[str | None, ...]:
    """Return the sources whose learnings apply: those of the request, and none at all."""
    sources = names(request.source)
    return (*sources, None) if sources else ()


def _quotable_lines(
    hits: Sequence[Hit], question: str, *, seen: set[str], known: set[str]
) -> Iterator[tuple[str, Quoted]]:
    """Yield each recalled text once, best first, with the id of its memory.

    Texts in `seen` and memories in `known` are left out.
    """
    asked = terms(question)
    for hit in hits:
        for line in hit.lines or (hit,):
            words = _normalized(line.content)
            if not words or words in seen or line.id in known:
                continue
            seen.add(words)
            quoted = Quoted(
                text=snippet(line.content, asked, width=QUOTED_CHARS_MAX),
                said=line.created_at,
                speaker=line.role,
                source=hit.source or hit.session,
            )
            yield line.id, quoted


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


def _normalized(words: str) -> str:
    return " ".join(words.split())
