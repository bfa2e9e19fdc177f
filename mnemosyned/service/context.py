"""The verbs of an agent's window: `context` assembles it, and `compact` shortens a conversation."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mnemosyned import errors
from mnemosyned.config.settings import MODEL_TOKENIZER, ContextConfig, SettingsInForce
from mnemosyned.conversation import (
    archived,
    compaction,
    key_facts,
    policies,
    sections,
    summary_message,
)
from mnemosyned.conversation.briefing import has_substance, leave_out_rules
from mnemosyned.conversation.budget import TokenBudget
from mnemosyned.conversation.context import (
    ChosenWindow,
    ContextManager,
    WindowFitter,
    as_user_message,
)
from mnemosyned.conversation.learnings.relevance import RateTexts, select_relevant
from mnemosyned.conversation.messages import (
    FullCounter,
    Message,
    MessageCounter,
    group_messages,
    is_plain,
    make_short_digest,
    message_text,
    read_message_time,
)
from mnemosyned.instants import in_zone
from mnemosyned.logs import logger
from mnemosyned.memory import exchange, forgetting, injections, ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.endings import find_ended_in
from mnemosyned.memory.engine_ports import Summarizer
from mnemosyned.memory.masking import mask_together
from mnemosyned.service.briefing import (
    find_other_members,
    leave_out_others,
    make_injection,
)
from mnemosyned.service.intake import MEMBER, make_compacted_draft
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.text import sentences, terms
from mnemosyned.text.dates.questions import QuestionTimes, parse_times
from mnemosyned.text.secrets.masking import mask_metadata, mask_secrets
from mnemosyned.text.token_counts import CounterWithMargin, TokenEstimator
from mnemosyned.text.tokens import find_keywords
from mnemosyned.verbs.conversation import Assembled, Compact, Context, Shortened
from mnemosyned.verbs.memories import Expand, Expanded, Recall, Recalled
from mnemosyned.verbs.request import QUERY_CHARS_MAX, names
from mnemosyned.verbs.times import local_zone

if TYPE_CHECKING:
    from mnemosyned.service.service import Groups


RECALLED_MAX = 30
"""Maximum hits considered: more than fit into memory's share of a usual window."""
NEAREST_MAX = 3
"""Maximum hits considered where recall finds none that bears on the message for sure."""
QUOTED_CHARS_MAX = 600
"""Characters shown of a longer memory: the part that matches best."""
LINE_SHARE_MIN = 0.3
"""Share of the best line's score from which a line is quoted: a summary shows others beside its best."""
KEYWORDS_MIN = 2
"""Minimum keywords of a memory to be quoted."""
LEARNINGS_MAX = 1_000
"""Newest learnings considered; a context shows five."""
UNUSED_TOKENS = 2_000
"""Tokens left unused by the conversation that memory and learnings may take beyond their shares."""
LEARNINGS_PART = 4
"""The part of these for learnings is one in so many."""


_BUDGET_NAMES = {field.name: field.name for field in fields(TokenBudget)} | {
    "tool_definitions_reserve": "tools_reserve",
    "fresh_tail_count": "fresh_tail",
}
"""Names of a budget's values in settings and requests."""


def _read_budget_values(source: ContextConfig | Context) -> dict[str, Any]:
    """Return {field of `TokenBudget`: value} for the values that settings or a request give."""
    given = {name: getattr(source, said) for name, said in _BUDGET_NAMES.items()}
    return {name: value for name, value in given.items() if value is not None}


def token_budget(context: ContextConfig) -> TokenBudget:
    """Return the token budget of the settings. Raises `ConfigInvalid`."""
    try:
        return TokenBudget(**_read_budget_values(context))
    except errors.InvalidRequest as error:
        raise errors.ConfigInvalid(
            f"context: {error.message}", field="context"
        ) from error


def default_counter() -> MessageCounter:
    """Return the token counter used without a tokenizer: an estimate with a safety margin."""
    return FullCounter(CounterWithMargin(TokenEstimator()))


def make_counter(tokenizer: str | None, summarizer: Summarizer) -> MessageCounter:
    """Return the token counter that the setting `context.tokenizer` names.

    None is an estimate, "model" the tokenizer of the model in `summarizer`, and any other text a
    file. Raises `ConfigInvalid` if the file is unusable, or there is no model.
    """
    if tokenizer is None:
        return default_counter()
    from mnemosyned.models.tokenizers import ModelCounter, open_counter  # noqa: PLC0415 no estimate needs it

    if tokenizer == MODEL_TOKENIZER:
        model = summarizer.model
        if model is None:
            raise errors.ConfigInvalid(
                'context.tokenizer is "model", but no model is configured; name one in llm, or a '
                "tokenizer's file",
                field="context.tokenizer",
            )
        return FullCounter(
            ModelCounter(model, otherwise=CounterWithMargin(TokenEstimator()))
        )
    try:
        return FullCounter(open_counter(Path(tokenizer).expanduser()))
    except errors.TokenizerUnusable as error:
        raise errors.ConfigInvalid(
            f"context.tokenizer: {error.message}", field="context.tokenizer"
        ) from error


log = logger()

WrittenSummary = tuple[Message, summary_message.SummaryContent]
"""A summary that a compaction wrote, and its content."""
ArchivedPart = ports.ArchivedMessage | str
"""A message, or the id of the compaction that archived it before."""


class IdentifiedConversation:
    """A conversation whose messages have our ids while a compaction policy works on them.

    An agent may number its messages from 1 in each conversation. Our ids are digests of session and content:
    equal for the same message anywhere, and different for any other.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str,
        source: str | None,
        stored: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """Give each message an id: a digest of session, source, and the message as `stored` returns it."""
        self.session = session
        self.source = source
        self.own = messages
        self.messages = [
            {
                **message,
                "id": make_short_digest("m", [source, session, stored(message)]),
            }
            for message in messages
        ]
        pairs = list(zip(self.messages, messages, strict=True))
        self._own = {id(identified): message for identified, message in pairs}
        self._by_id = {identified["id"]: message for identified, message in pairs}

    def restore_message(self, message: Message) -> Message:
        """Return a message with the agent's id instead of ours; an unchanged one as the agent's own object."""
        if id(message) in self._own:
            return self._own[id(message)]
        own = self._by_id.get(str(message.get("id")))
        if own is None:
            return message
        restored = {key: value for key, value in message.items() if key != "id"}
        if "id" in own:
            restored["id"] = own["id"]
        return restored

    def original(self, message_id: str) -> Mapping[str, Any]:
        """Return the message as the agent sent it, by our id."""
        return self._by_id[message_id]

    def new_summaries(self, done: compaction.Compaction) -> list[WrittenSummary]:
        """Return (message, parsed content) for the summary messages that a compaction added."""
        return [
            (message, summary_message.read_summary(message))
            for message in done.messages
            if id(message) not in self._own
            and isinstance(metadata := message.get("metadata"), Mapping)
            and metadata.get("kind") == summary_message.KIND
        ]

    def new_stubs(self, done: compaction.Compaction) -> dict[str, Message]:
        """Return {our id of the original: truncated message} for the messages that `done` truncated."""
        return {
            message["id"]: message
            for message in done.messages
            if id(message) not in self._own and message.get("id") in self._by_id
        }


@dataclass(eq=False, kw_only=True)
class WindowService:
    """The verbs `context` and `compact` over one store, and `expand` for what `compact` removed."""

    store: ports.MemoryStore
    clock: Clock
    settings: SettingsInForce
    recall: Callable[[Recall, Groups], Recalled]
    rate: RateTexts | None
    """Rates learnings by their meaning; None without a built-in encoder."""
    lease: SummarizerLease
    """Lends the model that summarizes."""
    on_archived: Callable[[Collection[int]], object]
    """Called with the bytes of each message that a compaction stored."""

    def context(
        self, request: Context, groups: Groups = MappingProxyType({})
    ) -> Assembled:
        """Return the context for the next message: system prompt, messages and recalled memories.

        Memories of `groups` are recalled, too. The recalled texts are added to the ledger, where those
        of groups are only counted. Raises `InvalidRequest` if the required parts exceed the budget.
        """
        counter = self.settings.counter
        # The settings, overridden by the values of the request.
        usual = token_budget(self.settings.config.context)
        budget = replace(usual, **_read_budget_values(request))
        new = as_user_message(request.message)
        question = " ".join(message_text(new).replace("\0", " ").split())[
            :QUERY_CHARS_MAX
        ]
        chosen = WindowFitter(
            request.system,
            new,
            request.messages,
            budget=budget,
            counter=counter,
            tools=request.tools,
        ).fit()
        memory_tokens, learnings_tokens = _limit_sections(
            request, budget, unused=chosen.spare_tokens or 0
        )
        # Learnings of its sources and of none; without a source, of all.
        sources = (*names(request.source), None) if request.source else ()
        learnings = select_relevant(
            leave_out_others(
                self.store.learnings.find(sources=sources, limit=LEARNINGS_MAX),
                self.store,
            ),
            question=_make_subject_text(request, question),
            now=self.clock.now(),
            budget_tokens=learnings_tokens,
            count=counter.text,
            rate=self.rate,
        )
        manager = ContextManager(
            budget,
            counter=counter,
            memory_place=request.memory_place,
            shrink_learnings=True,
        )
        told = {each.memory for each in learnings}
        notes = {
            id: "".join(
                f" (since {each.until}: {each.successor})"
                for each in every
                if each.by not in told
            )
            for id, every in find_ended_in(learnings, self.store.endings.of).items()
        }
        ids = [each.memory for each in learnings if each.memory]
        members = find_other_members(ids, [self.store] if MEMBER.get()[0] else [])
        said = {id: f"{member}: " for id, member in members.items()}
        recalled = self._select_quotes(request, question, chosen, learnings, groups)
        added_sections = manager.write_sections(
            [quoted for *_, quoted in recalled],
            # The ledger has no notes: they are forgotten with another memory.
            [
                said.get(each.memory or "", "") + each.text + notes.get(each.id, "")
                for each in learnings
            ],
            limits=(memory_tokens, learnings_tokens),
            spare_tokens=chosen.spare_tokens,
        )
        window = manager.assemble(chosen, added_sections, request.tools)
        quoted = recalled[: window.memory_shown]
        rules = learnings[: window.learnings_shown]
        ended = ", given as ended"
        shown = [
            injections.InjectedLine(
                id=id,
                text=words,
                reason="recalled for this message" + ended * (quote.text != words),
            )
            for owner, id, words, quote in quoted
            if owner is None
        ]
        shown += [
            injections.InjectedLine(
                id=each.id, text=each.text, reason=f"{each.kind} for this message"
            )
            for each in rules
        ]
        if (quoted or rules) and not self.store.read_only:
            words = [words for _, _, words, _ in quoted] + [each.text for each in rules]
            injection = make_injection(
                self.clock.now(),
                injections.InjectionKind.CONTEXT,
                client=next(iter(names(request.source)), ""),
                session=next(iter(names(request.session)), ""),
                prompt=question,
                text="\n".join(words),
                lines=shown,
            )
            self.store.injections.add(injection)
        return Assembled(
            system=window.system,
            messages=summary_message.sendable(window.messages),
            tokens=window.breakdown,
            total=window.breakdown.total,
            kept=list(window.kept),
            dropped=list(window.dropped),
            recalled=[id for _, id, *_ in quoted],
            learnings=[learning.id for learning in rules],
            orphans=list(window.orphans),
        )

    def _select_quotes(
        self,
        request: Context,
        question: str,
        chosen: ChosenWindow,
        learnings: Sequence[values.Learning],
        groups: Groups,
    ) -> list[tuple[str | None, str, str, sections.Quoted]]:
        """Return (owner, memory id, words, quote) for each recalled text to quote, best first.

        Texts that the chosen window or a learning shows anyway are left out. A message without
        content words gets no quotes.
        """
        times = parse_times(question, in_zone(self.clock.now(), local_zone()))
        relevance = sections.Relevance(question, times)
        if not relevance.has_content:
            return []
        recall = Recall(
            question,
            limit=RECALLED_MAX,
            session=request.session,
            source=request.source,
            explain=True,
        )
        found = self.recall(recall, groups)
        hits = relevance.select_relevant_hits(found.hits)
        if not found.hits:  # what is nearest may bear on a part of the message
            nearest = found.nearest[:NEAREST_MAX]
            hits = relevance.select_relevant_hits(nearest, by_words=True)
        if not hits:
            return []
        in_window = (request.messages[position] for position in chosen.kept)
        # Quoted, superseded learnings would contradict the new ones.
        sources = (*names(request.source), None) if request.source else ()
        every = self.store.learnings.find(
            sources=sources, superseded=True, limit=LEARNINGS_MAX
        )
        seen = {
            *(_normalize_spaces(message_text(message)) for message in in_window),
            _normalize_spaces(message_text(as_user_message(request.message))),
            *(_normalize_spaces(each.text) for each in every if each.superseded_by),
        }
        known: dict[str, list[str]] = defaultdict(list)
        for learning in learnings:
            known[learning.memory or ""].append(learning.text)
        texts = list(_list_quotable_texts(hits, question, seen=seen, known=known))
        owners = {owner for owner, *_ in texts if owner}
        shared = [groups[owner]().store for owner in owners]
        shared += [self.store] if MEMBER.get()[0] else []
        members = find_other_members((id for _, id, *_ in texts), shared)
        return [
            (owner, id, words, replace(quoted, speaker=members.get(id, quoted.speaker)))
            for owner, id, words, quoted in texts
        ]

    def compact(self, request: Compact) -> Shortened:
        """Shorten a conversation if near its token limit or with `force`; store the removed messages."""
        counter = self.settings.counter
        tokens = counter.total(request.messages)
        limit = request.max_tokens
        if limit is None:
            limit = self.settings.config.context.total
        if request.reported_tokens and tokens:
            # The API counted otherwise: scale its limit to our tokens.
            limit = limit * tokens // request.reported_tokens
        policy = self._make_policy(request, limit)
        if not (request.force or policy.due(tokens).due):
            return Shortened(
                changed=False,
                messages=request.messages,
                policy=request.policy,
                counter=counter.name,
                tokens_before=tokens,
                tokens_after=tokens,
                limit=limit,
                over_budget=0 < limit < tokens,
                orphans=list(group_messages(request.messages).orphans),
            )
        conversation = IdentifiedConversation(
            request.messages,
            session=request.session,
            source=request.source,
            stored=dict if self.settings.config.secrets == "keep" else mask_metadata,
        )
        done = policy.compact(conversation.messages, keep_recent=request.keep_recent)
        done = policies.shorten_longest(done, limit, counter)
        stored_sizes = self._archive_removed(done, conversation) if done.changed else {}
        self.on_archived([size for size in stored_sizes.values() if size])
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
            messages=[
                conversation.restore_message(message) for message in done.messages
            ],
            policy=done.policy,
            counter=done.counter,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            limit=limit,
            over_budget=0 < limit < done.tokens_after,
            summaries=list(done.summaries),
            expand=[*summary_ids, *conversation.new_stubs(done)],
            archived=list(stored_sizes),
            orphans=list(done.orphans),
            fallback_reason=done.fallback_reason,
        )

    def _make_policy(self, request: Compact, limit: int) -> compaction.CompactionPolicy:
        """Return the compaction policy that a request names, for a window of `limit` tokens."""
        counter = self.settings.counter
        threshold = (
            compaction.THRESHOLD if request.threshold is None else request.threshold
        )
        if request.policy == "facts":
            return compaction.MemoryConsolidator(threshold, limit, counter=counter)
        summarize = None
        if self.lease.has_model:
            summarize = _TimeLimitedModel(
                self.lease,
                self.clock,
                limit_s=self.settings.config.context.model_limit_s,
            )
        if request.policy == "rounds":
            return policies.RoundsPolicy(
                0 if request.force else limit, counter=counter, summarize=summarize
            )
        return policies.AutoPolicy(
            limit,
            threshold=0.0 if request.force else threshold,
            counter=counter,
            summarize=summarize,
        )

    def _archive_removed(
        self, done: compaction.Compaction, conversation: IdentifiedConversation
    ) -> dict[str, int]:
        """Store the messages that a compaction removed; return the bytes stored by id of their memories."""
        now = self.clock.now()
        ids = (message["id"] for message in conversation.messages)
        times = archived.find_message_times(conversation.own, now=now)
        time_by_id = dict(zip(ids, times, strict=True))
        parts = {
            removed.id: self._make_archived_part(
                removed.id, conversation, time_by_id[removed.id]
            )
            for removed in done.archived
        }

        def make_compaction(
            id: str, text: str, own: Iterable[ArchivedPart]
        ) -> ports.NewCompaction:
            """Return a record of a new summary or truncated message `text`, with the parts it replaces."""
            compacted = exchange.ExportedCompaction(
                id=id,
                session=conversation.session,
                source=conversation.source,
                policy=done.policy,
                text_hash=forgetting.content_hash(text),
                created_at=now,
            )
            return ports.NewCompaction(compacted, tuple(own))

        merged = self._find_merged_summaries(done, conversation)
        summaries = [
            make_compaction(
                content.id,
                mask_secrets(message["content"]),
                [
                    *(
                        id
                        for earlier, covered in merged
                        if set(earlier.summary_of) <= set(content.summary_of)
                        for id in covered
                    ),
                    *(parts[id] for id in content.summary_of if id in parts),
                ],
            )
            for message, content in conversation.new_summaries(done)
        ]
        stubs = [
            make_compaction(id, "", [parts[id]]) for id in conversation.new_stubs(done)
        ]
        return self.store.memories.add_compactions([*summaries, *stubs])

    def expand(self, request: Expand) -> Expanded | None:
        """Return the messages of a compaction by its id; None if the id is no compaction's.

        Forgotten messages are left out. The summary is made of the key facts of the others. Raises
        `NotFound` if all were forgotten.
        """
        stored_compaction = self.store.memories.compaction(request.id)
        if stored_compaction is None:
            return None
        compacted, originals = stored_compaction
        if not originals:
            raise errors.NotFound(
                f"everything that {request.id} stands for was forgotten", field="id"
            )
        facts = key_facts.extract_facts(
            [archived.as_message(memory) for memory in originals]
        )
        times = [memory.created_at for memory in originals]
        episode = values.Episode(
            id=compacted.id,
            content=mask_secrets(summary_message.render_summary(facts)),
            created_at=compacted.created_at,
            session=compacted.session,
            source=compacted.source,
            level=0,
            item_count=len(originals),
            covers_from=min(times),
            covers_until=max(times),
            summarizer=f"compact:{compacted.policy}",
            summary_of=tuple(memory.id for memory in originals),
        )
        if not request.reveal:
            originals = mask_together(originals)
        return Expanded(episode, [archived.as_original(memory) for memory in originals])

    def _make_archived_part(
        self, id: str, conversation: IdentifiedConversation, said: datetime
    ) -> ArchivedPart:
        """Return a message to archive as a memory, or the id of the compaction that has its full original."""
        own = conversation.original(id)
        archived_as = archived.find_original_id(own)
        stored_compaction = (
            self.store.memories.compaction(archived_as) if archived_as else None
        )
        if archived_as and stored_compaction:
            _, originals = stored_compaction
            if any(
                archived.is_truncation_of(own, archived.as_message(memory))
                for memory in originals
            ):
                return archived_as
        memory = archived.as_memory(
            own,
            id=id,
            said=said,
            session=conversation.session,
            source=conversation.source,
        )
        return ports.ArchivedMessage(
            make_compacted_draft(memory, self.settings.config, now=self.clock.now()),
            may_reuse=is_plain(own) and memory.content != archived.WORDLESS,
            has_timestamp=read_message_time(own) is not None,
        )

    def _find_merged_summaries(
        self, done: compaction.Compaction, conversation: IdentifiedConversation
    ) -> list[tuple[summary_message.SummaryContent, list[str]]]:
        """Return (content, ids of their compactions) of the earlier summaries that a compaction removed."""
        left = {id(message) for message in done.messages}
        merged: list[tuple[summary_message.SummaryContent, list[str]]] = []
        for message in conversation.messages:
            if not summary_message.is_summary(message) or id(message) in left:
                continue
            content = summary_message.read_summary(message)
            ids = [
                content.id,
                *(id for id in content.summary_of if id.startswith("c-")),
            ]
            if not content.summary_of:
                known = self.store.memories.find_compaction(
                    mask_secrets(message_text(message)),
                    session=conversation.session,
                    source=conversation.source,
                )
                ids = [known] if known else []
            merged.append((content, ids))
        return merged


def _limit_sections(
    request: Context, budget: TokenBudget, *, unused: int
) -> tuple[int, int]:
    """Return the maximum tokens of memory and of learnings: the share of each, or more of `unused` tokens.

    A share that the request sets, and a share of 0, are not raised.
    """
    unused = min(unused, UNUSED_TOKENS)
    memory, learnings = budget.memory, budget.learnings
    if request.memory_fraction is None and budget.memory_fraction:
        memory = max(memory, unused)
    if request.learnings_fraction is None and budget.learnings_fraction:
        learnings = max(learnings, unused // LEARNINGS_PART)
    return memory, learnings


def _make_subject_text(request: Context, question: str) -> str:
    """Return the question, or if it has no content words (like "go on"), with the last user message added."""
    if sections.Relevance(question, QuestionTimes()).has_content:
        return question
    before = (
        message_text(message)
        for message in reversed(request.messages)
        if message.get("role") == "user" and message_text(message).strip()
    )
    return f"{question} {next(before, '')}"[:QUERY_CHARS_MAX]


def _list_quotable_texts(
    hits: Sequence[values.Hit],
    question: str,
    *,
    seen: set[str],
    known: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str | None, str, str, sections.Quoted]]:
    """Yield (owner, memory id, words, quote) for each recalled text once, best first.

    The quote has notes on ended statements, which `words` lacks, as a note is forgotten with another memory.
    Questions, single words and texts in `seen` are left out, and yielded texts are added to `seen`. `known` has
    by memory id the learnings to leave out.
    """
    asked = terms.parse_terms(question)
    lines = [(line, hit) for hit in hits for line in hit.lines or (hit,)]
    least = LINE_SHARE_MIN * max((line.score for line, _ in lines), default=0.0)
    for line, hit in sorted(lines, key=lambda pair: -pair[0].score):
        if line.score < least:
            break
        text = line.content
        if rules := known.get(line.id):
            text = leave_out_rules(rules, text, text)
        words = _normalize_spaces(text)
        asks = sentences.is_question(words) and not has_substance(words)
        if asks or words in seen or len(find_keywords(words)) < KEYWORDS_MIN:
            continue
        seen.add(words)
        snippet = terms.cut_snippet(text, asked, width=QUOTED_CHARS_MAX)
        quoted = sections.Quoted(
            text="\n".join([snippet, *(f"({ended.note})" for ended in line.ended)]),
            said=line.created_at,
            speaker=line.role,
            source=": ".join(filter(None, (hit.owner, hit.source or hit.session))),
        )
        yield hit.owner, line.id, snippet, quoted


def _normalize_spaces(words: str) -> str:
    """Return the text with single spaces between words, for comparison."""
    return " ".join(words.split())


@dataclass(eq=False)
class _TimeLimitedModel:
    """A model that summarizes messages until the time for one compaction is used up."""

    lease: SummarizerLease
    clock: Clock
    limit_s: float
    ends: float | None = None
    """When the time is used up by the monotonic clock; set at the first call."""

    def __call__(self, messages: Sequence[Message]) -> str:
        """Return the model's summary. Raises `SummarizerFailed`, also if the time is used up."""
        self.ends = self.ends or time.monotonic() + self.limit_s
        left_s = self.ends - time.monotonic()
        if left_s <= 0:
            raise errors.SummarizerFailed(
                f"its {self.limit_s:g} s for one compaction are used up"
            )
        now = self.clock.now()
        memories = [
            values.MemoryRecord(
                id=str(position),
                content=message_text(message),
                created_at=read_message_time(message) or now,
                role=message["role"],
            )
            for position, message in enumerate(messages)
        ]
        summary = self.lease.summarize(memories, time_limit_s=left_s)
        if summary.fallback_reason:
            raise errors.SummarizerFailed(summary.fallback_reason)
        return summary.text
