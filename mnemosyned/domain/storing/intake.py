"""Intake of memories: what is known is answered, the rest is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.errors import IdTaken
from mnemosyned.domain.learnings.keeper import LearningKeeper
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.memory import Acknowledged, MemoryRecord
from mnemosyned.domain.ports.records import Draft, Remembered

Known = tuple[str | None, datetime, int | None]
"""Content, time and hash of what has an id already; of an episode only the time."""


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
        acknowledged: list[Acknowledged] = []
        for index, draft in enumerate(drafts):
            memory, answer = draft.memory, None
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
        return self._keeper.learned if self._keeper else 0

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
