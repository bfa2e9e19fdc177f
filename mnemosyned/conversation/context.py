"""Assembly of an agent's context within its token budget: system prompt, memory, summaries and messages."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from mnemosyned.conversation import archived, sections
from mnemosyned.conversation.budget import Breakdown, MemoryPlace, TokenBudget
from mnemosyned.conversation.compaction import Compaction, CompactionPolicy
from mnemosyned.conversation.messages import (
    CharsCounter,
    Message,
    MessageCounter,
    count_pinned,
    find_tool_names,
)
from mnemosyned.conversation.window import WindowSelection
from mnemosyned.errors import InvalidRequest

JOINT_TOKENS = 8
"""Tokens that joining a section to its prompt, or sending it as a message, can add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindow:
    """Assembled context of an agent, with the tokens and positions of its parts.

    It unpacks into the system prompt and the messages.
    """

    system: str
    messages: list[Message]
    """Summaries, kept messages of the history (the same objects), and the new message."""
    breakdown: Breakdown
    kept: tuple[int, ...]
    """Positions in the history given, from 0."""
    dropped: tuple[int, ...]
    memory_shown: int
    """Number of snippets shown, from the first."""
    learnings_shown: int
    summaries_shown: int
    """Number of summaries among the messages, of any origin."""
    orphans: tuple[int, ...]
    """Positions of tool calls without a result and of results without a call."""
    compaction: Compaction | None = None

    @property
    def over_budget(self) -> bool:
        """Whether the mandatory parts alone exceed the budget."""
        parts = self.breakdown
        return parts.conversation > parts.history_budget or parts.total > parts.budget

    def __iter__(self) -> Iterator[Any]:
        """Yield the system prompt, then the list of messages."""
        yield self.system
        yield self.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenWindow:
    """Messages chosen for a context, before memory and learnings are added."""

    system: str
    history: Sequence[Message]
    selection: WindowSelection
    compaction: Compaction | None
    kept: Sequence[int]
    """Positions in the history given, ascending."""
    spare_tokens: int | None = None
    """Limit for memory and learnings together, where the window must fit its total."""


class ContextManager:
    """Assembler of contexts within a token budget; equal input gives equal contexts.

    `consolidator` first compacts a conversation that is due. `memory_place="message"` puts
    recalled memory before the new message instead of into the system prompt, which then stays the
    same from call to call, as prompt caches need. `reclaim_unused` lends the history the tokens
    that memory and learnings leave of their shares, and `shrink_learnings` shows as many
    learnings as fit instead of all or none.
    """

    def __init__(
        self,
        budget: TokenBudget | None = None,
        *,
        consolidator: CompactionPolicy | None = None,
        counter: MessageCounter | None = None,
        memory_place: MemoryPlace = "system",
        reclaim_unused: bool = False,
        shrink_learnings: bool = False,
    ) -> None:
        """Assemble contexts within `budget`; `counter` counts four characters to a token by default."""
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
        memory_results: Sequence[str | sections.Quoted] | None = None,
        learnings: Sequence[str] | None = None,
        tool_definitions: Sequence[Any] | None = None,
        summaries: Sequence[sections.PastSummary | Mapping[str, Any]] | None = None,
    ) -> ContextWindow:
        """Return the context: the system prompt with memory and learnings, and the messages that fit.

        The fresh tail (the newest messages) is always kept. Next come `summaries` that fit, then
        older messages, newest first, until one does not fit. `memory_results` are texts to quote;
        `tool_definitions` are only counted. Parts that cannot fit are reported, not raised.
        """
        added_sections = self.write_sections(memory_results or (), learnings or ())
        lent = added_sections.unused if self._reclaim_unused else 0
        window = self.select_window(
            system, new_message, history, summaries=summaries or (), lent_tokens=lent
        )
        return self.assemble(window, added_sections, tool_definitions)

    def select_window(
        self,
        system: str,
        new_message: str | Message,
        history: Sequence[Message],
        *,
        summaries: Sequence[sections.PastSummary | Mapping[str, Any]] = (),
        lent_tokens: int = 0,
    ) -> ChosenWindow:
        """Return the messages for a context: always the newest, then `summaries` and older ones that fit.

        The history is first compacted if that is due. `lent_tokens` are added to the history's share.
        """
        new = as_user_message(new_message)
        compaction = None
        if self._consolidator is not None:
            usage = self._counter.total([{"content": system}, *history, new])
            if self._consolidator.due(usage).due:
                done = self._consolidator.compact(
                    history, keep_recent=self.budget.fresh_tail_count
                )
                compaction = done if done.changed else None
        selection = WindowSelection(
            compaction.messages if compaction else history,
            new,
            counter=self._counter,
            tail=self.budget.fresh_tail_count,
            room=self.budget.history + lent_tokens,
        )
        selection.add_summaries(
            sections.PastSummary.of(summary) for summary in summaries
        )
        kept = selection.kept_positions
        if compaction:  # it may have moved them
            positions: dict[int, list[int]] = {}
            for position, message in enumerate(history):
                positions.setdefault(id(message), []).append(position)
            keys = [id(selection.history[index]) for index in reversed(kept)]
            kept = sorted(positions[key].pop() for key in keys if positions.get(key))
        return ChosenWindow(
            system=system,
            history=history,
            selection=selection,
            compaction=compaction,
            kept=kept,
        )

    def assemble(
        self,
        window: ChosenWindow,
        added_sections: AddedSections,
        tool_definitions: Sequence[Any] | None,
    ) -> ContextWindow:
        """Return the context: a window's messages, these sections, and the tokens of all parts."""
        counter, budget = self._counter, self.budget
        selection, compaction = window.selection, window.compaction
        system = counter.text(window.system) if window.system else 0
        tools = count_tool_definition_tokens(tool_definitions, counter)
        in_message = self._memory_place == "message"
        prompt = (
            window.system,
            "" if in_message else added_sections.memory,
            added_sections.learnings,
        )
        dropped = set(range(len(window.history))).difference(window.kept)
        return ContextWindow(
            system="\n\n".join(part for part in prompt if part),
            messages=selection.build_messages(
                memory=added_sections.memory if in_message else ""
            ),
            breakdown=Breakdown(
                counter=counter.name,
                system=system + selection.pinned_tokens,
                memory=added_sections.memory_tokens,
                learnings=added_sections.learnings_tokens,
                summaries=sum(map(counter.message, selection.summaries)),
                history=selection.history_tokens,
                new_message=selection.new_tokens,
                tools=max(budget.tool_definitions_reserve, tools),
                history_budget=selection.room,
                budget=budget.total,
            ),
            kept=tuple(window.kept),
            dropped=tuple(sorted(dropped)),
            memory_shown=added_sections.memory_shown,
            learnings_shown=added_sections.learnings_shown,
            summaries_shown=len(selection.summaries),
            orphans=compaction.orphans if compaction else selection.groups.orphans,
            compaction=compaction,
        )

    def write_sections(
        self,
        snippets: Sequence[str | sections.Quoted],
        learnings: Sequence[str],
        *,
        limits: tuple[int, int] | None = None,
        spare_tokens: int | None = None,
    ) -> AddedSections:
        """Return as much memory and learnings as fit in the tokens of `limits`, and together in `spare_tokens`.

        Without `limits`, each has its share of the budget.
        """
        counter, budget = self._counter, self.budget
        spare = sys.maxsize if spare_tokens is None else spare_tokens
        memory_tokens, learnings_tokens = limits or (budget.memory, budget.learnings)
        headings = counter.text(sections.LEARNINGS_HEADING) + JOINT_TOKENS
        lessons, learnings_shown = sections.write_learnings_section(
            learnings,
            tokens=min(learnings_tokens, spare - headings),
            counter=counter,
            shrink=self._shrink_learnings,
        )
        lessons_tokens = counter.text(lessons) if lessons else 0
        spare -= lessons_tokens + JOINT_TOKENS
        headings = counter.text(sections.MEMORY_HEADING) + JOINT_TOKENS
        memory, memory_shown = sections.write_memory_section(
            snippets, tokens=min(memory_tokens, spare - headings), counter=counter
        )
        shown_tokens = counter.text(memory) if memory else 0
        return AddedSections(
            memory=memory,
            memory_shown=memory_shown,
            memory_tokens=shown_tokens,
            learnings=lessons,
            learnings_shown=learnings_shown,
            learnings_tokens=lessons_tokens,
            unused=max(0, budget.memory - shown_tokens)
            + max(0, budget.learnings - lessons_tokens),
        )


class AddedSections(NamedTuple):
    """Sections of memory and learnings as shown, with their tokens and number of entries."""

    memory: str
    memory_shown: int
    memory_tokens: int
    learnings: str
    learnings_shown: int
    learnings_tokens: int
    unused: int
    """Tokens of their shares that memory and learnings leave free."""


def as_user_message(new: str | Message) -> Message:
    """Return a text as a message of the user, and a message unchanged."""
    return {"role": "user", "content": new} if isinstance(new, str) else new


def count_tool_definition_tokens(
    definitions: Sequence[Any] | None, counter: MessageCounter
) -> int:
    """Return the tokens of tool definitions written as JSON; 0 for none."""
    if not definitions:
        return 0
    return counter.text(json.dumps(list(definitions), ensure_ascii=False, default=str))


class WindowFitter:
    """Selector of messages that make a context fit in the total of its budget."""

    def __init__(
        self,
        system: str,
        new_message: str | Message,
        history: Sequence[Message],
        *,
        budget: TokenBudget,
        counter: MessageCounter,
        tools: Sequence[Any] = (),
    ) -> None:
        """Fit a conversation into the total of `budget`, by the tokens of `counter`."""
        self._system = system
        self._new = as_user_message(new_message)
        self._history = history
        self._budget = budget
        self._counter = counter
        pinned = history[: count_pinned(history)]
        fixed = sum(map(counter.message, pinned))
        if system:
            fixed += counter.text(system) + JOINT_TOKENS
        defined = count_tool_definition_tokens(tools, counter)
        self._fixed = fixed + max(budget.tool_definitions_reserve, defined)
        """Tokens of system prompt, pinned messages and tools, at least their reserve."""
        self._room = budget.total - self._fixed
        """Tokens for everything but the system prompt and the tools."""

    def fit(self) -> ChosenWindow:
        """Return the window of messages that fit. Raises `InvalidRequest` if the context cannot fit.

        If the system prompt and the tools exceed their reserves, the history's share shrinks. If
        the fresh tail is too long, its long tool results are shortened, oldest first; then it may
        use the shares of memory and learnings.
        """
        budget = self._budget
        reserved = budget.system_reserve + budget.tool_definitions_reserve
        share = budget.history - max(0, self._fixed - reserved)
        shortened = _ShortenedTail(self._history, self._new, counter=self._counter)
        for room in (share, self._room):
            while True:
                window = self._choose_window(shortened, budget, room=room)
                excess = self._count_conversation_tokens(window) - room
                start = window.selection.start
                if excess <= 0 or not shortened.save_tokens(excess, since=start):
                    break
            if excess <= 0:
                spare = self._room - room - excess
                return replace(window, history=self._history, spare_tokens=spare)
        raise self._make_too_long_error(excess)

    def _choose_window(
        self, shortened: _ShortenedTail, budget: TokenBudget, *, room: int
    ) -> ChosenWindow:
        """Return the newest messages that fit in `room` tokens, and the fresh tail even if it does not fit."""
        return ContextManager(budget, counter=self._counter).select_window(
            self._system,
            shortened.new,
            shortened.history,
            lent_tokens=room - budget.history,
        )

    def _count_conversation_tokens(self, window: ChosenWindow) -> int:
        """Return the tokens of a window's messages, without the pinned ones and the new message."""
        selection = window.selection
        summaries = sum(map(self._counter.message, selection.summaries))
        return summaries + selection.history_tokens + selection.new_tokens

    def _make_too_long_error(self, excess: int) -> InvalidRequest:
        total = self._budget.total
        claim = (
            f"the context takes {total + excess:,} tokens, {excess:,} more than total "
            f"({total:,})"
        )
        shortened = _ShortenedTail(self._history, self._new, counter=self._counter)
        shortened.save_tokens(sys.maxsize, since=0)

        def count_tail_tokens(tail: int) -> int:
            """Return the tokens of a conversation with a fresh tail of `tail` messages only."""
            budget = replace(self._budget, fresh_tail_count=tail)
            return self._count_conversation_tokens(
                self._choose_window(shortened, budget, room=0)
            )

        longest = min(self._budget.fresh_tail_count, len(self._history))
        fitting = bisect_right(range(longest + 1), self._room, key=count_tail_tokens)
        advice = (
            f"raise total, or lower fresh_tail to {fitting - 1}"
            if fitting  # else not even a tail of no message fits
            else "raise total, or shorten the new message, the system prompt or the tools"
        )
        return InvalidRequest(f"{claim}; {advice}", field="total")


class _ShortenedTail:
    """A conversation whose long tool results can be shortened, oldest first."""

    def __init__(
        self, history: Sequence[Message], new: Message, *, counter: MessageCounter
    ) -> None:
        self.history = list(history)
        self.new = new
        self._counter = counter
        self._next = 0
        """Position of the first message not tried yet; the new one comes after the history."""

    def save_tokens(self, tokens: int, *, since: int) -> bool:
        """Shorten tool results from `since` on, oldest first, to save `tokens`; return True if any shrank."""
        saved = 0
        self._next = max(self._next, since)
        while saved < tokens and self._next <= len(self.history):
            is_new = self._next == len(self.history)
            message = self.new if is_new else self.history[self._next]
            stub = archived.truncate_results(message, self._tool_names, archived=False)
            gain = self._counter.message(message)
            gain -= self._counter.message(stub) if stub else gain
            if stub and gain > 0:
                saved += gain
                if is_new:
                    self.new = stub
                else:
                    self.history[self._next] = stub
            self._next += 1
        return saved > 0

    @cached_property
    def _tool_names(self) -> dict[str, str]:
        """Names of the tools by the ids of their calls, read only if a result is shortened."""
        return find_tool_names(self.history)
