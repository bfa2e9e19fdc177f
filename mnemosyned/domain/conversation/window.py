"""Which messages of a conversation fit a window: the fresh tail always, older ones newest first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from itertools import takewhile
from typing import Any

from mnemosyned.domain.conversation.message_tokens import MessageCounter
from mnemosyned.domain.conversation.messages import (
    Message,
    count_pinned,
    group_messages,
    message_id,
    message_time,
)
from mnemosyned.domain.conversation.sections import PastSummary
from mnemosyned.domain.conversation.summary_message import (
    KIND,
    MEMORY_KIND,
    is_summary,
    shrink_summary,
)

SUMMARY_TOKENS_MIN = 200
"""What the summary of compacted messages gets, even where the fresh tail takes everything."""


class WindowSelection:
    """One conversation and its new message, held to so many tokens.

    System messages that lead it stay and count towards no share. So does the summary of what was
    compacted before, shortened where there is no room for all of it.
    """

    def __init__(
        self,
        history: Sequence[Message],
        new: Message,
        *,
        counter: MessageCounter,
        tail: int,
        room: int,
    ) -> None:
        self.history = history
        self.room = room
        self.ties = group_messages([*history, new])
        self._new = new
        self._counter = counter
        self._costs: dict[int, int] = {}
        self._head = count_pinned(history)
        begin = min(len(history) - tail, self.ties.cut(len(history)))
        self._begin = max(self._head, self.ties.cut(max(self._head, begin)))
        """Where the fresh tail begins, no tool call parted from its results."""
        older = range(self._head, self._begin)
        self._lead = list(takewhile(lambda at: is_summary(history[at]), older))
        self._floor = self._head + len(self._lead)
        self.new_tokens = counter.message(new)
        self._rest = (
            room
            - self.new_tokens
            - sum(map(self._cost, range(self._begin, len(history))))
        )
        self._led: dict[int, Message] = {}
        """The summaries at the head of the conversation that are kept, shortened or as they are."""
        self._keep_lead()
        self._past: list[Message] = []
        self.start = self._reach(self._rest)
        """Where what is kept of the older messages begins."""

    def add(self, summaries: Iterable[PastSummary]) -> None:
        """Put summaries of earlier conversation in, at the cost of the oldest messages.

        Those that were folded into another are left out, and those that tell of messages which
        are all kept; of the others, whichever fit, in the order of what they cover.
        """
        top = sort_by_time(one for one in summaries if one.parent is None)
        if not top:
            return
        chosen: set[int] = set()
        told = _Coverage(self.history)
        while True:
            kept = told.all_from(self.start)
            further = {
                at for at, one in enumerate(top) if at not in chosen and not kept(one)
            }
            if not further:
                return
            chosen |= further
            rest = self._rest
            self._past = []
            for at in sorted(chosen):
                message = _past_message(top[at])
                cost = self._counter.message(message)
                if cost <= rest:
                    self._past.append(message)
                    rest -= cost
            self.start = self._reach(rest)

    @property
    def kept(self) -> list[int]:
        """Positions in the history, ascending."""
        return [*range(self._head), *self._led, *range(self.start, len(self.history))]

    def messages(self, *, beside: str = "") -> list[Message]:
        """What the window holds; `beside` stands just before the new message and its call."""
        place = max(self.start, self.ties.cut(len(self.history)))
        memory = {"role": "user", "content": beside, "metadata": {"kind": MEMORY_KIND}}
        return [
            *self.history[: self._head],
            *self._past,
            *self._led.values(),
            *self.history[self.start : place],
            *([memory] if beside else []),
            *self.history[place:],
            self._new,
        ]

    @property
    def pinned_tokens(self) -> int:
        return sum(map(self._cost, range(self._head)))

    @property
    def summaries(self) -> list[Message]:
        return [*self._past, *self._led.values()]

    @property
    def history_tokens(self) -> int:
        return sum(map(self._cost, range(self.start, len(self.history))))

    def _cost(self, at: int) -> int:
        cost = self._costs.get(at)
        if cost is None:
            cost = self._costs[at] = self._counter.message(self.history[at])
        return cost

    def _keep_lead(self) -> None:
        """Keep the newest leading summary, shortened if need be, and the others that fit."""
        for at in reversed(self._lead):
            message, cost = self.history[at], self._cost(at)
            if cost > self._rest and not self._led:
                message = shrink_summary(
                    message, max(self._rest, SUMMARY_TOKENS_MIN), self._counter.text
                )
                cost = self._counter.message(message)
                if cost >= self._cost(at):
                    message, cost = self.history[at], self._cost(at)
            elif cost > self._rest:
                continue
            self._led = {at: message, **self._led}
            self._rest -= cost

    def _reach(self, rest: int) -> int:
        """How far back whole groups fit, newest first, up to the first that does not."""
        start = self._begin
        cuts = self.ties.cuts
        index = bisect_left(cuts, start)
        while start > self._floor:
            index -= 1
            cut = max(cuts[index], self._floor)
            rest -= sum(map(self._cost, range(cut, start)))
            if rest < 0:
                break
            start = cut
        return start


def sort_by_time(summaries: Iterable[PastSummary]) -> list[PastSummary]:
    """By what they cover; those that do not tell come last, in the order given."""
    last = datetime.max.replace(tzinfo=UTC)
    return sorted(
        summaries,
        key=lambda one: (_moment(one.start) or last, _moment(one.end) or last),
    )


class _Coverage:
    """Which summaries tell of nothing but messages that are kept themselves."""

    def __init__(self, history: Sequence[Message]) -> None:
        self._history = history
        self._times = [message_time(message) for message in history]
        self._first = min(filter(None, self._times), default=None)

    def all_from(self, start: int) -> Callable[[PastSummary], bool]:
        """Whether all that a summary covers is among the messages from `start` on."""
        ids: set[str] = set()

        def told(summary: PastSummary) -> bool:
            if summary.summary_of:
                if not ids:
                    ids.update(map(message_id, self._history[start:]))
                return ids.issuperset(summary.summary_of)
            return self._dated(summary, start)

        return told

    def _dated(self, summary: PastSummary, start: int) -> bool:
        begin, end = _moment(summary.start), _moment(summary.end, last=True)
        if begin is None or end is None or self._first is None:
            return False
        if self._first.date() > begin.date():
            return False  # some of it is older than the conversation that was given
        within = (
            at for at, said in enumerate(self._times) if said and begin <= said <= end
        )
        return next(within, -1) >= start


def _past_message(summary: PastSummary) -> dict[str, Any]:
    metadata = {"kind": KIND, "depth": summary.depth, "messages": summary.messages}
    return {"role": "user", "content": summary.shown(), "metadata": metadata}


def _moment(value: str | date | None, *, last: bool = False) -> datetime | None:
    """An instant; a day stands for its beginning, or with `last` for its end."""
    if isinstance(value, str):
        try:
            value = (
                date.fromisoformat(value)
                if len(value) == 10
                else datetime.fromisoformat(value)
            )
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if value is None:
        return None
    return datetime.combine(value, time.max if last else time.min, tzinfo=UTC)
