"""Intake and promotion of memories, the same for every engine.

A known memory is answered, any other is stored. An episode takes the place of its originals,
unless one of them changed meanwhile.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from mnemosyned.errors import BatchChanged, IdTaken
from mnemosyned.memory.capture import CAPTURED_PREFIX, IMPORTED_PREFIX
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.ports import Draft, Promotion, RememberReport
from mnemosyned.memory.values import Acknowledged, MemoryRecord
from mnemosyned.text.details import Detail

if TYPE_CHECKING:
    from mnemosyned.conversation.learnings.comparison import LearningKeeper

Known = tuple[str | None, datetime, int | None]
"""Content, time and content hash of the record with an id; only the time of an episode."""
_MADE = re.compile(rf"({CAPTURED_PREFIX}|{IMPORTED_PREFIX})[0-9a-f]{{32}}")


def content_hash(content: str) -> int:
    """Return the first 64 bits of the SHA-256 of a text, as a signed integer."""
    return int.from_bytes(
        hashlib.sha256(content.encode()).digest()[:8], "big", signed=True
    )


def is_made_of_source(id: str) -> bool:
    """Return whether an id was made by hashing the source of a captured or imported memory."""
    return _MADE.fullmatch(id) is not None


def keys_of_forgotten(
    id: str, session: str, source: str | None, hashes: Iterable[int]
) -> set[str]:
    """Return the keys by which a forgotten memory is recognized when its source is read again.

    The keys are its id and, if it was captured, a hash of session, source and text for each text it
    ever had: a tool may give messages other ids in a resumed conversation. `hashes` are the content
    hashes of these texts.
    """
    keys = {id}
    for words in hashes if id.startswith(CAPTURED_PREFIX) else ():
        said = "\0".join(("said", session, source or "", str(words)))
        digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
        keys.add(f"said-{digest[:32]}")
    return keys


class IntakeTransaction(ABC):
    """Transaction that stores drafts; known ones are answered."""

    @abstractmethod
    def make_keeper(self) -> LearningKeeper:
        """Return an object that stores learnings in this transaction, except known learnings."""

    @abstractmethod
    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        """Return text, time and text hash of the stored records with these ids, by id.

        The text is None for an episode.
        """

    @abstractmethod
    def was_said(self, id: str, content: str) -> bool:
        """Return whether the memory with this id had this text at any time before an edit."""

    @abstractmethod
    def said_before(self, memory: MemoryRecord) -> tuple[str, datetime] | None:
        """Return the id and time of the first memory with the same text, session and source.

        None if there is none. Superseded memories, and memories that may expire, do not count.
        """

    @abstractmethod
    def forgotten(self, keys: Collection[str]) -> set[str]:
        """Return the keys among `keys` by which forgotten memories are recognized."""

    @abstractmethod
    def insert(self, memories: Sequence[MemoryRecord]) -> None:
        """Insert memories with tags and validity, with ascending row numbers in this order."""

    @abstractmethod
    def supersede(self, *, old: str, new: str) -> None:
        """Mark the memory with id `old` as superseded by the memory with id `new`.

        Raises `NotFound` and `InvalidRequest`.
        """

    @abstractmethod
    def finish(self) -> int:
        """Write the index entries of the inserted memories; return the count of working memory."""

    def remember(self, drafts: Sequence[Draft]) -> RememberReport:
        """Insert the drafts that are new; return one answer for each draft in order, and counts.

        A memory that was forgotten before is not stored again. Raises `IdTaken` and `NotFound`.
        """
        given = [draft.memory.id for draft in drafts if not draft.has_new_id]
        known = self.known_records(given) if given else {}
        keys = {
            draft.memory.id: keys_of_forgotten(
                draft.memory.id,
                draft.memory.session,
                draft.memory.source,
                [content_hash(draft.memory.content)] if draft.dedupe else [],
            )
            for draft in drafts
            if not draft.has_new_id and is_made_of_source(draft.memory.id)
        }
        forgotten = self.forgotten(set().union(*keys.values())) if keys else set()
        keeper: LearningKeeper | None = None
        acknowledged: list[Acknowledged] = []
        waiting: list[MemoryRecord] = []
        for index, draft in enumerate(drafts):
            memory, answer = draft.memory, None
            if memory.id not in known and forgotten & keys.get(memory.id, set()):
                acknowledged.append(
                    Acknowledged(
                        id=memory.id,
                        created_at=memory.created_at,
                        stored=False,
                        forgotten=True,
                    )
                )
                continue
            if memory.id in known or draft.dedupe:
                if waiting and memory.id not in known:
                    # The words before in this batch count too.
                    self.insert(waiting)
                    waiting = []
                place = (index, len(drafts))
                answer = self._answer_known(draft, known.get(memory.id), place)
            if answer is None:
                waiting.append(memory)
                known[memory.id] = (memory.content, memory.created_at, None)
                if draft.learnings:
                    keeper = keeper or self.make_keeper()
                    for learning in draft.learnings:
                        keeper.keep(learning)
                answer = Acknowledged(
                    id=memory.id, created_at=memory.created_at, stored=True
                )
            if draft.supersedes:
                if waiting:
                    self.insert(waiting)
                    waiting = []
                self.supersede(old=draft.supersedes, new=answer.id)
            acknowledged.append(answer)
        if waiting:
            self.insert(waiting)
        learned = keeper.inserted_count if keeper else 0
        return RememberReport(acknowledged, self.finish(), learned)

    def _answer_known(
        self, draft: Draft, known: Known | None, place: tuple[int, int]
    ) -> Acknowledged | None:
        """Return the answer to a draft whose id or text is stored already; None for a new draft.

        `known` is the stored record with its id, `place` the draft's index and the number of
        drafts. Raises `IdTaken` if the id belongs to another text.
        """
        memory = draft.memory
        if known is None:
            said = self.said_before(memory)
            if said is None:
                return None
            return Acknowledged(id=said[0], created_at=said[1], stored=False)
        content, created_at, words = known
        is_pruned = content == "" and words == content_hash(memory.content)
        is_same = content == memory.content or is_pruned
        if not is_same and not self.was_said(memory.id, memory.content):
            index, count = place
            raise IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field=f"memories[{index}].id" if count > 1 else "id",
            )
        return Acknowledged(id=memory.id, created_at=created_at, stored=False)


class PromotionTransaction(ABC):
    """Transaction that promotes groups: an episode takes the place of its originals."""

    @abstractmethod
    def insert(self, promotion: Promotion) -> int:
        """Insert the episode of a promotion; return its row number."""

    @abstractmethod
    def any_superseded(self, ids: Collection[str]) -> bool:
        """Return whether one of these working memories was superseded."""

    @abstractmethod
    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        """Return whether one of these working memories was edited after revision number `since`."""

    @abstractmethod
    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        """Move working memories, except pinned ones, to the archive; return how many moved.

        They become originals of the episode at row number `episode`, with the exact values
        `details`.
        """

    @abstractmethod
    def insert_log(self, entry: LogEntry) -> None:
        """Write a row of the consolidation log."""

    def promote(self, promotions: Iterable[Promotion]) -> None:
        """Store each episode with its log row, and move its originals to the archive.

        Raises `BatchChanged` if an original was superseded, edited, moved or deleted since it was
        read.
        """
        for promotion in promotions:
            originals = promotion.episode.summary_of
            episode = self.insert(promotion)
            if self.any_superseded(promotion.spoken):
                raise _changed_group_error("superseded concurrently")
            since = promotion.revision
            if since is not None and self.any_edited(originals, since=since):
                raise _changed_group_error("edited meanwhile")
            evicted = self.evict(originals, episode, promotion.episode.details)
            if evicted != len(originals):
                raise _changed_group_error("changed concurrently")
            self.insert_log(promotion.entry)


def _changed_group_error(how: str) -> BatchChanged:
    """Return the error for a group of which a memory was changed; the next cycle retries the group.

    `how` completes "a memory of this group was …", for example with "edited meanwhile".
    """
    return BatchChanged(f"a memory of this group was {how}; the next cycle retries it")
