"""Intake of memories: what is known is answered, the rest is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.errors import IdTaken
from mnemosyned.domain.learnings.keeper import LearningKeeper
from mnemosyned.domain.memory import Acknowledged, MemoryRecord
from mnemosyned.domain.ports.records import Draft, Remembered

Known = tuple[str | None, datetime, int | None]
"""Content, time and hash of what has an id already; of an episode only the time."""


class Intake(ABC):
    """The storing of drafts in one transaction."""

    def __init__(self, keeper: LearningKeeper) -> None:
        self._keeper = keeper
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
            if memory.id in known:
                field = f"memories[{index}].id" if len(drafts) > 1 else "id"
                answer = self._again(memory, known[memory.id], field=field)
            elif draft.dedupe:
                self._insert_waiting()  # what this batch says before counts too
                answer = self._as_said_before(memory)
            if answer is None:
                self._waiting.append(memory)
                known[memory.id] = (memory.content, memory.created_at, None)
                for learning in draft.learnings:
                    self._keeper.keep(learning)
                answer = Acknowledged(
                    id=memory.id, created_at=memory.created_at, stored=True
                )
            if draft.supersedes:
                self._insert_waiting()
                self.supersede(old=draft.supersedes, new=answer.id)
            acknowledged.append(answer)
        if self._waiting:
            self.insert(self._waiting)
        return Remembered(acknowledged, self.finish(), self._keeper.learned)

    def _insert_waiting(self) -> None:
        if self._waiting:
            self.insert(self._waiting)
            self._waiting = []

    def _again(self, memory: MemoryRecord, known: Known, *, field: str) -> Acknowledged:
        """The answer to an id that came before. Raises `IdTaken` where the words are others."""
        content, created_at, said = known
        pruned = content == "" and said == content_hash(memory.content)
        is_same = content == memory.content or pruned
        if not is_same and not self.was_said(memory.id, memory.content):
            raise IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field=field,
            )
        return Acknowledged(id=memory.id, created_at=created_at, stored=False)

    def _as_said_before(self, memory: MemoryRecord) -> Acknowledged | None:
        said = self.said_before(memory)
        if said is None:
            return None
        id, created_at = said
        return Acknowledged(id=id, created_at=created_at, stored=False)
