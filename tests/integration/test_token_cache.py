"""Tokens are looked up once a second at most, and a revoked one is refused within one."""

from __future__ import annotations

from typing import cast

import pytest

from mnemosyned.daemon.owners import KEPT_MAX, KEPT_S, UNKNOWN_MAX, TokenCache
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import OwnerStore, Scope, TokenHolder


class Owners:
    """Owners of which only tokens are known, and how often they were asked for."""

    def __init__(self) -> None:
        self.valid = {"a": 1, "b": 2}
        self.asked: list[str] = []
        self.fails = False

    def holder(self, secret: str) -> TokenHolder | None:
        self.asked.append(secret)
        if self.fails:
            raise StorageFailed("the database is away")
        owner = self.valid.get(secret)
        if owner is None:
            return None
        return TokenHolder(owner=owner, token=secret, scopes=frozenset([Scope.READ]))


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def owners() -> Owners:
    return Owners()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(owners: Owners, clock: Clock) -> TokenCache:
    return TokenCache(cast("OwnerStore", owners), now=clock)


def owner_of(cache: TokenCache, secret: str) -> int | None:
    holder = cache.holder(secret)
    return holder.owner if holder else None


def test_a_token_is_looked_up_once_a_second(
    cache: TokenCache, owners: Owners, clock: Clock
) -> None:
    assert [owner_of(cache, "a") for _ in range(3)] == [1, 1, 1]
    assert owner_of(cache, "b") == 2
    assert owners.asked == ["a", "b"]

    clock.seconds += KEPT_S
    assert owner_of(cache, "a") == 1
    assert owners.asked == ["a", "b", "a"]


def test_a_revoked_token_is_refused_within_a_second(
    cache: TokenCache, owners: Owners, clock: Clock
) -> None:
    assert owner_of(cache, "a") == 1
    del owners.valid["a"]
    clock.seconds += KEPT_S

    assert owner_of(cache, "a") is None


def test_a_new_token_is_known_within_a_second(
    cache: TokenCache, owners: Owners, clock: Clock
) -> None:
    assert owner_of(cache, "c") is None
    owners.valid["c"] = 3
    assert owner_of(cache, "c") is None
    clock.seconds += KEPT_S

    assert owner_of(cache, "c") == 3


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
    for secret in owners.valid:
        cache.holder(secret)
    asked = len(owners.asked)

    cache.holder(f"t{KEPT_MAX + 1}")
    assert len(owners.asked) == asked
    cache.holder("t1")
    assert len(owners.asked) == asked + 1


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
