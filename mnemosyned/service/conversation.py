"""How `context` and `compact` are done: an agent's window put together, or made to fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mnemosyned.domain.conversation.auto_policy import AutoPolicy
from mnemosyned.domain.conversation.budget import TokenBudget
from mnemosyned.domain.conversation.context import (
    ContextManager,
    ContextWindow as Window,
)
from mnemosyned.domain.conversation.message_tokens import FullCounter, MessageCounter
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
from mnemosyned.domain.learnings.select import relevant
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.store import Clock, MemoryStore
from mnemosyned.domain.search.query import Hit
from mnemosyned.domain.text.snippets import snippet
from mnemosyned.domain.text.terms import terms
from mnemosyned.domain.text.token_estimate import Estimated, WithMargin
from mnemosyned.logs import logger
from mnemosyned.service.compactions import CompactionArchive
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.verbs.conversation import Assembled, Compact, Context, Shortened
from mnemosyned.verbs.memories import Recall, Recalled
from mnemosyned.verbs.request import QUERY_CHARS_MAX, names

RECALLED_MAX = 30
"""More hits than fit into memory's share of a usual window."""
QUOTED_CHARS_MAX = 600
"""Of a longer memory the stretch is shown that matches best."""
LEARNINGS_MAX = 1_000
"""So many of the newest are looked at; a context shows five."""

log = logger()


def default_counter() -> MessageCounter:
    """The counter where no tokenizer is configured: the estimate, with a margin for budgets."""
    return FullCounter(WithMargin(Estimated()))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """What requests that say nothing else are held to."""

    budget: TokenBudget = field(default_factory=TokenBudget)
    counter: MessageCounter = field(default_factory=default_counter)
    model_limit_s: float = 20.0
    """How long a compaction waits for a model's words, all of them together."""


class ConversationService:
    """The verbs of an agent's window over one store."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        lease: SummarizerLease,
        clock: Clock,
        recall: Callable[[Recall], Recalled],
        archivist: CompactionArchive,
    ) -> None:
        self.settings = WindowSettings()
        self._store = store
        self._lease = lease
        self._clock = clock
        self._recall = recall
        self._archivist = archivist

    # -------------------------------------------------------------- context

    def context(self, request: Context) -> Assembled:
        manager = ContextManager(
            self._budget(request),
            counter=self.settings.counter,
            memory_place=request.memory_place,
            shrink_learnings=True,
        )
        new: Message = (
            {"role": "user", "content": request.message}
            if isinstance(request.message, str)
            else request.message
        )
        question = " ".join(text(new).replace("\0", " ").split())[:QUERY_CHARS_MAX]
        learnings = self._learnings(request, question, tokens=manager.budget.learnings)

        def assembled(recalled: Sequence[tuple[str, Quoted]]) -> Window:
            return manager.build_messages(
                request.system,
                new,
                request.messages,
                memory_results=[quoted for _, quoted in recalled],
                learnings=[learning.text for learning in learnings],
                tool_definitions=request.tools,
            )

        window, recalled = assembled(()), []
        if hits := self._hits(request, question):
            # What stands in the window anyway, or is shown as a learning, is not quoted beside it.
            seen = {_normalized(text(request.messages[at])) for at in window.kept}
            seen |= {
                _normalized(text(new)),
                *map(_normalized, self._superseded(request)),
            }
            known = {learning.memory for learning in learnings if learning.memory}
            recalled = list(_quotable_lines(hits, question, seen=seen, known=known))
            window = assembled(recalled)
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
        """The budget that is configured, with what the request says instead."""
        said: dict[str, Any] = {
            "total": request.total,
            "system_reserve": request.system_reserve,
            "tool_definitions_reserve": request.tools_reserve,
            "memory_fraction": request.memory_fraction,
            "learnings_fraction": request.learnings_fraction,
            "fresh_tail_count": request.fresh_tail,
        }
        return replace(
            self.settings.budget,
            **{name: one for name, one in said.items() if one is not None},
        )

    def _learnings(
        self, request: Context, question: str, *, tokens: int
    ) -> list[Learning]:
        """What holds for the request, most telling first."""
        holding = self._store.learnings(
            sources=_learning_sources(request), limit=LEARNINGS_MAX
        )
        return relevant(
            holding,
            question=terms(question),
            now=self._clock.now(),
            budget_tokens=tokens,
            count=self.settings.counter.text,
        )

    def _superseded(self, request: Context) -> list[str]:
        """The words that were to hold and hold no more: quoting them would contradict what does."""
        found = self._store.learnings(
            sources=_learning_sources(request), superseded=True, limit=LEARNINGS_MAX
        )
        return [learning.text for learning in found if learning.superseded_by]

    def _hits(self, request: Context, question: str) -> list[Hit]:
        if not question:
            return []
        recall = Recall(
            question, limit=RECALLED_MAX, session=request.session, source=request.source
        )
        return self._recall(recall).hits

    # -------------------------------------------------------------- compact

    def compact(self, request: Compact) -> Shortened:
        counter = self.settings.counter
        tokens = counter.total(request.messages)
        limit = (
            self.settings.budget.total
            if request.max_tokens is None
            else request.max_tokens
        )
        if request.reported_tokens and tokens:
            # Held to what the API says they take: a limit in our own tokens that means the same.
            limit = limit * tokens // request.reported_tokens
        policy = self._policy(request, limit)
        if not (request.force or policy.due(tokens).due):
            return _unchanged(request, counter.name, tokens=tokens, limit=limit)
        named = self._archivist.named(
            request.messages, session=request.session, source=request.source
        )
        done = policy.compact(named.messages, keep_recent=request.keep_recent)
        ids = self._archivist.keep(done, named) if done.changed else []
        written = named.written(done)
        log.info(
            "compacted",
            policy=done.policy,
            taken_out=len(done.archived),
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            fallback_reason=done.fallback_reason or None,
        )
        return Shortened(
            changed=done.changed,
            messages=[named.restored(message) for message in done.messages],
            policy=done.policy,
            counter=done.counter,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            limit=limit,
            over_budget=0 < limit < done.tokens_after,
            summaries=list(done.summaries),
            expand=[*(holds.id for _, holds in written), *named.stubbed(done)],
            archived=ids,
            orphans=list(done.orphans),
            fallback_reason=done.fallback_reason,
        )

    def _policy(self, request: Compact, limit: int) -> Policy:
        counter = self.settings.counter
        threshold = THRESHOLD if request.threshold is None else request.threshold
        if request.policy == "facts":
            return MemoryConsolidator(threshold, limit, counter=counter)
        summarize = self._retold()
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

    def _retold(self) -> Summarize | None:
        """The model's words for messages, as long as its time for one compaction lasts."""
        if not self._lease.has_model:
            return None
        limit_s = self.settings.model_limit_s
        ends: float | None = None

        def summarize(messages: Sequence[Message]) -> str:
            nonlocal ends
            ends = ends or time.monotonic() + limit_s
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise SummarizerFailed(
                    f"its {limit_s:g} s for one compaction are used up"
                )
            now = self._clock.now()
            memories = [
                MemoryRecord(
                    id=str(at),
                    content=text(message),
                    created_at=message_time(message) or now,
                    role=message["role"],
                )
                for at, message in enumerate(messages)
            ]
            summary = self._lease.summarize(memories, time_limit_s=left_s)
            if summary.fallback_reason:
                raise SummarizerFailed(summary.fallback_reason)
            return summary.text

        return summarize


def _learning_sources(request: Context) -> tuple[str | None, ...]:
    """Whose learnings hold: those of the sources, and those of none."""
    sources = names(request.source)
    return (*sources, None) if sources else ()


def _quotable_lines(
    hits: Sequence[Hit], question: str, *, seen: set[str], known: set[str]
) -> Iterator[tuple[str, Quoted]]:
    """What was recalled, best first and each text once, with the ids of the memories.

    Left out are texts that were seen, and memories that are known.
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
