"""Owners take turns on the processor: who used more rests while another is at work."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mnemosyned import fairness
from mnemosyned.fairness import QUANTUM_S, FairTurns, pause_for_other_owners


def use_processor(seconds: float) -> None:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


@contextmanager
def another_at_work(turns: FairTurns, *, used_s: float) -> Iterator[Callable[[], None]]:
    """A thread that works for owner 2, until what is given is called."""
    going, begun = threading.Event(), threading.Event()

    def work() -> None:
        with turns.working(2):
            use_processor(used_s)
            pause_for_other_owners()
            begun.set()
            going.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()

    def end() -> None:
        going.set()
        thread.join()

    try:
        yield end
    finally:
        end()


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    return rests


def test_who_used_more_rests_until_the_other_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = FairTurns()
    monkeypatch.setattr(fairness, "REST_TIMES", 1_000_000)
    with another_at_work(turns, used_s=0.0) as end, turns.working(1):
        rests: list[float] = []

        def rest(step: float) -> None:
            rests.append(step)
            end()

        monkeypatch.setattr(time, "sleep", rest)
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert len(rests) == 1


def test_who_used_more_goes_on_after_a_while(rests: list[float]) -> None:
    turns = FairTurns()
    with another_at_work(turns, used_s=0.0), turns.working(1):
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert rests


def test_who_used_less_does_not_rest(rests: list[float]) -> None:
    turns = FairTurns()
    with another_at_work(turns, used_s=20 * QUANTUM_S), turns.working(1):
        rests.clear()
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert rests == []


def test_an_owner_does_not_rest_for_itself(rests: list[float]) -> None:
    turns = FairTurns()
    with turns.working(1):
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()
    pause_for_other_owners()  # nobody's

    assert rests == []
