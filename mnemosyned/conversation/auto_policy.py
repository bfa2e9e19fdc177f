"""Default policy of compaction: truncate old tool results, then summarize old messages.

The oldest messages go into one summary, merged with the earlier one. Compaction begins at a
threshold and goes down to a target well below it, so that the next message does not start it
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from mnemosyned.conversation import compaction, key_facts, summary_message
from mnemosyned.conversation.archived import stub_results
from mnemosyned.conversation.budget import compute_share
from mnemosyned.conversation.messages import (
    FullCounter,
    Message,
    MessageCounter,
    PartKind,
    find_tool_names,
    message_id,
    message_parts,
    message_text,
    read_message_time,
)
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import extract
from mnemosyned.text.dates import formatting
from mnemosyned.text.details import Detail
from mnemosyned.text.exact_values import extract_details
from mnemosyned.text.frames import neutralize
from mnemosyned.text.secrets.masking import KnownSecrets
from mnemosyned.text.token_counts import TokenEstimator

TARGET = 0.6
SUMMARY_FRACTION = 0.15
"""Share of the window for a summary; further facts stay in its metadata and the archive."""
EXTRACT_RATIO = 0.25
"""Share of long prose kept as its best sentences, where no model summarizes it."""
_SPOKEN = (PartKind.TEXT, PartKind.RESULT)


class AutoPolicy:
    """Policy that truncates old tool results, then summarizes the oldest messages.

    A model writes the summaries if one is given. They contain no secrets.
    """

    name: ClassVar[str] = "auto"

    def __init__(
        self,
        max_tokens: int = compaction.MAX_TOKENS,
        *,
        threshold: float = compaction.THRESHOLD,
        target: float = TARGET,
        keep_recent: int = compaction.KEEP_RECENT,
        summarize: compaction.SummarizeMessages | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        """Compact from a share `threshold` of `max_tokens` on, down to a share `target`.

        The `keep_recent` newest messages stay. `summarize` asks a model for prose; None for none.
        """
        self.max_tokens = max_tokens
        self.threshold = threshold
        self.target = min(target, threshold)
        self.keep_recent = max(0, keep_recent)
        self._summarize = summarize
        self._counter = counter or FullCounter(TokenEstimator())

    def due(self, usage: int) -> compaction.CompactionDecision:
        """Decide to compact if `usage` tokens reach the threshold of the context window."""
        return compaction.decide_at_threshold(usage, self.threshold, self.max_tokens)

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> compaction.Compaction:
        """At the threshold, shorten old tool results, and if needed summarize the oldest messages.

        The `keep_recent` newest messages stay, by default the policy's own number. Below the
        threshold nothing changes.
        """
        keep = self.keep_recent if keep_recent is None else keep_recent
        split = compaction.SplitConversation(messages, keep=keep)
        costs = [self._counter.message(message) for message in messages]
        unchanged = split.unchanged(
            sum(costs), policy=self.name, counter=self._counter, limit=self.max_tokens
        )
        if not self.due(unchanged.tokens_before).due:
            return unchanged
        stubs = self._make_stubs(split, costs)
        if sum(costs) <= compute_share(self.max_tokens, self.target) or not split.old:
            originals = split.take(list(stubs))
            return replace(
                unchanged,
                messages=[stubs.get(at, messages[at]) for at in range(len(messages))],
                tokens_after=sum(costs),
                archived=compaction.mark_as_removed(originals),
                details=tuple(_extract_values(originals)),
            )
        done = self._replace_oldest(unchanged, split, stubs, costs)
        return done if done.tokens_after < unchanged.tokens_before else unchanged

    def _make_stubs(
        self, split: compaction.SplitConversation, costs: list[int]
    ) -> dict[int, Message]:
        """Return {position: message with short results}, oldest first, until the target is met.

        Only results of tools in old messages are shortened. `costs` are the tokens of each message;
        those of the shortened messages are updated.
        """
        goal = compute_share(self.max_tokens, self.target)
        names = find_tool_names(split.messages)
        stubs: dict[int, Message] = {}
        total = sum(costs)
        for position in split.old:
            if total <= goal:
                break
            stub = stub_results(split.messages[position], names)
            cost = self._counter.message(stub) if stub else costs[position]
            if stub and cost < costs[position]:
                total += cost - costs[position]
                stubs[position], costs[position] = stub, cost
        return stubs

    def _replace_oldest(
        self,
        unchanged: compaction.Compaction,
        split: compaction.SplitConversation,
        stubs: Mapping[int, Message],
        costs: Sequence[int],
    ) -> compaction.Compaction:
        """Return the compaction with a summary of the oldest messages, and short results after it.

        `unchanged` is the compaction without changes, `stubs` are messages with short tool results
        by position, `costs` the tokens of each message.
        """
        end = self._find_summary_end(split, costs)
        summarized = [position for position in split.old if position < end]
        left = [position for position in split.live if position >= end]
        late_stubs = [position for position in stubs if position >= end]
        originals = split.take(summarized)
        values = _extract_values(originals)
        content, reason = self._make_content(
            originals, values, summary_message.merge_summaries(split.earlier)
        )
        summary = summary_message.write_fitting_summary(
            content,
            compute_share(self.max_tokens, SUMMARY_FRACTION),
            self._counter.text,
            policy=self.name,
        )
        kept = [
            *split.messages[: split.pinned],
            summary,
            *(stubs.get(position, split.messages[position]) for position in left),
        ]
        return replace(
            unchanged,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=compaction.mark_as_removed([*originals, *split.take(late_stubs)]),
            summaries=(summary_message.remove_header(summary["content"]),),
            facts=content.facts,
            details=(*values, *_extract_values(split.take(late_stubs))),
            fallback_reason=reason,
        )

    def _make_content(
        self,
        originals: Sequence[Message],
        values: Sequence[Detail],
        earlier: summary_message.SummaryContent,
    ) -> tuple[summary_message.SummaryContent, str]:
        """Return a summary's content, and why a model wrote no prose for it; empty if none failed.

        `values` are the exact values of the messages `originals`; `earlier` is the content of
        earlier summaries.
        """
        secrets = [value for value in values if value.sensitive]
        room = compute_share(
            compute_share(self.max_tokens, SUMMARY_FRACTION),
            summary_message.PROSE_SHARE,
        )
        prose, reason = compaction.summarize_with_model(
            self._summarize,
            originals,
            fits=lambda prose: self._counter.text(prose) <= room,
            earlier=earlier.prose,
            secrets=secrets,
        )
        sentences = [] if prose else _extract_prose(originals, secrets)
        facts = [*earlier.facts, *_extract_key_facts(originals, secrets), *sentences]
        shown = (value.value for value in values if not value.sensitive)
        ids = map(message_id, originals)
        content = summary_message.SummaryContent(
            facts=tuple(key_facts.remove_repetitions(facts)),
            values=tuple(key_facts.remove_repetitions([*earlier.values, *shown])),
            prose=prose or earlier.prose,
            summary_of=tuple(key_facts.remove_repetitions([*earlier.summary_of, *ids])),
        )
        return content, reason

    def _find_summary_end(
        self, split: compaction.SplitConversation, costs: Sequence[int]
    ) -> int:
        """Return the position before which messages must be summarized to reach the target.

        `costs` are the tokens of each message. Tool calls stay together with their results.
        """
        window = self.max_tokens
        room = compute_share(window, self.target) - compute_share(
            window, SUMMARY_FRACTION
        )
        left = sum(costs[: split.pinned]) + sum(costs[at] for at in split.live)
        live = set(split.live)
        end = split.pinned
        for cut in split.groups.cuts:
            if left <= room or cut > split.tail_start:
                break
            left -= sum(costs[at] for at in range(end, cut) if at in live)
            end = max(end, cut)
        return end


def _extract_values(messages: Iterable[Message]) -> list[Detail]:
    """Return the exact values of messages; a value secret in one message is secret in all.

    Secrets are marked as sensitive.
    """
    values: list[Detail] = []
    for message in messages:
        id = message_id(message)
        for part in message_parts(message):
            if part.kind in _SPOKEN:
                values += extract_details(part.text, memory=id)
    secrets = [value for value in values if value.sensitive]
    if not secrets:
        return values
    return list(map(KnownSecrets(secrets).mark, values))


def _extract_key_facts(
    messages: Sequence[Message], secrets: Sequence[Detail]
) -> Iterator[str]:
    """Yield the key facts of messages, with secrets masked and dates such as "yesterday" resolved.

    `secrets` are masked wherever they occur; dates are resolved by the message's time.
    """
    names = find_tool_names(messages)
    known = KnownSecrets(secrets)
    concluding = key_facts.find_round_conclusions(messages)
    for position, message in enumerate(messages):
        said = read_message_time(message)
        facts = list(
            key_facts.extract_message_facts(
                message, names, excerpt=key_facts.excerpt_highlights
            )
        )
        if position in concluding:
            facts.append(concluding[position])
        for fact in facts:
            shown = known.mask(fact)
            yield (
                formatting.annotate_relative_dates(shown, said)
                if said and formatting.may_have_relative_dates(shown)
                else shown
            )


def _extract_prose(messages: Sequence[Message], secrets: Sequence[Detail]) -> list[str]:
    """Return the best sentences of long messages that have a time, with secrets masked.

    Without a time, "yesterday" would come to mean some other day.
    """
    known = KnownSecrets(secrets)
    memories: list[MemoryRecord] = []
    for message in messages:
        role, said = message.get("role"), read_message_time(message)
        words = message_text(message).strip()
        # A few words of the user are a fact, and kept whole.
        is_prose = words and (len(words) > key_facts.SHORT_CHARS or role != "user")
        if is_prose and said:
            memories.append(
                MemoryRecord(
                    id="",
                    content=known.mask(neutralize(words)),
                    created_at=said,
                    role=role if isinstance(role, str) else "",
                )
            )
    return list(extract(memories, ratio=EXTRACT_RATIO).lines) if memories else []
