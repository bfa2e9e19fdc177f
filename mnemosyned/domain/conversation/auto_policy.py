"""The daemon's own policy: the least that makes room, and everything told by rule before a model.

Old tool results are stubbed first; where that is not enough, the oldest messages go into one
summary, merged with the one that was there. It begins at a threshold and goes down to a target
well below it, so that the next message does not start it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mnemosyned.domain.conversation.budget import share
from mnemosyned.domain.conversation.key_facts import (
    SHORT_CHARS,
    facts_of,
    select_facts,
    unique,
)
from mnemosyned.domain.conversation.message_tokens import FullCounter, MessageCounter
from mnemosyned.domain.conversation.messages import (
    Message,
    PartKind,
    message_id,
    message_time,
    parts,
    text,
    tool_names,
)
from mnemosyned.domain.conversation.model_summary import Summarize, summarize_with_model
from mnemosyned.domain.conversation.policy import (
    KEEP_RECENT,
    MAX_TOKENS,
    THRESHOLD,
    Compaction,
    CompactionDecision,
    RemovedMessage,
    SplitConversation,
    at_threshold,
)
from mnemosyned.domain.conversation.summary_message import (
    POINTER,
    SummaryContent,
    SummaryLayout,
    body_of,
    merge_summaries,
    render_summary,
    summary_message,
)
from mnemosyned.domain.conversation.tool_stubs import stub_results
from mnemosyned.domain.dates.relative import anchor, relative
from mnemosyned.domain.memory import Detail, MemoryRecord
from mnemosyned.domain.secrets.exact_values import details
from mnemosyned.domain.secrets.known import KnownSecrets
from mnemosyned.domain.summary.extract import extract
from mnemosyned.domain.summary.prompt import neutralize
from mnemosyned.domain.text.token_estimate import Estimated

TARGET = 0.6
SUMMARY_FRACTION = 0.15
"""Of the window, what a summary may take; facts beyond that are in its metadata and the archive."""
PROSE_SHARE = 0.6
"""Of the summary, what a model's words may take; a longer answer is none."""
VALUES_SHARE = 0.25
"""Of the summary, what the exact values may take that its facts do not show."""
EXTRACT_RATIO = 0.25
"""Of long prose, what its most telling sentences may take where no model retells it."""
_SPOKEN = (PartKind.TEXT, PartKind.RESULT)


class AutoPolicy:
    """Makes room by rule, and by a model where one is given; secrets stay out of its summaries."""

    name: ClassVar[str] = "auto"

    def __init__(
        self,
        max_tokens: int = MAX_TOKENS,
        *,
        threshold: float = THRESHOLD,
        target: float = TARGET,
        keep_recent: int = KEEP_RECENT,
        summarize: Summarize | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        self.max_tokens = max_tokens
        self.threshold = threshold
        self.target = min(target, threshold)
        self.keep_recent = max(0, keep_recent)
        self._summarize = summarize
        self._counter = counter or FullCounter(Estimated())

    def due(self, usage: int) -> CompactionDecision:
        return at_threshold(usage, self.threshold, self.max_tokens)

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> Compaction:
        divided = SplitConversation(
            messages, keep=self.keep_recent if keep_recent is None else keep_recent
        )
        costs = [self._counter.message(message) for message in messages]
        earlier = merge_summaries(divided.earlier)
        done = Compaction(
            messages=list(messages),
            policy=self.name,
            counter=self._counter.name,
            tokens_before=sum(costs),
            tokens_after=sum(costs),
            limit=max(0, self.max_tokens),
            facts=earlier.facts,
            orphans=divided.ties.orphans,
        )
        if not self.due(done.tokens_before).due:
            return done
        stubs = self._stubs(divided, costs)
        goal = share(self.max_tokens, self.target)
        if sum(costs) <= goal or not divided.old:
            return self._with_stubs(done, divided, stubs, costs)
        shorter = self._summarized(done, divided, earlier, stubs, costs)
        return shorter if shorter.tokens_after < done.tokens_before else done

    def _stubs(
        self, divided: SplitConversation, costs: list[int]
    ) -> dict[int, Message]:
        """Stubs for old tool results, oldest first, until that is enough; `costs` follow."""
        goal = share(self.max_tokens, self.target)
        names = tool_names(divided.messages)
        stubs: dict[int, Message] = {}
        total = sum(costs)
        for at in divided.old:
            if total <= goal:
                break
            stub = stub_results(divided.messages[at], names)
            cost = self._counter.message(stub) if stub else costs[at]
            if stub and cost < costs[at]:
                total += cost - costs[at]
                stubs[at], costs[at] = stub, cost
        return stubs

    def _with_stubs(
        self,
        done: Compaction,
        divided: SplitConversation,
        stubs: dict[int, Message],
        costs: Sequence[int],
    ) -> Compaction:
        originals = divided.take(list(stubs))
        return replace(
            done,
            messages=[stubs.get(at, one) for at, one in enumerate(divided.messages)],
            tokens_after=sum(costs),
            archived=tuple(RemovedMessage(message_id(one), one) for one in originals),
            details=tuple(_exact_values(originals)),
        )

    def _summarized(
        self,
        done: Compaction,
        divided: SplitConversation,
        earlier: SummaryContent,
        stubs: dict[int, Message],
        costs: Sequence[int],
    ) -> Compaction:
        end = self._end(divided, costs)
        gone = [at for at in divided.old if at < end]
        left = [at for at in divided.live if at >= end]
        originals = divided.take(gone)
        archived = [*gone, *(at for at in stubs if at >= end)]
        noted = _exact_values(originals)
        secrets = [detail for detail in noted if detail.sensitive]
        prose, why = summarize_with_model(
            self._summarize,
            originals,
            fits=self._fits,
            earlier=earlier.prose,
            secrets=secrets,
        )
        told = [] if prose else _extract_prose(originals, secrets)
        holds = SummaryContent(
            facts=tuple(
                unique([*earlier.facts, *_key_facts(originals, secrets), *told])
            ),
            values=tuple(
                unique(
                    [
                        *earlier.values,
                        *(one.value for one in noted if not one.sensitive),
                    ]
                )
            ),
            prose=prose or earlier.prose,
            summary_of=tuple(
                unique([*earlier.summary_of, *map(message_id, originals)])
            ),
        )
        summary = self._summary(holds)
        kept = [
            *divided.messages[: divided.head],
            summary,
            *(stubs.get(at, divided.messages[at]) for at in left),
        ]
        return replace(
            done,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=tuple(
                RemovedMessage(message_id(one), one) for one in divided.take(archived)
            ),
            summaries=(body_of(summary["content"]),),
            facts=holds.facts,
            details=(*noted, *_exact_values(divided.take(archived[len(gone) :]))),
            fallback_reason=why,
        )

    def _fits(self, prose: str) -> bool:
        room = share(self.max_tokens, SUMMARY_FRACTION)
        return self._counter.text(prose) <= share(room, PROSE_SHARE)

    def _end(self, divided: SplitConversation, costs: Sequence[int]) -> int:
        """Up to where messages go: as few of the oldest as make room, and no pair parted."""
        room = share(self.max_tokens, self.target) - share(
            self.max_tokens, SUMMARY_FRACTION
        )
        left = sum(costs[: divided.head]) + sum(costs[at] for at in divided.live)
        live = set(divided.live)
        end = divided.head
        for cut in divided.ties.cuts:
            if left <= room or cut > divided.begin:
                break
            left -= sum(costs[at] for at in range(end, cut) if at in live)
            end = max(end, cut)
        return end

    def _summary(self, holds: SummaryContent) -> dict[str, Any]:
        """The summary message: all facts in its metadata, as many as there is room for in words."""
        room = share(self.max_tokens, SUMMARY_FRACTION)
        count = self._counter.text
        pointer = f"{POINTER}{len(holds.summary_of):,} messages, expand {holds.id}"
        shape = SummaryLayout(pointer=pointer)
        room -= count(render_summary((), shape=shape, prose=holds.prose))
        facts = select_facts(holds.facts, int(room * (1 - VALUES_SHARE)), count)
        room -= sum(count(f"- {fact}\n") for fact in facts)
        shown = "\n".join((holds.prose, *facts))
        missing = [value for value in holds.values if value not in shown]
        values = select_facts(missing, room, count)
        body = render_summary(
            facts,
            shape=replace(shape, values=values),
            prose=holds.prose,
            left_out=len(holds.facts) - len(facts),
        )
        return summary_message(body, holds, policy=self.name)


def _exact_values(messages: Iterable[Message]) -> list[Detail]:
    """The exact values of messages; what one of them shows to be secret is so in all."""
    noted = [
        detail
        for message in messages
        for part in parts(message)
        if part.kind in _SPOKEN
        for detail in details(part.text, memory=message_id(message))
    ]
    secrets = [detail for detail in noted if detail.sensitive]
    if not secrets:
        return noted
    known = KnownSecrets(secrets)
    return [
        detail
        if detail.sensitive or known.masked(detail.value) == detail.value
        else replace(detail, sensitive=True)
        for detail in noted
    ]


def _key_facts(messages: Sequence[Message], secrets: Sequence[Detail]) -> Iterator[str]:
    """The key facts without secrets, relative dates made absolute where the time is known."""
    names = tool_names(messages)
    known = KnownSecrets(secrets)
    for message in messages:
        said = message_time(message)
        for fact in facts_of(message, names):
            shown = known.masked(fact)
            yield anchor(shown, said) if said and relative(shown) else shown


def _extract_prose(messages: Sequence[Message], secrets: Sequence[Detail]) -> list[str]:
    """The most telling sentences of what was said at length, of messages that tell their time.

    Without one, "yesterday" would come to mean some other day.
    """
    known = KnownSecrets(secrets)
    prose = [
        MemoryRecord(
            id="",
            content=known.masked(neutralize(words)),
            created_at=said,
            role=_role(message),
        )
        for message in messages
        if (words := text(message).strip())
        and (len(words) > SHORT_CHARS or message.get("role") != "user")
        and (said := message_time(message))
    ]
    return list(extract(prose, ratio=EXTRACT_RATIO).lines) if prose else []


def _role(message: Message) -> str:
    role = message.get("role")
    return role if isinstance(role, str) else ""
