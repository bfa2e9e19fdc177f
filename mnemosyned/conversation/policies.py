"""Policies of compaction: the default, and rounds, which keeps every message of the user.

The default policy truncates old tool results, then summarizes old messages: the oldest go into one
summary, merged with the earlier one. It begins at a threshold and goes down to a target well below
it, so that the next message does not start it again.

In the rounds policy, messages of the user stay. A round is the work of the agent between two of
them. Each finished round becomes one summary in its place; the last is compacted only if the
conversation is still over the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from mnemosyned.conversation import budget, compaction, key_facts, summary_message
from mnemosyned.conversation.archived import truncate_results
from mnemosyned.conversation.messages import (
    FullCounter,
    Message,
    MessageCounter,
    PartKind,
    count_pinned,
    find_tool_names,
    has_user_content,
    is_system,
    message_id,
    message_parts,
    message_text,
    read_message_time,
)
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import extract
from mnemosyned.text import exact_values, frames, token_counts
from mnemosyned.text.dates import formatting
from mnemosyned.text.details import Detail
from mnemosyned.text.secrets.masking import KnownSecrets

TARGET = 0.6
SUMMARY_FRACTION = 0.15
"""Share of the window for a summary's text; more facts stay in its metadata and the archive."""
EXTRACT_RATIO = 0.25
"""Share of long prose that is kept, as its best sentences, if no model summarizes it."""
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
        """Compact from a share `threshold` of `max_tokens` on, down to a share `target`."""
        self.max_tokens = max_tokens
        self.threshold = threshold
        self.target = min(target, threshold)
        self.keep_recent = max(0, keep_recent)
        self._summarize = summarize
        self._counter = counter or FullCounter(token_counts.TokenEstimator())

    def due(self, usage: int) -> compaction.CompactionDecision:
        """Return whether to compact: if `usage` tokens reach the threshold of the context window."""
        return compaction.decide_at_threshold(usage, self.threshold, self.max_tokens)

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> compaction.Compaction:
        """Return a compaction: with shorter old tool results, and if needed a summary of the oldest messages.

        The `keep_recent` newest messages stay, by default the policy's own number; their tool
        results are shortened only if they exceed the window. Below the threshold nothing changes.
        """
        keep = self.keep_recent if keep_recent is None else keep_recent
        split = compaction.SplitConversation(messages, keep=keep)
        costs = [self._counter.message(message) for message in messages]
        unchanged = split.unchanged(
            sum(costs), policy=self.name, counter=self._counter, limit=self.max_tokens
        )
        if not self.due(unchanged.tokens_before).due:
            return unchanged
        shorten = partial(
            _shorten_results, split.messages, costs=costs, counter=self._counter
        )
        target = budget.compute_share(self.max_tokens, self.target)
        stubs = shorten(split.old, excess=sum(costs) - target)
        # Those of the tail only if the tail and a summary exceed the window.
        summary = budget.compute_share(self.max_tokens, SUMMARY_FRACTION)
        excess = (
            sum(costs[: split.pinned])
            + sum(costs[at] for at in split.tail)
            + (summary if split.old or split.earlier else 0)
            - self.max_tokens
        )
        longest = sorted(split.tail, key=lambda at: -costs[at])
        stubs |= shorten(longest, excess=excess)
        if sum(costs) <= target or not split.old:
            originals = split.messages_at(sorted(stubs))
            return replace(
                unchanged,
                messages=[stubs.get(at, messages[at]) for at in range(len(messages))],
                tokens_after=sum(costs),
                archived=compaction.mark_as_removed(originals),
                details=tuple(_extract_values(originals)),
            )
        done = self._replace_oldest(unchanged, split, stubs, costs)
        return done if done.tokens_after < unchanged.tokens_before else unchanged

    def _replace_oldest(
        self,
        unchanged: compaction.Compaction,
        split: compaction.SplitConversation,
        stubs: Mapping[int, Message],
        costs: Sequence[int],
    ) -> compaction.Compaction:
        """Return a compaction with a summary in place of the oldest messages.

        `stubs` are the messages with truncated results, by position; they replace those that stay. `costs` are
        the tokens of all messages.
        """
        window = self.max_tokens
        room = budget.compute_share(window, self.target) - budget.compute_share(
            window, SUMMARY_FRACTION
        )
        tokens = sum(costs[: split.pinned]) + sum(costs[at] for at in split.live)
        live = set(split.live)
        end = split.pinned  # what is before it is summarized, to reach the target
        for cut in split.groups.cuts:
            if tokens <= room or cut > split.tail_start:
                break
            tokens -= sum(costs[at] for at in range(end, cut) if at in live)
            end = max(end, cut)
        summarized = [position for position in split.old if position < end]
        left = [position for position in split.live if position >= end]
        late_stubs = sorted(position for position in stubs if position >= end)
        originals = split.messages_at(summarized)
        values = _extract_values(originals)
        content, reason = self._make_content(
            originals, values, summary_message.merge_summaries(split.earlier)
        )
        summary = summary_message.write_fitting_summary(
            content,
            budget.compute_share(self.max_tokens, SUMMARY_FRACTION),
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
            archived=compaction.mark_as_removed(
                [*originals, *split.messages_at(late_stubs)]
            ),
            summaries=(summary_message.remove_header(summary["content"]),),
            facts=content.facts,
            details=(*values, *_extract_values(split.messages_at(late_stubs))),
            fallback_reason=reason,
        )

    def _make_content(
        self,
        originals: Sequence[Message],
        values: Sequence[Detail],
        earlier: summary_message.SummaryContent,
    ) -> tuple[summary_message.SummaryContent, str]:
        """Return a summary's content, made of `originals`; and why the model wrote no prose, or ""."""
        secrets = [value for value in values if value.sensitive]
        room = budget.compute_share(
            budget.compute_share(self.max_tokens, SUMMARY_FRACTION),
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
        facts = _extract_key_facts(originals, secrets)
        shown = (value.value for value in values if not value.sensitive)
        content = summary_message.SummaryContent(
            facts=key_facts.merge_lists(earlier.facts, facts, sentences),
            values=key_facts.merge_lists(earlier.values, shown),
            prose=prose or earlier.prose,
            summary_of=key_facts.merge_lists(
                earlier.summary_of, map(message_id, originals)
            ),
        )
        return content, reason


def _shorten_results(
    messages: Sequence[Message],
    positions: Iterable[int],
    costs: list[int],
    excess: int,
    *,
    counter: MessageCounter,
) -> dict[int, Message]:
    """Return {position: message with shortened results}, to save `excess` tokens; update `costs`."""
    names = find_tool_names(messages)
    stubs: dict[int, Message] = {}
    for position in positions:
        if excess <= 0:
            break
        stub = truncate_results(messages[position], names)
        cost = counter.message(stub) if stub else costs[position]
        if stub and cost < costs[position]:
            excess -= costs[position] - cost
            stubs[position], costs[position] = stub, cost
    return stubs


def shorten_longest(
    done: compaction.Compaction, limit: int, counter: MessageCounter
) -> compaction.Compaction:
    """Return a compaction whose longest tool results are shortened until it fits a `limit` above 0."""
    costs = list(map(counter.message, done.messages))
    excess = sum(costs) - limit
    if limit <= 0 or excess <= 0:
        return done
    longest = sorted(range(len(costs)), key=lambda at: -costs[at])
    stubs = _shorten_results(done.messages, longest, costs, excess, counter=counter)
    originals = (done.messages[at] for at in sorted(stubs))
    return replace(
        done,
        messages=[stubs.get(at, each) for at, each in enumerate(done.messages)],
        tokens_after=sum(costs),
        archived=(*done.archived, *compaction.mark_as_removed(originals)),
    )


def _extract_values(messages: Iterable[Message]) -> list[Detail]:
    """Return the exact values of messages; a value that is secret in one message is marked in all."""
    values: list[Detail] = []
    for message in messages:
        id = message_id(message)
        for part in message_parts(message):
            if part.kind in _SPOKEN:
                values += exact_values.extract_details(part.text, memory=id)
    secrets = [value for value in values if value.sensitive]
    if not secrets:
        return values
    return list(map(KnownSecrets(secrets).mark, values))


def _extract_key_facts(
    messages: Sequence[Message], secrets: Sequence[Detail]
) -> Iterator[str]:
    """Yield the key facts of messages, with secrets masked and dates such as "yesterday" resolved."""
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
    """Return the best sentences of messages that have a time, with secrets masked; skip users' short messages.

    In messages without a time, words such as "yesterday" could not be resolved.
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
                    content=known.mask(frames.neutralize(words)),
                    created_at=said,
                    role=role if isinstance(role, str) else "",
                )
            )
    return list(extract(memories, ratio=EXTRACT_RATIO).lines) if memories else []


class RoundsPolicy:
    """Policy that summarizes the agent's work in each round, and keeps all messages of system and user."""

    name: ClassVar[str] = "rounds"

    def __init__(
        self,
        token_limit: int = 80_000,
        *,
        keep_last: int = compaction.KEEP_RECENT,
        summarize: compaction.SummarizeMessages | None = None,
        counter: MessageCounter | None = None,
    ) -> None:
        """Compact above `token_limit`; the `keep_last` newest messages of the last round stay."""
        self.token_limit = token_limit
        self.keep_last = max(0, keep_last)
        self._summarize = summarize
        self._counter = counter or FullCounter(token_counts.TokenEstimator())

    def due(self, usage: int) -> compaction.CompactionDecision:
        """Return whether to compact: if `usage` tokens exceed the limit."""
        over = usage > self.token_limit
        return compaction.CompactionDecision(
            over, f"over {self.token_limit:,}" if over else ""
        )

    def compact(
        self, messages: Sequence[Message], *, keep_recent: int | None = None
    ) -> compaction.Compaction:
        """Return a compaction: above the limit, with summaries in place of the agent's work in earlier rounds.

        A round is the work between two messages of the user. If the limit is still exceeded, the last round
        is summarized as well, except its `keep_recent` newest messages (by default the policy's own
        number), and then the longest tool results are shortened.
        """
        keep = self.keep_last if keep_recent is None else keep_recent
        tokens = sum(map(self._counter.message, messages))
        split = compaction.SplitConversation(messages, keep=keep)
        unchanged = split.unchanged(
            tokens, policy=self.name, counter=self._counter, limit=self.token_limit
        )
        if not self.due(tokens).due:
            return unchanged
        immovable = [
            is_system(message)
            or (has_user_content(message) and not summary_message.is_summary(message))
            for message in messages
        ]
        for begin, end in pairwise(split.groups.cuts):
            if end - begin > 1 and any(immovable[begin:end]):
                immovable[begin:end] = [True] * (end - begin)
        intents = [
            position
            for position, stays in enumerate(immovable)
            if stays and has_user_content(messages[position])
        ]
        last_round = intents[-1] + 1 if intents else count_pinned(messages)
        done = self._summarize_runs(
            unchanged, _find_compactable_runs(immovable, 0, last_round)
        )
        if not self.due(done.tokens_after).due:
            return done
        end = max(last_round, split.tail_start)
        removed = len(messages) - len(done.messages)
        runs = _find_compactable_runs(
            immovable[removed:], last_round - removed, end - removed
        )
        done = self._summarize_runs(done, runs)
        return shorten_longest(done, self.token_limit, self._counter)

    def _summarize_runs(
        self, done: compaction.Compaction, runs: Iterator[range]
    ) -> compaction.Compaction:
        """Return the compaction with each range in `runs` replaced by a summary, unless that is longer."""
        messages = done.messages
        kept: list[Message] = []
        made: list[_RoundSummary] = []
        copied = 0
        for run in runs:
            summary = self._summarize_run(messages[run.start : run.stop])
            if summary:
                kept += [*messages[copied : run.start], summary.message]
                copied = run.stop
                made.append(summary)
        kept += messages[copied:]
        removed = (message for summary in made for message in summary.archived)
        bodies = (
            summary_message.remove_header(summary.message["content"])
            for summary in made
        )
        reasons = (summary.fallback_reason for summary in made)
        return replace(
            done,
            messages=kept,
            tokens_after=sum(map(self._counter.message, kept)),
            archived=(*done.archived, *removed),
            summaries=(*done.summaries, *bodies),
            facts=_merge_earlier(kept).facts,
            fallback_reason=done.fallback_reason or next(filter(None, reasons), ""),
        )

    def _summarize_run(self, run: Sequence[Message]) -> _RoundSummary | None:
        """Return a summary of successive messages; None if all are summaries, or if it would be longer."""
        old = [message for message in run if not summary_message.is_summary(message)]
        if not old:
            return None
        earlier = _merge_earlier(run)
        archived = compaction.mark_as_removed(old)
        facts = key_facts.extract_facts(old, excerpt=key_facts.excerpt_highlights)
        content = summary_message.SummaryContent(
            facts=key_facts.merge_lists(earlier.facts, facts),
            values=earlier.values,
            summary_of=key_facts.merge_lists(
                earlier.summary_of, (removed.id for removed in archived)
            ),
        )
        room = sum(map(self._counter.message, run))

        def make_message(prose: str) -> dict[str, Any] | None:
            """Return the summary message with this prose; None if not shorter than the run."""
            body = summary_message.render_summary(
                content.facts, header=summary_message.ROUND_HEADER, prose=prose
            )
            message = summary_message.make_summary_message(
                body, replace(content, prose=prose), policy=self.name
            )
            return message if self._counter.message(message) < room else None

        if make_message("") is None:
            return None
        prose, reason = compaction.summarize_with_model(
            self._summarize,
            old,
            earlier=earlier.prose,
            fits=lambda prose: make_message(prose) is not None,
        )
        by_rule = (earlier.prose, describe_actions(old))
        message = make_message(prose or "\n".join(filter(None, by_rule)))
        return _RoundSummary(message, archived, reason) if message else None


class _RoundSummary(NamedTuple):
    """Summary message of a round, its originals, and the reason if a model failed."""

    message: dict[str, Any]
    archived: tuple[compaction.RemovedMessage, ...]
    fallback_reason: str


def describe_actions(messages: Sequence[Message]) -> str:
    """Return a text about an agent's work: the number of messages, the tools called, the last sentences."""
    tools = Counter(
        part.name or "tool"
        for message in messages
        for part in message_parts(message)
        if part.kind is PartKind.CALL
    )
    called = ", ".join(
        f"{name} ×{count}" if count > 1 else name for name, count in tools.items()
    )
    heading = f"{len(messages)} messages"
    if called:
        heading += f", tools called: {called}"
    texts = (message_text(message).strip() for message in reversed(messages))
    closing = key_facts.excerpt_last_sentences(next(filter(None, texts), ""))
    return f"{heading}\n{key_facts.CONCLUSION}{closing}" if closing else heading


def _merge_earlier(messages: Iterable[Message]) -> summary_message.SummaryContent:
    """Return the content of all summaries among these messages, merged into one."""
    earlier = filter(summary_message.is_summary, messages)
    return summary_message.merge_summaries(map(summary_message.read_summary, earlier))


def _find_compactable_runs(
    immovable: Sequence[bool], begin: int, end: int
) -> Iterator[range]:
    """Yield the longest ranges of positions from `begin` to `end` without an immovable message."""
    start = begin
    for position in range(begin, end + 1):
        if position == end or immovable[position]:
            if position > start:
                yield range(start, position)
            start = position + 1
