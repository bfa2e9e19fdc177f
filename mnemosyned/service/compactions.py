"""Keeps what a compaction takes out of a conversation, so that `expand` brings it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from mnemosyned.domain.conversation.policy import Compaction
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
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.store import (
    ArchivedMessage,
    Clock,
    Compacted,
    Compacting,
    Draft,
    MemoryStore,
)
from mnemosyned.domain.secrets.masking import (
    SecretRule,
    masked,
    masked_memory,
    masked_values,
)
from mnemosyned.verbs.memories import Expand, Expanded

WrittenSummary = tuple[Message, SummaryContent]
"""A summary that a compaction wrote, and what it holds."""


class IdentifiedConversation:
    """A conversation whose messages have ids of ours while a policy works on them.

    An agent's own ids begin anew with each conversation; these say the session and the words, so
    that the same message has the same id wherever it stands, and no other has it.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str,
        source: str | None,
        stored: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """`stored` gives a message as it may be kept: nothing else may go into its id."""
        self.session = session
        self.source = source
        self.own = messages
        self.messages = [
            {**message, "id": digest("m", [source, session, stored(message)])}
            for message in messages
        ]
        self._own = {
            id(named): message
            for named, message in zip(self.messages, messages, strict=True)
        }
        self._by_id = {
            named["id"]: message
            for named, message in zip(self.messages, messages, strict=True)
        }

    def restored(self, message: Message) -> Message:
        """The message as its agent knows it: one that was kept is the very same."""
        if id(message) in self._own:
            return self._own[id(message)]
        own = self._by_id.get(str(message.get("id")))
        if own is None:
            return message
        rest = {key: value for key, value in message.items() if key != "id"}
        return {**rest, "id": own["id"]} if "id" in own else rest

    def original(self, message_id: str) -> Mapping[str, Any]:
        """The agent's own message of this id of ours."""
        return self._by_id[message_id]

    def written(self, done: Compaction) -> list[WrittenSummary]:
        """The summaries that a compaction of this conversation wrote."""
        return [
            (message, read_summary(message))
            for message in done.messages
            if id(message) not in self._own and _is_ours(message)
        ]

    def stubbed(self, done: Compaction) -> dict[str, Message]:
        """The messages that stand as stubs now, by our ids."""
        return {
            message["id"]: message
            for message in done.messages
            if id(message) not in self._own and message.get("id") in self._by_id
        }


class CompactionArchive:
    """Remembers the messages that compactions take out, and under which ids they are asked for."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        clock: Clock,
        admit: Callable[[MemoryRecord], Draft],
        secrets: Callable[[], SecretRule],
    ) -> None:
        self._store = store
        self._clock = clock
        self._admit = admit
        """The draft of a memory, as settings of secrets and learnings would have it."""
        self._secrets = secrets

    def named(
        self, messages: Sequence[Mapping[str, Any]], *, session: str, source: str | None
    ) -> IdentifiedConversation:
        """A conversation for a policy to work on."""
        stored = dict if self._secrets() is SecretRule.KEEP else masked_values
        return IdentifiedConversation(
            messages, session=session, source=source, stored=stored
        )

    def keep(self, done: Compaction, named: IdentifiedConversation) -> list[str]:
        """Put what was taken out on disk; the ids of the memories that hold it."""
        now = self._clock.now()
        parts = self._parts(done, named, now)
        left = {id(message) for message in done.messages}
        merged = [
            (message, read_summary(message))
            for message in named.messages
            if is_summary(message) and id(message) not in left
        ]
        kept: list[tuple[str, str, list[ArchivedMessage | str]]] = []
        for message, holds in named.written(done):
            before: list[ArchivedMessage | str] = []
            for summary, its in merged:
                if set(its.summary_of) <= set(holds.summary_of):
                    before += self._known_as(summary, its, named)
            taken = [parts[one] for one in holds.summary_of if one in parts]
            kept.append((holds.id, masked(message["content"]), [*before, *taken]))
        kept += [(one, "", [parts[one]]) for one in named.stubbed(done)]
        return self._store.compact(
            [
                Compacting(
                    Compacted(
                        id=one,
                        session=named.session,
                        source=named.source,
                        policy=done.policy,
                        created_at=now,
                    ),
                    words,
                    tuple(its_parts),
                )
                for one, words, its_parts in kept
            ]
        )

    def expanded(self, request: Expand) -> Expanded | None:
        """What a compaction took out, as far as it was not forgotten; None for another id.

        The episode is told by rule from what is left, so that nothing forgotten is in it.
        """
        found = self._store.compaction(request.id)
        if found is None:
            return None
        compacted, originals = found
        if not originals:
            raise NotFound(f"all that {request.id} stood for was forgotten", field="id")
        facts = extract_facts([as_message(memory) for memory in originals])
        said = [memory.created_at for memory in originals]
        episode = Episode(
            id=compacted.id,
            content=masked(render_summary(facts, shape=SummaryLayout())),
            created_at=compacted.created_at,
            session=compacted.session,
            source=compacted.source,
            level=0,
            item_count=len(originals),
            covers_from=min(said),
            covers_until=max(said),
            summarizer=f"compact:{compacted.policy}",
            summary_of=tuple(memory.id for memory in originals),
        )
        if not request.reveal:
            originals = [masked_memory(memory) for memory in originals]
        return Expanded(episode, [as_original(memory) for memory in originals])

    def _parts(
        self, done: Compaction, named: IdentifiedConversation, now: datetime
    ) -> dict[str, ArchivedMessage | str]:
        """What becomes of each message taken out: a memory, or for a stub its original's."""
        said = dict(
            zip(
                (one["id"] for one in named.messages),
                message_times(named.own, now=now),
                strict=True,
            )
        )
        parts: dict[str, ArchivedMessage | str] = {}
        for one in done.archived:
            own = named.original(one.id)
            stands_for = stub_pointer(own)
            if stands_for and self._is_stub(own, stands_for):
                parts[one.id] = stands_for
                continue
            memory = as_memory(
                own,
                id=one.id,
                said=said[one.id],
                session=named.session,
                source=named.source,
            )
            may_reuse = is_plain(own) and memory.content != WORDLESS
            parts[one.id] = ArchivedMessage(
                self._admit(memory),
                may_reuse=may_reuse,
                has_timestamp=message_time(own) is not None,
            )
        return parts

    def _is_stub(self, message: Message, id: str) -> bool:
        found = self._store.compaction(id)
        originals = found[1] if found else []
        return any(is_stub_of(message, as_message(memory)) for memory in originals)

    def _known_as(
        self, summary: Message, holds: SummaryContent, named: IdentifiedConversation
    ) -> list[str]:
        """The ids of the compaction that wrote a summary, also where it lost its metadata."""
        if not holds.summary_of:
            id = self._store.compaction_saying(
                masked(text(summary)), session=named.session, source=named.source
            )
            return [id] if id else []
        return [holds.id, *(one for one in holds.summary_of if one.startswith("c-"))]


def _is_ours(message: Message) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("kind") == KIND
