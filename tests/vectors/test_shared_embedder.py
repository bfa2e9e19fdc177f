"""One embedding model that several threads ask: one call at a time, questions first."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pytest
from support.fakes import FakeEmbedder
from support.vector_service import WAIT_S, wait_until

from mnemosyned.errors import EmbedderFailed
from mnemosyned.memory.values import EmbedderState
from mnemosyned.models.sharing import SharedEmbedder
from mnemosyned.search.vectors.embedding import QuestionVector
from mnemosyned.search.vectors.owners import (
    OWN_QUESTIONS_MAX,
    OwnerTurns,
    OwnerVectors,
    SharedVectors,
)

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.vectors import PostgresVectors


class Busy:
    """An embedder that works on its first text until it may go on, and notes the order."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.working, self.go_on = threading.Event(), threading.Event()
        self.embedder = FakeEmbedder(meanwhile=self._work, asked=self._work)

    def _work(self, texts: Sequence[str]) -> None:
        self.order += texts
        self.working.set()
        assert self.go_on.wait(WAIT_S)


def waiting(shared: SharedEmbedder) -> int:
    return len(shared._questions) + len(shared._memories)  # noqa: SLF001 who waits shows nowhere else


def test_a_question_goes_before_memories_that_wait() -> None:
    busy = Busy()
    shared = SharedEmbedder(busy.embedder, wait_s=WAIT_S)
    threads = []
    for count, call in enumerate(
        (
            lambda: shared.embed(["first"]),
            lambda: shared.embed(["second"]),
            lambda: shared.embed(["third"]),
            lambda: shared.embed_question("question"),
        )
    ):
        threads.append(threading.Thread(target=call))
        threads[-1].start()
        assert busy.working.wait(WAIT_S)
        wait_until(lambda count=count: waiting(shared) == count)  # type: ignore[misc]

    busy.go_on.set()
    for thread in threads:
        thread.join(WAIT_S)

    assert busy.order == ["first", "question", "second", "third"]


def test_who_waits_too_long_fails_and_holds_nobody_up() -> None:
    busy = Busy()
    shared = SharedEmbedder(busy.embedder, wait_s=0.05)
    first = threading.Thread(target=lambda: shared.embed(["first"]))
    first.start()
    assert busy.working.wait(WAIT_S)

    with pytest.raises(EmbedderFailed, match="busy"):
        shared.embed(["second"])
    busy.go_on.set()
    first.join(WAIT_S)

    assert shared.embed(["third"]) == [busy.embedder.vector("third")]


def test_owners_ask_in_turn_within_limits() -> None:
    turns = OwnerTurns()
    questions = [
        QuestionVector(f"a{n}", until=0.0) for n in range(OWN_QUESTIONS_MAX + 1)
    ]

    assert [turns.ask(1, question) for question in questions[:-1]] == [
        True
    ] * OWN_QUESTIONS_MAX
    assert not turns.ask(1, questions[-1])
    assert turns.ask(2, QuestionVector("b", until=0.0))

    taken = []
    while question := turns.next_question():
        taken.append(question.text)
    assert taken[:3] == ["a0", "b", "a1"]
    assert len(taken) == OWN_QUESTIONS_MAX + 1


def test_owners_with_new_memories_wait_once_and_until_more_may_have_come() -> None:
    turns = OwnerTurns()
    turns.add(1, after_s=WAIT_S)
    turns.add(2)
    turns.add(1)
    turns.add(2)

    assert turns.next_s() == 0.0
    assert [turns.next_owner(), turns.next_owner()] == [2, None]
    assert 0 < (turns.next_s() or 0.0) <= WAIT_S


def test_the_state_of_an_owners_vectors_is_told_without_the_database() -> None:
    def no_store(owner: int) -> PostgresVectors:
        raise AssertionError(owner)

    shared = SharedVectors(
        store=no_store, owners_lacking_vectors=lambda *_: (), embedder=FakeEmbedder()
    )
    store = cast("PostgresVectors", object())

    vectors = OwnerVectors(1, store, shared, wait_s=1, similarity_min=0.5)

    assert vectors.state is EmbedderState.LOADING
