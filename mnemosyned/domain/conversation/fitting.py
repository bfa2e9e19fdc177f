"""Contexts that stay within their total, or an error that says by how much they cannot."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from mnemosyned.domain.conversation.budget import TokenBudget
from mnemosyned.domain.conversation.context import (
    JOINT_TOKENS,
    ChosenWindow,
    ContextManager,
    as_message,
    definition_tokens,
)
from mnemosyned.domain.conversation.message_tokens import MessageCounter
from mnemosyned.domain.conversation.messages import Message, count_pinned, tool_names
from mnemosyned.domain.conversation.tool_stubs import stub_results
from mnemosyned.domain.errors import InvalidRequest


class WindowFitter:
    """Selector of messages for one context that must not exceed its total."""

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
        self._system = system
        self._new = as_message(new_message)
        self._history = history
        self._budget = budget
        self._counter = counter
        self._fixed = self._fixed_tokens(tools)
        self._room = budget.total - self._fixed
        """Tokens for everything but the system prompt and the tools."""

    def fit(self) -> ChosenWindow:
        """Choose the messages that fit. Raises `InvalidRequest` where the context cannot fit.

        What the system prompt and the tools take beyond their reserves, the history gives up.
        Where the fresh tail is too long, its long tool results are shown in part, oldest first;
        then memory and learnings give up their shares.
        """
        budget = self._budget
        reserved = budget.system_reserve + budget.tool_definitions_reserve
        share = budget.history - max(0, self._fixed - reserved)
        shortened = _ShortenedTail(self._history, self._new, counter=self._counter)
        for room in (share, self._room):
            window = self._select(shortened, room=room)
            if self._conversation(window) <= room:
                spare = self._room - self._conversation(window)
                return replace(window, history=self._history, spare_tokens=spare)
        raise self._too_long(self._conversation(window) - self._room)

    def _select(self, shortened: _ShortenedTail, *, room: int) -> ChosenWindow:
        """Select a window; shorten tool results of its tail as long as it does not fit."""
        while True:
            window = self._window(shortened, self._budget, room=room)
            excess = self._conversation(window) - room
            if excess <= 0 or not shortened.save(excess, since=window.selection.start):
                return window

    def _window(
        self, shortened: _ShortenedTail, budget: TokenBudget, *, room: int
    ) -> ChosenWindow:
        return ContextManager(budget, counter=self._counter).select_window(
            self._system,
            shortened.new,
            shortened.history,
            lent_tokens=room - budget.history,
        )

    def _conversation(self, window: ChosenWindow) -> int:
        """Return the tokens of summaries, history and new message."""
        selection = window.selection
        summaries = sum(map(self._counter.message, selection.summaries))
        return summaries + selection.history_tokens + selection.new_tokens

    def _fixed_tokens(self, tools: Sequence[Any]) -> int:
        """Return the tokens of the system prompt, pinned messages and tools with their reserve."""
        pinned = self._history[: count_pinned(self._history)]
        tokens = sum(map(self._counter.message, pinned))
        if self._system:
            tokens += self._counter.text(self._system) + JOINT_TOKENS
        reserve = self._budget.tool_definitions_reserve
        return tokens + max(reserve, definition_tokens(tools, self._counter))

    def _too_long(self, excess: int) -> InvalidRequest:
        """Return the error that says by how much the context is too long, and what to do."""
        total = self._budget.total
        claim = (
            f"the context takes {total + excess:,} tokens, {excess:,} more than total "
            f"({total:,})"
        )
        tail = self._longest_tail()
        advice = (
            f"raise total, or lower fresh_tail to {tail}"
            if tail is not None
            else "raise total, or shorten the new message, the system prompt or the tools"
        )
        return InvalidRequest(f"{claim}; {advice}", field="total")

    def _longest_tail(self) -> int | None:
        """Return the longest fresh tail that fits, its long tool results shown in part."""
        shortened = _ShortenedTail(self._history, self._new, counter=self._counter)
        shortened.save(sys.maxsize, since=0)

        def tokens(tail: int) -> int:
            budget = replace(self._budget, fresh_tail_count=tail)
            return self._conversation(self._window(shortened, budget, room=0))

        longest = min(self._budget.fresh_tail_count, len(self._history))
        fitting = bisect_right(range(longest + 1), self._room, key=tokens)
        return fitting - 1 if fitting else None


class _ShortenedTail:
    """A conversation whose long tool results can be shown in part, oldest first."""

    def __init__(
        self, history: Sequence[Message], new: Message, *, counter: MessageCounter
    ) -> None:
        self.history = list(history)
        self.new = new
        self._counter = counter
        self._next = 0
        """Position of the first message not tried yet; the new one comes after the history."""

    def save(self, tokens: int, *, since: int) -> bool:
        """Shorten results from a position on until the tokens are saved; tell if any were."""
        saved = 0
        self._next = max(self._next, since)
        while saved < tokens and self._next <= len(self.history):
            saved += self._shorten(self._next)
            self._next += 1
        return saved > 0

    @cached_property
    def _tool_names(self) -> dict[str, str]:
        """Names of the tools by the ids of their calls; most contexts shorten nothing."""
        return tool_names(self.history)

    def _shorten(self, position: int) -> int:
        """Shorten the results of one message; return the tokens saved."""
        is_new = position == len(self.history)
        message = self.new if is_new else self.history[position]
        stub = stub_results(message, self._tool_names, archived=False)
        if stub is None:
            return 0
        saved = self._counter.message(message) - self._counter.message(stub)
        if saved <= 0:
            return 0
        if is_new:
            self.new = stub
        else:
            self.history[position] = stub
        return saved
