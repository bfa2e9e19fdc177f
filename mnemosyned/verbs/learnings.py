"""Verbs of learnings, which go into every context of their source: learn, list, edit, remove."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import DEFAULT_SESSION
from mnemosyned.verbs.request import NOT_EMPTY, ById, Name, Names, PageSize, Request

R = TypeVar("R")

LEARNING_CHARS_MAX = 2_000
Lesson = Annotated[
    str, Meta(max_length=LEARNING_CHARS_MAX, extra_json_schema=NOT_EMPTY)
]


class Learned(msgspec.Struct, frozen=True):
    """The learning as it was stored."""

    learning: Learning
    superseded: list[str]
    """Ids of older learnings that it contradicts and replaces."""


class _Lesson(Request[R], frozen=True, forbid_unknown_fields=True):
    content: Annotated[Lesson, Meta(description="the lesson, in one sentence")]


class Learn(_Lesson[Learned], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Store a lesson that every context of its source shows.

    Standing instructions of users ("always", "never", "call me") are recognized without this.

    Raises `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    kind: Annotated[LearningKind, Meta(description="what it is")] = LearningKind.LESSON
    session: Annotated[Name, Meta(description="where it was learned")] = DEFAULT_SESSION
    source: Annotated[
        Name | None, Meta(description="whose it is: an agent, a tool")
    ] = None


class LearningList(msgspec.Struct, frozen=True):
    """The learnings in force, newest first."""

    learnings: list[Learning]

    def __iter__(self) -> Iterator[Learning]:
        return iter(self.learnings)

    def __len__(self) -> int:
        return len(self.learnings)


class Learnings(
    Request[LearningList], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """List what was learned, newest first.

    Raises `InvalidText`.
    """

    source: Annotated[Names, Meta(description="only of this source; repeatable")] = None
    kind: Annotated[LearningKind | None, Meta(description="only of this kind")] = None
    superseded: Annotated[
        bool, Meta(description="include learnings that newer ones replaced")
    ] = False
    limit: Annotated[PageSize, Meta(description="maximum number of learnings")] = 100


class EditedLearning(msgspec.Struct, frozen=True):
    """A learning that has new words."""

    id: str
    text: str
    """The words as they were stored, with secrets masked."""
    note: str = ""
    """Why the old words are not purged from the file yet; empty where they are."""


class EditLearning(
    ById[EditedLearning], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Change the words of a learning.

    Raises `NotFound`, `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    text: Annotated[Lesson, Meta(description="the new words")]


class RemovedLearning(msgspec.Struct, frozen=True):
    """A learning that was deleted."""

    id: str
    note: str = ""
    """Why its words are not purged from the file yet; empty where they are."""


class RemoveLearning(ById[RemovedLearning], frozen=True, forbid_unknown_fields=True):
    """Delete a learning.

    Learnings that it had superseded are in force again.

    Raises `NotFound`.
    """

    writes = True
    deletes = True
