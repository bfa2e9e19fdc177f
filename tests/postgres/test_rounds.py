"""Whom a round visits: owners with something to consolidate, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from e2e.daemons import eventually
from postgres.served import open_memories
from support.fakes import FakeClock
from support.settings import change

from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.errors import NotFound
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import Tier
from mnemosyned.sleep import cycle
from mnemosyned.sleep.context import CommitPacing
from mnemosyned.storage.postgres import forgetting as purge
from mnemosyned.verbs.listing import Days
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Status

pytestmark = pytest.mark.postgres
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAY = timedelta(days=1)


class Rounds:
    """Rounds on a clock that the test moves, and what they visited."""

    def __init__(self, memories: OwnerMemories, clock: FakeClock) -> None:
        self.memories = memories
        self.clock = clock
        self.visited: list[int] = []
        visit = memories.rounds.open_memory

        def noting(owner: int) -> object:
            self.visited.append(owner)
            return visit(owner)

        memories.rounds.open_memory = noting  # type: ignore[assignment]

    def add(self, name: str) -> int:
        return self.memories.owners.add(name).number

    def remember(self, owner: int, *ids: str) -> None:
        for id in ids:
            request = Remember(f"Bell {id} rang.", id=id, created_at=self.clock.now())
            self.memories.get(owner).service.call(request)

    def change(self, key: str, value: int) -> None:
        change(self.memories.rounds.shared.settings, {key: value})

    def run(self, *, at: datetime) -> list[int]:
        """Make a round at a time; whom it visited."""
        self.clock.moment = at
        self.visited.clear()
        self.memories.rounds.run(Trigger.SCHEDULE)
        return list(self.visited)


@pytest.fixture
def rounds(dsn: str) -> Iterator[Rounds]:
    clock = FakeClock(MONDAY)
    with open_memories(dsn, clock, {}) as (_, memories):
        yield Rounds(memories, clock)


def test_a_memory_that_gives_way_keeps_its_count_of_recalls(rounds: Rounds) -> None:
    anna, ben = rounds.add("anna"), rounds.add("ben")
    rounds.change("owners.open_max", 1)
    rounds.memories.get(anna).service.call(Recall("when did the bell ring?"))

    rounds.memories.get(ben)

    assert [each.owner for each in rounds.memories.open_memories()] == [ben]
    again = rounds.memories.get(anna).service.call(Days())
    assert again.days[-1].recalls == 1


def test_an_owner_is_visited_when_a_memory_or_a_period_is_due(rounds: Rounds) -> None:
    anna, nobody = rounds.add("anna"), rounds.add("nobody")
    rounds.remember(anna, "a", "b", "c")

    visits = {
        hours: rounds.run(at=MONDAY + timedelta(hours=hours))
        for hours in (1, 13, 14, 20, 38, 39)
    }
    later = [rounds.run(at=MONDAY + days * DAY) for days in range(3, 50)]

    # After 12 hours the memories are due, at 18:00 of the next day their day is.
    assert visits[1] == []
    assert visits[13] == [anna]
    assert rounds.memories.rounds.last_round
    assert rounds.memories.rounds.last_round.ended_at == rounds.clock.now()
    assert visits[14] == visits[20] == []
    assert [hours for hours, visited in visits.items() if visited][-1] >= 38
    # Once more each for the week and for the month.
    assert later.count([anna]) == 2
    assert later.count([]) == len(later) - 2
    assert nobody not in rounds.visited


def test_a_round_sends_few_statements_for_an_owner(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is, the groups share a commit.
    pacing = CommitPacing(wait_s=60.0, hold_s=60.0)
    monkeypatch.setattr(cycle, "CommitPacing", lambda: pacing)
    anna = rounds.add("anna")
    told = [
        Remember(
            content=f"On day {step} Berta fixed mill wheel {step} and paid {step * 3} euro.",
            session=f"s{step // 20}",
            created_at=MONDAY - (3 - step // 50) * DAY + timedelta(minutes=step),
        )
        for step in range(100)
    ]
    # A memory of its own: while one that is open has requests, its groups are read one by one.
    rounds.memories.visit(anna).service.call(RememberMany(told))
    sent: list[object] = []
    execute = psycopg.Cursor.execute

    def noted(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        sent.append(query)
        return execute(cursor, query, *args, **named)

    monkeypatch.setattr(psycopg.Cursor, "execute", noted)

    visited, statements = rounds.run(at=MONDAY), list(sent)

    assert visited == [anna]
    tiers = rounds.memories.get(anna).service.call(Status()).tiers
    assert tiers[Tier.ARCHIVE].count == 100
    assert 40 < len(statements) <= 110


def test_archives_to_be_pruned_make_a_visit_due(rounds: Rounds) -> None:
    anna = rounds.add("anna")
    rounds.remember(anna, "a", "b", "c")
    rounds.run(at=MONDAY + DAY)
    quiet = MONDAY + 60 * DAY
    for days in (3, 9, 45):
        rounds.run(at=MONDAY + days * DAY)
    assert rounds.run(at=quiet) == []

    rounds.change("archive.keep_days", 30)

    assert rounds.run(at=quiet) == [anna]


def test_what_is_still_to_be_purged_is_work(rounds: Rounds) -> None:
    anna = rounds.add("anna")
    rounds.remember(anna, "a")
    service = rounds.memories.get(anna).service
    rounds.memories.rounds._requested = _Nobody()  # noqa: SLF001
    service.call(Forget(id="a", now=True))

    assert rounds.run(at=MONDAY) == [anna]


def test_a_purge_that_was_refused_is_not_tried_again_at_once(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def refused(_: object, tables: object) -> bool:
        tried.append(tables)
        return False

    monkeypatch.setattr(purge, "purge_tables", refused)
    anna = rounds.add("anna")
    rounds.remember(anna, "a", "b")
    rounds.memories.get(anna).service.call(Forget(id="a", now=True))
    # The thread that purges notes the refusal after it.
    eventually(lambda: rounds.memories.rounds._purge_not_before, "a purge")  # noqa: SLF001
    assert tried == [purge.TABLES]

    # Whoever opens the memory again finds the purge due.
    for _ in range(3):
        rounds.memories._open.clear()  # noqa: SLF001
        rounds.memories.get(anna).service.call(Forget(id="b", now=True, dry_run=True))
        assert rounds.run(at=MONDAY) == [anna]

    assert tried == [purge.TABLES]


def test_a_question_to_an_owner_who_was_removed_meanwhile_says_so(
    rounds: Rounds,
) -> None:
    anna = rounds.add("anna")
    rounds.remember(anna, "a")
    memory = rounds.memories.get(anna)

    rounds.memories.owners.remove("anna")

    with pytest.raises(NotFound, match="this owner was removed"):
        memory.service.call(Recall("which bells rang at the belfry?"))


class _Nobody(set[int]):
    """Owners who ask for the background, and are left to the next round."""

    def add(self, owner: int) -> None:
        """Leave it."""
