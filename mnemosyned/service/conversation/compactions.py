"""Archive of the messages that compactions remove, from which `expand` restores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mnemosyned.domain.conversation.as_memories import (
    WORDLESS,
    as_memory,
    as_message,
    as_original,
    message_times,
)
from mnemosyned.domain.conversation.key_facts import extract_facts
from mnemosyned.domain.conversation.messages import (
    Message,
    digest,
    is_plain,
    message_time,
    text,
)
from mnemosyned.domain.conversation.policies.policy import Compaction
from mnemosyned.domain.conversation.summary_message import (
    KIND,
    SummaryContent,
    SummaryLayout,
    is_summary,
    read_summary,
    render_summary,
)
from mnemosyned.domain.conversation.tool_stubs import is_stub_of, stub_pointer
from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.compactions import (
    ArchivedMessage,
    CompactionRecord,
    NewCompaction,
)
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.secrets.masking import (
    SecretRule,
    mask_memory,
    mask_metadata,
    mask_secrets,
)
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.verbs.memories import Expand, Expanded

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
        """`stored` returns a message in the form it is stored in, which is what its id digests."""
        self.session = session
        self.source = source
        self.own = messages
        self.messages = [
            {**message, "id": digest("m", [source, session, stored(message)])}
            for message in messages
        ]
        pairs = list(zip(self.messages, messages, strict=True))
        self._own = {id(identified): message for identified, message in pairs}
        self._by_id = {identified["id"]: message for identified, message in pairs}

    def restored(self, message: Message) -> Message:
        """Return the message with its agent's id; a kept message is the same object."""
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
        """Return the agent's own message for one of our ids."""
        return self._by_id[message_id]

    def new_summaries(self, done: Compaction) -> list[WrittenSummary]:
        """Return the summaries that a compaction of this conversation wrote."""
        return [
            (message, read_summary(message))
            for message in done.messages
            if id(message) not in self._own and _is_ours(message)
        ]

    def new_stubs(self, done: Compaction) -> dict[str, Message]:
        """Return the messages that a compaction turned into stubs, by our ids."""
        return {
            message["id"]: message
            for message in done.messages
            if id(message) not in self._own and message.get("id") in self._by_id
        }


class CompactionArchive:
    """Store of removed messages, and of the ids under which summaries refer to them."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        clock: Clock,
        policies: PolicyHolder,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies

    def identify(
        self, messages: Sequence[Mapping[str, Any]], *, session: str, source: str | None
    ) -> IdentifiedConversation:
        """Give the messages our ids, for a policy to work on."""
        stored = (
            dict if self._policies.intake.secrets is SecretRule.KEEP else mask_metadata
        )
        return IdentifiedConversation(
            messages, session=session, source=source, stored=stored
        )

    def keep(self, done: Compaction, conversation: IdentifiedConversation) -> list[str]:
        """Store the messages removed; return the ids of the memories that hold them."""
        now = self._clock.now()
        parts = self._parts(done, conversation, now)

        def compacting(
            id: str, text: str, own: Iterable[ArchivedPart]
        ) -> NewCompaction:
            compacted = CompactionRecord(
                id=id,
                session=conversation.session,
                source=conversation.source,
                policy=done.policy,
                created_at=now,
            )
            return NewCompaction(compacted, text, tuple(own))

        merged = self._merged_summaries(done, conversation)
        summaries = [
            compacting(
                content.id,
                mask_secrets(message["content"]),
                [*_ids_within(merged, content), *_parts_of(content, parts)],
            )
            for message, content in conversation.new_summaries(done)
        ]
        stubs = [compacting(id, "", [parts[id]]) for id in conversation.new_stubs(done)]
        return self._store.compactions.add([*summaries, *stubs])

    def expanded(self, request: Expand) -> Expanded | None:
        """Return the messages of a compaction that were not forgotten; None for another id.

        The episode is written by rule from those messages, so that it holds nothing forgotten.
        """
        compaction = self._store.compactions.get(request.id)
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
            content=mask_secrets(render_summary(facts, shape=SummaryLayout())),
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

    def _parts(
        self, done: Compaction, conversation: IdentifiedConversation, now: datetime
    ) -> dict[str, ArchivedPart]:
        """Return the archived form of each message removed, by our ids."""
        ids = (message["id"] for message in conversation.messages)
        times = dict(zip(ids, message_times(conversation.own, now=now), strict=True))
        return {
            removed.id: self._part(removed.id, conversation, times[removed.id])
            for removed in done.archived
        }

    def _part(
        self, id: str, conversation: IdentifiedConversation, said: datetime
    ) -> ArchivedPart:
        """Return a message as a memory, or for a stub the id of its original's compaction."""
        own = conversation.original(id)
        archived_as = stub_pointer(own)
        if archived_as and self._is_stub(own, archived_as):
            return archived_as
        memory = as_memory(
            own,
            id=id,
            said=said,
            session=conversation.session,
            source=conversation.source,
        )
        return ArchivedMessage(
            self._policies.intake.taken(memory, now=self._clock.now()),
            may_reuse=is_plain(own) and memory.content != WORDLESS,
            has_timestamp=message_time(own) is not None,
        )

    def _is_stub(self, message: Message, id: str) -> bool:
        compaction = self._store.compactions.get(id)
        if compaction is None:
            return False
        _, originals = compaction
        return any(is_stub_of(message, as_message(memory)) for memory in originals)

    def _merged_summaries(
        self, done: Compaction, conversation: IdentifiedConversation
    ) -> list[tuple[SummaryContent, list[str]]]:
        """Return earlier summaries that this compaction merged, with their compactions' ids."""
        left = {id(message) for message in done.messages}
        earlier = (
            (message, read_summary(message))
            for message in conversation.messages
            if is_summary(message) and id(message) not in left
        )
        return [
            (content, self._compaction_ids(message, content, conversation))
            for message, content in earlier
        ]

    def _compaction_ids(
        self,
        summary: Message,
        content: SummaryContent,
        conversation: IdentifiedConversation,
    ) -> list[str]:
        """Return the ids of the compaction that wrote a summary, also without its metadata."""
        if not content.summary_of:
            id = self._store.compactions.find_by_summary(
                mask_secrets(text(summary)),
                session=conversation.session,
                source=conversation.source,
            )
            return [id] if id else []
        return [content.id, *(id for id in content.summary_of if id.startswith("c-"))]


def _ids_within(
    merged: Iterable[tuple[SummaryContent, list[str]]], content: SummaryContent
) -> Iterator[str]:
    """Yield the compaction ids of earlier summaries that a summary covers."""
    for earlier, ids in merged:
        if set(earlier.summary_of) <= set(content.summary_of):
            yield from ids


def _parts_of(
    content: SummaryContent, parts: Mapping[str, ArchivedPart]
) -> list[ArchivedPart]:
    return [parts[id] for id in content.summary_of if id in parts]


def _is_ours(message: Message) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("kind") == KIND
