"""Intake and promotion of memories, the same for every engine.

A known memory is answered, any other is stored. An episode takes the place of its originals,
unless one of them changed meanwhile.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from mnemosyned.conversation.learnings.conflicts import LearningKeeper
from mnemosyned.errors import BatchChanged, IdTaken
from mnemosyned.memory.capture import CAPTURED_PREFIX, IMPORTED_PREFIX
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.learning import Learning
from mnemosyned.memory.ports import Draft, Promotion, Remembered
from mnemosyned.memory.values import Acknowledged, MemoryRecord, content_hash
from mnemosyned.text.details import Detail

Known = tuple[str | None, datetime, int | None]
"""Content, time and hash of what has an id already; of an episode only the time."""
_MADE = re.compile(rf"({CAPTURED_PREFIX}|{IMPORTED_PREFIX})[0-9a-f]{{32}}")


def is_made_of_source(id: str) -> bool:
    """Whether an id was made of what a memory was captured or imported from.

    The source may be read again: once such a memory is forgotten, its `keys_of_forgotten` are kept.
    """
    return _MADE.fullmatch(id) is not None


def keys_of_forgotten(
    id: str, session: str, source: str | None, hashes: Iterable[int]
) -> set[str]:
    """Return what a forgotten memory is known by when its source is read again.

    That is its id and, of a captured one, a hash of the conversation and the words, since a tool may
    give its messages other ids when a conversation is resumed. `hashes` are those of all words that
    it had.
    """
    keys = {id}
    for words in hashes if id.startswith(CAPTURED_PREFIX) else ():
        said = "\0".join(("said", session, source or "", str(words)))
        digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
        keys.add(f"said-{digest[:32]}")
    return keys


class Intake(ABC):
    """The storing of drafts in one transaction."""

    def __init__(self, make_keeper: Callable[[], LearningKeeper]) -> None:
        """Take what makes the keeper of learnings, as few drafts have some."""
        self._make_keeper = make_keeper
        self._keeper: LearningKeeper | None = None
        self._waiting: list[MemoryRecord] = []

    @abstractmethod
    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        """Return existing records with these ids."""

    @abstractmethod
    def was_said(self, id: str, content: str) -> bool:
        """Whether a memory had these words before it was edited."""

    @abstractmethod
    def said_before(self, memory: MemoryRecord) -> tuple[str, datetime] | None:
        """Return id and time of the first memory with the same words, session and source.

        What was superseded or may expire does not count.
        """

    @abstractmethod
    def forgotten(self, keys: Collection[str]) -> set[str]:
        """Return those of these keys of which something was forgotten."""

    @abstractmethod
    def insert(self, memories: Sequence[MemoryRecord]) -> None:
        """Insert memories, numbered in sequence, with their tags and validity."""

    @abstractmethod
    def supersede(self, *, old: str, new: str) -> None:
        """Have one memory take another's place. Raises `NotFound` and `InvalidRequest`."""

    @abstractmethod
    def finish(self) -> int:
        """Let all that was inserted be found; returns the size of working memory."""

    def remember(self, drafts: Sequence[Draft]) -> Remembered:
        """Insert the drafts that are not known yet. Raises `IdTaken` and `NotFound`."""
        given = [draft.memory.id for draft in drafts if not draft.has_new_id]
        known = self.known_records(given) if given else {}
        keys = {
            draft.memory.id: _keys(draft)
            for draft in drafts
            if not draft.has_new_id and is_made_of_source(draft.memory.id)
        }
        forgotten = self.forgotten(set().union(*keys.values())) if keys else set()
        acknowledged: list[Acknowledged] = []
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
                place = (index, len(drafts))
                answer = self._known_already(draft, known.get(memory.id), place)
            if answer is None:
                self._waiting.append(memory)
                known[memory.id] = (memory.content, memory.created_at, None)
                if draft.learnings:
                    self._learn(draft.learnings)
                answer = Acknowledged(
                    id=memory.id, created_at=memory.created_at, stored=True
                )
            if draft.supersedes:
                self._insert_waiting()
                self.supersede(old=draft.supersedes, new=answer.id)
            acknowledged.append(answer)
        self._insert_waiting()
        return Remembered(acknowledged, self.finish(), self._learned)

    @property
    def _learned(self) -> int:
        return self._keeper.inserted_count if self._keeper else 0

    def _learn(self, learnings: Sequence[Learning]) -> None:
        self._keeper = self._keeper or self._make_keeper()
        for learning in learnings:
            self._keeper.keep(learning)

    def _insert_waiting(self) -> None:
        if self._waiting:
            self.insert(self._waiting)
            self._waiting = []

    def _known_already(
        self, draft: Draft, known: Known | None, place: tuple[int, int]
    ) -> Acknowledged | None:
        """The answer to an id that came before, or to words that did; None where neither did.

        `place` is that in the batch, and the size of the batch. Raises `IdTaken`.
        """
        if known is not None:
            return self._again(draft.memory, known, place)
        self._insert_waiting()  # what this batch says before counts too
        said = self.said_before(draft.memory)
        if said is None:
            return None
        id, created_at = said
        return Acknowledged(id=id, created_at=created_at, stored=False)

    def _again(
        self, memory: MemoryRecord, known: Known, place: tuple[int, int]
    ) -> Acknowledged:
        """The answer to an id that came before. Raises `IdTaken` where the words are others."""
        content, created_at, said = known
        pruned = content == "" and said == content_hash(memory.content)
        is_same = content == memory.content or pruned
        if not is_same and not self.was_said(memory.id, memory.content):
            index, count = place
            raise IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field=f"memories[{index}].id" if count > 1 else "id",
            )
        return Acknowledged(id=memory.id, created_at=created_at, stored=False)


def _keys(draft: Draft) -> set[str]:
    memory = draft.memory
    said = [content_hash(memory.content)] if draft.dedupe else []
    return keys_of_forgotten(memory.id, memory.session, memory.source, said)


class Promoting(ABC):
    """The promotions of one transaction."""

    @abstractmethod
    def insert(self, promotion: Promotion) -> int:
        """Insert an episode; returns its position."""

    @abstractmethod
    def any_superseded(self, ids: Collection[str]) -> bool:
        """Whether one of these working memories was superseded."""

    @abstractmethod
    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        """Whether one of these working memories was edited since a revision."""

    @abstractmethod
    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        """Move those of these memories to the archive that are not pinned; returns how many.

        Their exact values are kept with them.
        """

    @abstractmethod
    def insert_log(self, entry: LogEntry) -> None:
        """Write a row of the consolidation log."""

    def promote(self, promotions: Iterable[Promotion]) -> None:
        """Promote, evict and log. Raises `BatchChanged`."""
        for promotion in promotions:
            originals = promotion.episode.summary_of
            episode = self.insert(promotion)
            if self.any_superseded(promotion.spoken):
                raise _changed("superseded concurrently")
            since = promotion.revision
            if since is not None and self.any_edited(originals, since=since):
                raise _changed("edited meanwhile")
            evicted = self.evict(originals, episode, promotion.episode.details)
            if evicted != len(originals):
                raise _changed("changed concurrently")
            self.insert_log(promotion.entry)


def _changed(how: str) -> BatchChanged:
    return BatchChanged(f"a memory of this group was {how}; the next cycle retries it")
