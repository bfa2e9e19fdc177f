"""What should be in an agent's window: system prompt, memory, summaries and the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mnemosyned.domain.conversation.budget import Breakdown, MemoryPlace, TokenBudget
from mnemosyned.domain.conversation.message_tokens import CharsCounter, MessageCounter
from mnemosyned.domain.conversation.messages import Message
from mnemosyned.domain.conversation.policy import Compaction, Policy
from mnemosyned.domain.conversation.sections import (
    PastSummary,
    Quoted,
    learnings_section,
    memory_section,
)
from mnemosyned.domain.conversation.window import WindowSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindow:
    """An assembled context; it unpacks into the system prompt and the messages."""

    system: str
    messages: list[Message]
    """Summaries, what was kept of the history, the new message; kept ones are the very same."""
    breakdown: Breakdown
    kept: tuple[int, ...]
    """Positions in the history given, from 0."""
    dropped: tuple[int, ...]
    memory_shown: int
    """How many of the snippets, from the first."""
    learnings_shown: int
    summaries_shown: int
    """Summaries among the messages, of whatever origin."""
    orphans: tuple[int, ...]
    """Positions of tool calls and results that came in without their other half."""
    compaction: Compaction | None = None

    @property
    def over_budget(self) -> bool:
        """Whether what must be there is more than the budget."""
        parts = self.breakdown
        return parts.conversation > parts.history_budget or parts.total > parts.budget

    def __iter__(self) -> Iterator[Any]:
        yield self.system
        yield self.messages


class ContextManager:
    """Assembles contexts within a budget; equal input gives equal contexts. Pure.

    Source: the Missy context seed. `consolidator` is asked first whether the conversation should
    be compacted. `memory_place="message"` puts recalled memory beside the new message instead of
    into the system prompt, which then stays the same from call to call, as prompt caches want it.
    `reclaim_unused` lends the history what memory and learnings leave of their shares, and
    `shrink_learnings` shows as many learnings as fit instead of all or none.
    """

    def __init__(
        self,
        budget: TokenBudget | None = None,
        *,
        consolidator: Policy | None = None,
        counter: MessageCounter | None = None,
        memory_place: MemoryPlace = "system",
        reclaim_unused: bool = False,
        shrink_learnings: bool = False,
    ) -> None:
        self.budget = budget or TokenBudget()
        self._consolidator = consolidator
        self._counter = counter or CharsCounter()
        self._memory_place = memory_place
        self._reclaim_unused = reclaim_unused
        self._shrink_learnings = shrink_learnings

    def build_messages(
        self,
        system: str = "",
        new_message: str | Message = "",
        history: Sequence[Message] = (),
        *,
        memory_results: Sequence[str | Quoted] | None = None,
        learnings: Sequence[str] | None = None,
        tool_definitions: Sequence[Any] | None = None,
        summaries: Sequence[PastSummary | Mapping[str, Any]] | None = None,
    ) -> ContextWindow:
        """The system prompt with memory and learnings, and the messages that fit, newest first.

        The fresh tail is kept whatever it costs; summaries follow where they fit, then older
        messages up to the first that does not. Raises nothing: what cannot fit is reported.
        """
        counter, budget = self._counter, self.budget
        sections = self._sections(system, memory_results or (), learnings or ())
        new = _as_message(new_message)
        compaction = self._compacted(system, history, new)
        pruning = WindowSelection(
            compaction.messages if compaction else history,
            new,
            counter=counter,
            tail=budget.fresh_tail_count,
            room=budget.history + (sections.unused if self._reclaim_unused else 0),
        )
        pruning.add(PastSummary.of(one) for one in summaries or ())
        kept = _positions(history, pruning) if compaction else pruning.kept
        beside = self._memory_place == "message"
        shown = (system, "" if beside else sections.memory, sections.learnings)
        return ContextWindow(
            system="\n\n".join(part for part in shown if part),
            messages=pruning.messages(beside=sections.memory if beside else ""),
            breakdown=Breakdown(
                counter=counter.name,
                system=sections.system_tokens + pruning.pinned_tokens,
                memory=sections.memory_tokens,
                learnings=sections.learnings_tokens,
                summaries=sum(map(counter.message, pruning.summaries)),
                history=pruning.history_tokens,
                new_message=pruning.new_tokens,
                tools=max(
                    budget.tool_definitions_reserve, _tools(tool_definitions, counter)
                ),
                history_budget=pruning.room,
                budget=budget.total,
            ),
            kept=tuple(kept),
            dropped=tuple(sorted(set(range(len(history))).difference(kept))),
            memory_shown=sections.memory_shown,
            learnings_shown=sections.learnings_shown,
            summaries_shown=len(pruning.summaries),
            orphans=compaction.orphans if compaction else pruning.ties.orphans,
            compaction=compaction,
        )

    def _sections(
        self, system: str, snippets: Sequence[str | Quoted], learnings: Sequence[str]
    ) -> _Sections:
        counter, budget = self._counter, self.budget
        memory, memory_shown = memory_section(
            snippets, tokens=budget.memory, counter=counter
        )
        lessons, learnings_shown = learnings_section(
            learnings,
            tokens=budget.learnings,
            counter=counter,
            shrink=self._shrink_learnings,
        )
        memory_tokens = counter.text(memory) if memory else 0
        learnings_tokens = counter.text(lessons) if lessons else 0
        return _Sections(
            memory=memory,
            memory_shown=memory_shown,
            memory_tokens=memory_tokens,
            learnings=lessons,
            learnings_shown=learnings_shown,
            learnings_tokens=learnings_tokens,
            system_tokens=counter.text(system) if system else 0,
            unused=max(0, budget.memory - memory_tokens)
            + max(0, budget.learnings - learnings_tokens),
        )

    def _compacted(
        self, system: str, history: Sequence[Message], new: Message
    ) -> Compaction | None:
        """What the consolidator made of the history; None where it had nothing to do."""
        if self._consolidator is None:
            return None
        usage = self._counter.total([{"content": system}, *history, new])
        if not self._consolidator.due(usage).due:
            return None
        done = self._consolidator.compact(
            history, keep_recent=self.budget.fresh_tail_count
        )
        return done if done.changed else None


class _Sections(NamedTuple):
    """What the system prompt is enriched with, and what that takes."""

    memory: str
    memory_shown: int
    memory_tokens: int
    learnings: str
    learnings_shown: int
    learnings_tokens: int
    system_tokens: int
    unused: int
    """Tokens that memory and learnings leave of their shares."""


def _as_message(new: str | Message) -> Message:
    return {"role": "user", "content": new} if isinstance(new, str) else new


def _tools(definitions: Sequence[Any] | None, counter: MessageCounter) -> int:
    """What the definitions of the tools take, written as JSON."""
    if not definitions:
        return 0
    return counter.text(json.dumps(list(definitions), ensure_ascii=False, default=str))


def _positions(history: Sequence[Message], pruning: WindowSelection) -> list[int]:
    """Where those that compaction and pruning kept stood before, told by being the very same."""
    places: dict[int, list[int]] = {}
    for at, message in enumerate(history):
        places.setdefault(id(message), []).append(at)
    kept = [id(pruning.history[at]) for at in reversed(pruning.kept)]
    return sorted(places[one].pop() for one in kept if places.get(one))
