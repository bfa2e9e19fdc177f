"""A round gives each owner a turn, and those with more to do further ones after all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from support.fakes import FakeClock
from support.settings import config_by_words, settings_in_force

from mnemosyned.assembly.build import SharedParts, open_memory
from mnemosyned.assembly.owners import TURN_S, OwnerMemory, OwnerRounds
from mnemosyned.fairness import ForegroundGate
from mnemosyned.memory.consolidation import CycleReport, CycleStatus, Trigger
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.sleeper import SleepHost, SleepScheduler
from mnemosyned.verbs.memories import Remember

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners

REPORT = CycleReport(
    cycle="c",
    status=CycleStatus.PARTIAL,
    trigger=Trigger.SCHEDULE,
    dry_run=False,
    candidates=0,
    groups=(),
    duration_s=TURN_S,
    promoted=0,
    evicted=1,
    failed=0,
    chars_before=0,
    chars_after=0,
)


class Backlogs:
    """Owners with so many turns to do each, and the order of the turns they had."""

    def __init__(self) -> None:
        self.left = {2: 4, 3: 1, 4: 2}
        self.turns: list[int] = []
        self.evicted = 1
        clock = FakeClock()
        self.rounds = OwnerRounds(
            open_memory=self.open,
            list_open=list,
            owners=cast("PostgresOwners", self),
            shared=SharedParts(
                settings=settings_in_force(),
                gate=ForegroundGate(),
                clock=clock,
                age_clock=clock,
            ),
        )

    def save_uses(self, *, now: bool = False) -> None:
        """Nobody used a token."""

    def keep_claims_open(self) -> nullcontext[None]:
        """There is no database to claim in."""
        return nullcontext()

    def with_work(self, *, after: int, **_: object) -> Sequence[int]:
        return sorted(owner for owner in self.left if owner > after)

    def open(self, owner: int) -> OwnerMemory:
        def sleep(_: Trigger) -> CycleReport:
            self.turns.append(owner)
            self.left[owner] -= 1
            remaining = self.left[owner]
            if not remaining:
                del self.left[owner]
            return replace(REPORT, remaining=remaining, evicted=self.evicted)

        sleeper = SimpleNamespace(
            sleep_in_background=sleep,
            enforce_cap_now=lambda: self.ask_again(owner),
        )
        retention = SimpleNamespace(purger=SimpleNamespace(run_due=lambda: True))
        service = SimpleNamespace(sleeper=sleeper, retention=retention)
        return cast("OwnerMemory", SimpleNamespace(owner=owner, service=service))

    def ask_again(self, owner: int) -> None:
        self.turns.append(owner)
        self.left[owner] -= 1
        if self.left[owner]:
            self.rounds._requested.add(owner)  # noqa: SLF001 a request starts a thread


@pytest.fixture
def backlogs() -> Iterator[Backlogs]:
    backlogs = Backlogs()
    yield backlogs
    backlogs.rounds.stop()


@pytest.mark.parametrize(
    ("evicted", "turns"), [(1, [2, 3, 4, 2, 4, 2, 2]), (0, [2, 3, 4])]
)
def test_an_owner_whose_turn_does_something_goes_on_after_the_others(
    backlogs: Backlogs, evicted: int, turns: list[int]
) -> None:
    backlogs.evicted = evicted

    backlogs.rounds.run(Trigger.SCHEDULE)

    assert backlogs.turns == turns


def test_what_exceeds_a_capacity_is_consolidated_in_turns_too(
    backlogs: Backlogs,
) -> None:
    backlogs.rounds._requested.update(backlogs.left)  # noqa: SLF001 a request starts a thread

    backlogs.rounds._serve_requested()  # noqa: SLF001 as its thread does

    assert sorted(backlogs.turns[:3]) == [2, 3, 4]
    assert sorted(backlogs.turns[3:5]) == [2, 4]
    assert backlogs.turns[5:] == [2, 2]


@pytest.mark.parametrize(("turn_s", "left"), [(0.0, 3), (None, 0), (60.0, 0)])
def test_a_background_cycle_ends_with_its_turn(
    tmp_path: Path, turn_s: float | None, left: int
) -> None:
    with open_memory(config_by_words(tmp_path / "memory.db")) as memory:
        scheduler = SleepScheduler(
            sleep=lambda _: None, enforce_cap=list, check_triggers=list
        )
        host = SleepHost(scheduler, list, turn_s)
        memory.service.sleeper.host = host  # as for a memory of many
        for number in range(3):
            when = datetime(2026, 1, 1 + number, tzinfo=UTC)
            memory.service.call(Remember(f"Bell {number} rang.", created_at=when))

        report = memory.service.sleeper.sleep_in_background(Trigger.SCHEDULE)

        assert report is not None
        assert report.remaining == left
        by_request = CycleRequest(trigger=Trigger.EXPLICIT)
        assert memory.service.sleeper.sleep(by_request).evicted == left
