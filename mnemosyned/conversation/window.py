"""Selection of messages for a window: the fresh tail always, then older ones, newest first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from functools import cached_property
from itertools import takewhile

from mnemosyned.conversation import messages, sections, summary_message
from mnemosyned.instants import in_zone

SUMMARY_TOKENS_MIN = 200
"""Tokens that a leading summary gets even if the newest messages take all the room."""


class WindowSelection:
    """Selection of the messages of a conversation that fit, with a new message, in a number of tokens.

    Leading system messages always stay, and are not counted. The newest summary of compacted messages stays
    too, shortened if it does not fit.
    """

    def __init__(
        self,
        history: Sequence[messages.Message],
        new: messages.Message,
        *,
        counter: messages.MessageCounter,
        tail: int,
        room: int,
    ) -> None:
        """Select the messages that fit in `room` tokens with `new`, the new message."""
        self.history = history
        self.room = room
        self.groups = messages.group_messages([*history, new])
        self._new = new
        self._counter = counter
        self._costs: dict[int, int] = {}
        self._pinned = messages.count_pinned(history)
        count = len(history)
        begin = min(count - tail, self.groups.cut_before(count))
        begin = self.groups.cut_before(max(self._pinned, begin))
        self._tail_start = max(self._pinned, begin)
        """Start of the fresh tail, with whole groups of tool calls and results."""
        older = range(self._pinned, self._tail_start)
        self._leading = list(
            takewhile(lambda at: summary_message.is_summary(history[at]), older)
        )
        self._floor = self._pinned + len(self._leading)
        self.new_tokens = counter.message(new)
        tail_tokens = sum(
            map(self._count_tokens_at, range(self._tail_start, len(history)))
        )
        self._tokens_left = room - self.new_tokens - tail_tokens
        self._kept_leading: dict[int, messages.Message] = {}
        """The newest summary at the history's start, shortened if necessary, and older ones that fit."""
        for position in reversed(self._leading):
            message, cost = history[position], self._count_tokens_at(position)
            if cost > self._tokens_left:
                if self._kept_leading:
                    continue
                tokens = max(self._tokens_left, SUMMARY_TOKENS_MIN)
                shorter = summary_message.shrink_summary(message, tokens, counter.text)
                shorter_cost = counter.message(shorter)
                if shorter_cost < cost:
                    message, cost = shorter, shorter_cost
            self._kept_leading = {position: message, **self._kept_leading}
            self._tokens_left -= cost
        self._past: list[messages.Message] = []
        """Summaries of earlier conversations that are shown."""
        self.start = self._find_start(self._tokens_left)
        """Position of the first older message that is kept."""

    def add_summaries(self, summaries: Iterable[sections.PastSummary]) -> None:
        """Add the summaries of earlier conversations that fit; the oldest messages make room for them.

        Summaries that were rolled up into another, and summaries of messages that are all kept, are left
        out. The others are in the order of their periods.
        """
        unknown = datetime.max.replace(tzinfo=UTC)
        top = sorted(
            (summary for summary in summaries if summary.parent is None),
            key=lambda summary: (
                _parse_moment(summary.start) or unknown,
                _parse_moment(summary.end) or unknown,
            ),
        )
        if not top:
            return
        chosen: set[int] = set()
        has_ids = any(summary.summary_of for summary in top)
        while True:
            kept = set(
                map(messages.message_id, self.history[self.start :] if has_ids else ())
            )
            further = {
                index
                for index, summary in enumerate(top)
                if index not in chosen and not self._covers(summary, kept)
            }
            if not further:
                return
            chosen |= further
            tokens_left = self._tokens_left
            self._past = []
            for summary in (top[index] for index in sorted(chosen)):
                message = {
                    "role": "user",
                    "content": summary.render(),
                    "metadata": {
                        "kind": summary_message.KIND,
                        "depth": summary.depth,
                        "messages": summary.messages,
                    },
                }
                cost = self._counter.message(message)
                if cost <= tokens_left:
                    self._past.append(message)
                    tokens_left -= cost
            self.start = self._find_start(tokens_left)

    def _covers(self, summary: sections.PastSummary, kept: set[str]) -> bool:
        """Return True if the messages with the ids `kept` surely include all that a summary summarizes."""
        if summary.summary_of:
            return kept.issuperset(summary.summary_of)
        begin, end = _parse_moment(summary.start), _parse_moment(summary.end, last=True)
        first = min(filter(None, self._times), default=None)
        if begin is None or end is None or first is None:
            return False
        if first.date() > begin.date():
            return False  # it begins before the given conversation
        within = (
            position
            for position, time_said in enumerate(self._times)
            if time_said and begin <= time_said <= end
        )
        return next(within, -1) >= self.start

    @cached_property
    def _times(self) -> list[datetime | None]:
        """Times of the messages, None where unknown; only summaries without ids need these."""
        return [messages.read_message_time(message) for message in self.history]

    @property
    def kept_positions(self) -> list[int]:
        """Positions of kept messages in the history, ascending."""
        return [
            *range(self._pinned),
            *self._kept_leading,
            *range(self.start, len(self.history)),
        ]

    def build_messages(self, *, memory: str = "") -> list[messages.Message]:
        """Return the window's messages in order, with the recalled `memory` as one of them.

        The memory is placed before the new message; if that answers a tool call, before the call. Empty
        memory is left out.
        """
        place = max(self.start, self.groups.cut_before(len(self.history)))
        metadata = {"kind": summary_message.MEMORY_KIND}
        recalled = {"role": "user", "content": memory, "metadata": metadata}
        return [
            *self.history[: self._pinned],
            *self._past,
            *self._kept_leading.values(),
            *self.history[self.start : place],
            *([recalled] if memory else []),
            *self.history[place:],
            self._new,
        ]

    @property
    def pinned_tokens(self) -> int:
        """Tokens of the leading system messages."""
        return sum(map(self._count_tokens_at, range(self._pinned)))

    @property
    def summaries(self) -> list[messages.Message]:
        """Summaries in the window: of earlier conversations, then of this conversation."""
        return [*self._past, *self._kept_leading.values()]

    @property
    def history_tokens(self) -> int:
        """Tokens of the kept messages, without leading system messages and summaries."""
        return sum(map(self._count_tokens_at, range(self.start, len(self.history))))

    def _count_tokens_at(self, position: int) -> int:
        """Return the tokens of the history's message at a position, counted once and cached."""
        cost = self._costs.get(position)
        if cost is None:
            cost = self._counter.message(self.history[position])
            self._costs[position] = cost
        return cost

    def _find_start(self, tokens: int) -> int:
        """Return the lowest position from which whole groups before the fresh tail fit in `tokens`."""
        start = self._tail_start
        cuts = self.groups.cuts
        index = bisect_left(cuts, start)
        while start > self._floor:
            index -= 1
            cut = max(cuts[index], self._floor)
            tokens -= sum(map(self._count_tokens_at, range(cut, start)))
            if tokens < 0:
                break
            start = cut
        return start


def _parse_moment(value: str | date | None, *, last: bool = False) -> datetime | None:
    """Return a text or date as an aware time; None if the text is no time.

    A day becomes its beginning, or with `last` its end; a time without a zone is local.
    """
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
        return value if value.tzinfo else in_zone(value, None)
    if value is None:
        return None
    return in_zone(datetime.combine(value, time.max if last else time.min), None)
