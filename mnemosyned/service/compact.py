"""The verb `compact`: shorten a conversation, and archive the messages it removes for `expand`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.conversation.archived import (
    WORDLESS,
    as_memory,
    as_message,
    as_original,
    find_message_times,
    find_stub_pointer,
    is_stub_of,
)
from mnemosyned.conversation.auto_policy import AutoPolicy
from mnemosyned.conversation.compaction import (
    THRESHOLD,
    Compaction,
    CompactionPolicy,
    MemoryConsolidator,
)
from mnemosyned.conversation.key_facts import extract_facts
from mnemosyned.conversation.messages import (
    Message,
    group_messages,
    is_plain,
    make_short_digest,
    message_text,
    read_message_time,
)
from mnemosyned.conversation.rounds_policy import RoundsPolicy
from mnemosyned.conversation.summary_message import (
    KIND,
    SummaryContent,
    is_summary,
    read_summary,
    render_summary,
)
from mnemosyned.errors import NotFound, SummarizerFailed
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.masking import mask_memory
from mnemosyned.memory.ports import (
    ArchivedMessage,
    CompactionRecord,
    MemoryStore,
    NewCompaction,
)
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.service.intake import DraftMaker
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.text.secrets.masking import mask_metadata, mask_secrets
from mnemosyned.verbs.conversation import Compact, Shortened
from mnemosyned.verbs.memories import Expand, Expanded

log = logger()

WrittenSummary = tuple[Message, SummaryContent]
"""A summary that a compaction wrote, and its content."""
ArchivedPart = ArchivedMessage | str
"""A message, or the id of the compaction that archived it before."""


class IdentifiedConversation:
    """A conversation whose messages carry our ids while a policy works on them.

    An agent may number its messages from 1 in each conversation. Our ids are digests of session
    and content: equal for the same message anywhere, and different for any other.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str,
        source: str | None,
        stored: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """Give each message an id: the digest of what `stored` makes of it, its session and source."""
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
        """Return a message with the agent's own id, if any; the agent's own object if it is unchanged."""
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
        """Return the message as the agent sent it, by the id from this class."""
        return self._by_id[message_id]

    def new_summaries(self, done: Compaction) -> list[WrittenSummary]:
        """Return each summary message that a compaction added, with its parsed content."""
        return [
            (message, read_summary(message))
            for message in done.messages
            if id(message) not in self._own
            and isinstance(metadata := message.get("metadata"), Mapping)
            and metadata.get("kind") == KIND
        ]

    def new_stubs(self, done: Compaction) -> dict[str, Message]:
        """Return the truncated messages in place of long ones, by our ids of the originals."""
        return {
            message["id"]: message
            for message in done.messages
            if id(message) not in self._own and message.get("id") in self._by_id
        }


@dataclass(eq=False, kw_only=True)
class CompactService:
    """The verb `compact`, and `expand` for what it removed."""

    store: MemoryStore
    lease: SummarizerLease
    """Lends the model that summarizes."""
    clock: Clock
    drafts: DraftMaker
    """Makes drafts of the messages that are removed."""
    settings: SettingsInForce

    def compact(self, request: Compact) -> Shortened:
        """Shorten a conversation near its token limit, or any by `force`; store the removed messages."""
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
        archived = self._archive_removed(done, conversation) if done.changed else []
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
            archived=archived,
            orphans=list(done.orphans),
            fallback_reason=done.fallback_reason,
        )

    def _make_policy(self, request: Compact, limit: int) -> CompactionPolicy:
        """Return the compaction policy that a request names, for a window of `limit` tokens."""
        counter = self.settings.counter
        threshold = THRESHOLD if request.threshold is None else request.threshold
        if request.policy == "facts":
            return MemoryConsolidator(threshold, limit, counter=counter)
        summarize = None
        if self.lease.has_model:
            summarize = _TimeLimitedModel(
                self.lease,
                self.clock,
                limit_s=self.settings.config.context.model_limit_s,
            )
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

    def _archive_removed(
        self, done: Compaction, conversation: IdentifiedConversation
    ) -> list[str]:
        """Store the messages that a compaction removed; return the ids to `expand` them by."""
        now = self.clock.now()
        ids = (message["id"] for message in conversation.messages)
        times = find_message_times(conversation.own, now=now)
        time_by_id = dict(zip(ids, times, strict=True))
        parts = {
            removed.id: self._make_archived_part(
                removed.id, conversation, time_by_id[removed.id]
            )
            for removed in done.archived
        }

        def make_compaction(
            id: str, text: str, own: Iterable[ArchivedPart]
        ) -> NewCompaction:
            """Return the compaction of a summary or stub, with its text and archived parts."""
            compacted = CompactionRecord(
                id=id,
                session=conversation.session,
                source=conversation.source,
                policy=done.policy,
                created_at=now,
            )
            return NewCompaction(compacted, text, tuple(own))

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
        return self.store.compactions.add([*summaries, *stubs])

    def expand(self, request: Expand) -> Expanded | None:
        """Return the messages of a compaction by its id; None if the id is no compaction's.

        Forgotten messages are left out. An extractive summarizer writes the summary from the
        others. Raises `NotFound` if all were forgotten.
        """
        compaction = self.store.compactions.get(request.id)
        if compaction is None:
            return None
        compacted, originals = compaction
        if not originals:
            raise NotFound(
                f"everything that {request.id} stands for was forgotten", field="id"
            )
        facts = extract_facts([as_message(memory) for memory in originals])
        times = [memory.created_at for memory in originals]
        episode = Episode(
            id=compacted.id,
            content=mask_secrets(render_summary(facts)),
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
            originals = [mask_memory(memory) for memory in originals]
        return Expanded(episode, [as_original(memory) for memory in originals])

    def _make_archived_part(
        self, id: str, conversation: IdentifiedConversation, said: datetime
    ) -> ArchivedPart:
        """Return the message with the id `id` in the form of a memory to store.

        For a stub (the short form left of a message that was archived before), return only the id
        of the compaction which stored its original. `said` is the message's time.
        """
        own = conversation.original(id)
        archived_as = find_stub_pointer(own)
        compaction = self.store.compactions.get(archived_as) if archived_as else None
        if archived_as and compaction:
            _, originals = compaction
            if any(is_stub_of(own, as_message(memory)) for memory in originals):
                return archived_as
        memory = as_memory(
            own,
            id=id,
            said=said,
            session=conversation.session,
            source=conversation.source,
        )
        return ArchivedMessage(
            self.drafts.draft_compacted(memory, now=self.clock.now()),
            may_reuse=is_plain(own) and memory.content != WORDLESS,
            has_timestamp=read_message_time(own) is not None,
        )

    def _find_merged_summaries(
        self, done: Compaction, conversation: IdentifiedConversation
    ) -> list[tuple[SummaryContent, list[str]]]:
        """Return earlier summaries that a new one includes, each with the ids of its compactions, if known."""
        left = {id(message) for message in done.messages}
        merged: list[tuple[SummaryContent, list[str]]] = []
        for message in conversation.messages:
            if not is_summary(message) or id(message) in left:
                continue
            content = read_summary(message)
            ids = [
                content.id,
                *(id for id in content.summary_of if id.startswith("c-")),
            ]
            if not content.summary_of:
                known = self.store.compactions.find_by_summary(
                    mask_secrets(message_text(message)),
                    session=conversation.session,
                    source=conversation.source,
                )
                ids = [known] if known else []
            merged.append((content, ids))
        return merged


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
            raise SummarizerFailed(
                f"its {self.limit_s:g} s for one compaction are used up"
            )
        now = self.clock.now()
        memories = [
            MemoryRecord(
                id=str(position),
                content=message_text(message),
                created_at=read_message_time(message) or now,
                role=message["role"],
            )
            for position, message in enumerate(messages)
        ]
        summary = self.lease.summarize(memories, time_limit_s=left_s)
        if summary.fallback_reason:
            raise SummarizerFailed(summary.fallback_reason)
        return summary.text
