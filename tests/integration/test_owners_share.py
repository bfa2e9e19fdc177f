"""Owners share the processor, the models and the look-up of tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest
from support.fake_models import FakeTextModel
from support.fakes import raising
from support.vector_service import wait_until

from mnemosyned import fairness
from mnemosyned.config.settings import OwnersConfig
from mnemosyned.daemon.owners import (
    KEPT_MAX,
    KEPT_S,
    UNKNOWN_MAX,
    OwnerResources,
    TokenCache,
)
from mnemosyned.errors import StorageFailed, SummarizerFailed
from mnemosyned.fairness import (
    AHEAD_S,
    QUANTUM_S,
    FairTurns,
    count_server_time,
    pause_for_other_owners,
)
from mnemosyned.http_messages import HttpRequest
from mnemosyned.memory.engine_ports import Scope, TextModel, TokenHolder
from mnemosyned.models.sharing import ModelTurns, OwnerModel
from mnemosyned.service.owners import OwnerLimiter

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners

WAIT_S = 60.0


class HeldModel(FakeTextModel):
    """A model whose calls end one by one, as the test lets them."""

    name = "held"
    context_tokens = 4_096
    parameters = 7

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = 0
        self.at_once = 0
        self._running = 0
        self._go_on = threading.Semaphore(0)

    def let_go(self, calls: int = 1) -> None:
        self._go_on.release(calls)

    def complete(self, messages: Sequence[Mapping[str, str]], **limits: float) -> str:
        self.asked.append(messages[0]["content"])
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        assert self._go_on.acquire(timeout=WAIT_S)
        self._running -= 1
        return f"{limits['max_tokens']} {limits['temperature']}"

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


def occupy(model: HeldModel, turns: ModelTurns) -> threading.Thread:
    """Have owner 1 ask the model, which does not answer yet."""
    thread = asking(OwnerModel(turns, 1), "first")
    wait_until(lambda: bool(model.asked))
    return thread


def waiting(turns: ModelTurns) -> int:
    return sum(map(len, turns._queues.values()))  # noqa: SLF001 else the test would guess by time


def test_owners_have_turns_whatever_one_of_them_has_waiting() -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=WAIT_S)
    threads = [occupy(model, turns)]
    for count, (owner, text) in enumerate(
        [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")], 1
    ):
        threads.append(asking(OwnerModel(turns, owner), text))
        wait_until(lambda count=count: waiting(turns) == count)  # type: ignore[misc]

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
    wait_until(lambda: sum(len(model.asked) for model in models) == 2)
    wait_until(lambda: waiting(turns) == 1)

    for model in models:
        model.let_go(2)
    for thread in threads:
        thread.join(WAIT_S)

    assert sum(len(model.asked) for model in models) == 3
    assert {model.at_once for model in models} == {1}


@pytest.mark.parametrize("count", [1, 3])
def test_calls_that_wait_too_long_fail_and_leave_no_place_behind(count: int) -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=0.1)
    first = occupy(model, turns)

    with ThreadPoolExecutor(count) as pool:
        late = [pool.submit(ask, OwnerModel(turns, 2), "late") for _ in range(count)]

    for call in late:
        with pytest.raises(SummarizerFailed, match="busy with other owners' memories"):
            call.result()
    assert not waiting(turns)
    model.let_go(2)
    first.join(WAIT_S)
    assert ask(OwnerModel(turns, 2), "again") == "9 0.5"


def test_a_share_is_like_the_model_and_closing_it_ends_its_own_call_alone() -> None:
    model = HeldModel()
    turns = ModelTurns([model], wait_s=WAIT_S)
    own = OwnerModel(turns, 1)
    assert (own.name, own.context_tokens, own.parameters) == ("held", 4_096, 7)
    assert own.count_tokens("abc") == 3
    thread = asking(own, "long")
    wait_until(lambda: bool(model.asked))

    OwnerModel(turns, 2).close()
    closed_by_other = model.closed
    own.close()
    thread.join(WAIT_S)

    assert (closed_by_other, model.closed) == (0, 1)
    assert not thread.is_alive()


def test_models_that_are_closed_end_when_nobody_waits_for_them_any_more() -> None:
    busy, free = HeldModel(), HeldModel()
    turns = ModelTurns([busy, free], wait_s=WAIT_S)
    thread = occupy(busy, turns)

    turns.close()

    assert (busy.closed, free.closed) == (0, 1)
    busy.let_go()
    thread.join(WAIT_S)
    wait_until(lambda: bool(busy.closed))


# Owners take turns on the processor: who used more rests while another is at work.


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


@pytest.fixture(autouse=True)
def seen_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a thread at work may show no sign of it for long."""
    monkeypatch.setattr(fairness, "WAITING_S", 3_600.0)


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
        count_server_time(AHEAD_S)
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert len(rests) == 1


@pytest.mark.parametrize(
    ("used_by_other_s", "server_s", "rests_expected"),
    [
        pytest.param(0.0, AHEAD_S, True, id="who used more goes on after a while"),
        pytest.param(0.0, AHEAD_S / 2, False, id="owners who use alike"),
        pytest.param(20 * QUANTUM_S, 0.0, False, id="who used less"),
        pytest.param(20 * QUANTUM_S, 1.0, True, id="more, with the database server"),
    ],
)
def test_an_owner_rests_if_it_used_more_than_another_at_work(
    rests: list[float], used_by_other_s: float, server_s: float, *, rests_expected: bool
) -> None:
    turns = FairTurns()
    count_server_time(1.0)  # nobody's
    with another_at_work(turns, used_s=used_by_other_s), turns.working(1):
        rests.clear()
        count_server_time(server_s)
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert bool(rests) is rests_expected


def test_nobody_rests_for_an_owner_whose_threads_wait_for_the_database(
    rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = FairTurns()
    with another_at_work(turns, used_s=0.0), turns.working(1):
        monkeypatch.setattr(fairness, "WAITING_S", 0.0)
        count_server_time(AHEAD_S)
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()

    assert rests == []


def test_an_owner_does_not_rest_for_itself(rests: list[float]) -> None:
    turns = FairTurns()
    with turns.working(1):
        count_server_time(AHEAD_S)
        use_processor(2 * QUANTUM_S)
        pause_for_other_owners()
    pause_for_other_owners()  # nobody's

    assert rests == []


# Tokens are looked up once a second at most, and a revoked one is refused within one.


class Owners:
    """Owners of which only tokens are known, and how often they were asked for."""

    def __init__(self) -> None:
        self.valid = {"a": 1, "b": 2}
        self.asked: list[str] = []
        self.fails = False
        self.seconds = 100.0

    def holder(self, secret: str) -> TokenHolder | None:
        self.asked.append(secret)
        if self.fails:
            raise StorageFailed("the database is away")
        owner = self.valid.get(secret)
        if owner is None:
            return None
        return TokenHolder(
            owner=owner,
            token=secret,
            scopes=frozenset([Scope.READ]),
            name="laptop",
            expires_at=None,
        )


@pytest.fixture
def owners() -> Owners:
    return Owners()


@pytest.fixture
def cache(owners: Owners) -> TokenCache:
    return TokenCache(cast("PostgresOwners", owners), now=lambda: owners.seconds)


def owner_of(cache: TokenCache, secret: str) -> int | None:
    holder = cache.holder(secret)
    return holder.owner if holder else None


def test_tokens_are_looked_up_once_a_second_and_changes_are_known_within_one(
    cache: TokenCache, owners: Owners
) -> None:
    assert [owner_of(cache, secret) for secret in "aaabc"] == [1, 1, 1, 2, None]
    owners.valid = {"b": 2, "c": 3}
    assert [owner_of(cache, secret) for secret in "abc"] == [1, 2, None]
    assert owners.asked == ["a", "b", "c"]

    owners.seconds += KEPT_S
    assert [owner_of(cache, secret) for secret in "abc"] == [None, 2, 3]
    assert owners.asked == ["a", "b", "c"] * 2


def test_requests_count_for_an_owner_once_their_token_is_verified(
    cache: TokenCache, owners: Owners
) -> None:
    resources = OwnerResources(
        tokens=cache,
        memory_of=raising(AssertionError("no memory is opened for that")),
        limits=OwnerLimiter(OwnersConfig, lambda _: ("anna", 0)),
        common={},
    )

    def counted_for(secret: str, address: str = "192.0.2.7") -> int:
        headers = {"authorization": f"Bearer {secret}"}
        return resources.guess_owner(
            HttpRequest("GET", "/v1/status", "", b"", headers, False, address)  # noqa: FBT003
        )

    right = "mnt_5_" + "a" * 43
    owners.valid[right] = 5
    before = counted_for(right)
    assert owner_of(cache, right) == 5

    assert counted_for(right) == 5
    tried = [counted_for("mnt_5_" + letter * 43) for letter in "bcd"]
    assert len(set(tried)) == 1
    assert max(before, *tried) < 0
    assert counted_for("mnt_5_" + "b" * 43, "192.0.2.8") not in (*tried, 5)


def test_tokens_that_are_tried_take_no_place_from_those_that_are_some(
    cache: TokenCache, owners: Owners
) -> None:
    assert owner_of(cache, "a") == 1
    for number in range(UNKNOWN_MAX + 10):
        assert owner_of(cache, f"tried-{number}") is None
    asked = len(owners.asked)

    assert owner_of(cache, "a") == 1
    assert owner_of(cache, f"tried-{UNKNOWN_MAX + 9}") is None
    assert len(owners.asked) == asked
    assert owner_of(cache, "tried-0") is None
    assert len(owners.asked) == asked + 1


def test_no_more_tokens_are_kept_than_the_limit(
    cache: TokenCache, owners: Owners
) -> None:
    owners.valid = {f"t{number}": number for number in range(1, KEPT_MAX + 2)}
    for secret in (*owners.valid, f"t{KEPT_MAX + 1}"):
        cache.holder(secret)
    assert len(owners.asked) == KEPT_MAX + 1

    cache.holder("t1")
    assert len(owners.asked) == KEPT_MAX + 2


def test_a_failing_database_is_said_and_not_kept(
    cache: TokenCache, owners: Owners
) -> None:
    owners.fails = True
    with pytest.raises(StorageFailed):
        cache.holder("a")
    owners.fails = False

    assert owner_of(cache, "a") == 1


@pytest.mark.parametrize("secret", ["", "\ud800", "\x00", "x" * 100_000])
def test_what_can_be_no_token_is_none(cache: TokenCache, secret: str) -> None:
    assert owner_of(cache, secret) is None
