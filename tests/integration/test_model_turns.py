"""Models that owners share: each has its turn, whatever others have waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pytest

from mnemosyned.errors import SummarizerFailed
from mnemosyned.memory.engine_ports import TextModel
from mnemosyned.models.sharing import ModelTurns, OwnerModel

WAIT_S = 10.0


class HeldModel(TextModel):
    """A model whose calls end one by one, as the test lets them."""

    name = "held"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = 0
        self.at_once = 0
        self._running = 0
        self._go_on = threading.Semaphore(0)

    @property
    def context_tokens(self) -> int:
        return 4_096

    @property
    def parameters(self) -> int:
        return 7

    def count_tokens(self, text: str) -> int:
        return len(text)

    def let_go(self, calls: int = 1) -> None:
        self._go_on.release(calls)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        self.asked.append(messages[0]["content"])
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        assert self._go_on.acquire(timeout=WAIT_S)
        self._running -= 1
        return f"{max_tokens} {temperature}"

    def close(self) -> None:
        self.closed += 1
        self.let_go()


def ask(model: TextModel, text: str) -> str:
    messages = [{"role": "user", "content": text}]
    return model.complete(messages, max_tokens=9, temperature=0.5)


def asking(model: TextModel, text: str) -> threading.Thread:
    thread = threading.Thread(target=ask, args=(model, text), daemon=True)
    thread.start()
    return thread


def until(claim: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def waiting(turns: ModelTurns) -> int:
    return sum(map(len, turns._queues.values()))  # noqa: SLF001 else the test would guess by time


def are_waiting(turns: ModelTurns, count: int) -> bool:
    return waiting(turns) == count


def test_owners_have_turns_whatever_one_of_them_has_waiting() -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=WAIT_S)
    threads = [asking(OwnerModel(turns, 1), "first")]
    until(lambda: model.asked)
    for count, (owner, text) in enumerate(
        [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")], 1
    ):
        threads.append(asking(OwnerModel(turns, owner), text))
        until(partial(are_waiting, turns, count))

    model.let_go(len(threads))
    for thread in threads:
        thread.join(WAIT_S)

    assert model.asked == ["first", "a1", "b1", "c1", "a2", "b2", "a3"]
    assert model.at_once == 1
    assert not waiting(turns)


def test_as_many_calls_run_as_there_are_models() -> None:
    models = [HeldModel(), HeldModel()]
    turns = ModelTurns(models, wait_s=WAIT_S)
    threads = [asking(OwnerModel(turns, owner), "go") for owner in (1, 2, 3)]
    until(lambda: sum(len(model.asked) for model in models) == 2)
    until(lambda: waiting(turns) == 1)

    for model in models:
        model.let_go(2)
    for thread in threads:
        thread.join(WAIT_S)

    assert sum(len(model.asked) for model in models) == 3
    assert {model.at_once for model in models} == {1}


def test_who_waits_too_long_is_told_and_leaves_no_place_behind() -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=0.05)
    first = asking(OwnerModel(turns, 1), "long")
    until(lambda: model.asked)

    with pytest.raises(SummarizerFailed, match="busy with other owners' memories"):
        ask(OwnerModel(turns, 2), "late")

    assert not waiting(turns)
    model.let_go(2)
    first.join(WAIT_S)
    assert ask(OwnerModel(turns, 2), "again") == "9 0.5"


def test_closing_an_owners_share_ends_its_own_call_alone() -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=WAIT_S)
    own, other = OwnerModel(turns, 1), OwnerModel(turns, 2)
    thread = asking(own, "long")
    until(lambda: model.asked)

    other.close()
    closed_by_other = model.closed
    own.close()
    thread.join(WAIT_S)

    assert (closed_by_other, model.closed) == (0, 1)
    assert not thread.is_alive()


def test_models_that_are_closed_end_when_nobody_waits_for_them_any_more() -> None:
    busy, free = HeldModel(), HeldModel()
    turns = ModelTurns([busy, free], wait_s=WAIT_S)
    thread = asking(OwnerModel(turns, 1), "long")
    until(lambda: busy.asked)

    turns.close()

    assert (busy.closed, free.closed) == (0, 1)
    busy.let_go()
    thread.join(WAIT_S)
    until(lambda: busy.closed)


def test_a_share_is_like_the_model() -> None:
    model = HeldModel()
    share = OwnerModel(ModelTurns([model], wait_s=1), 5)

    assert (share.name, share.context_tokens, share.parameters) == ("held", 4_096, 7)
    assert share.count_tokens("abc") == 3
