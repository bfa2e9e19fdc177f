"""When a cycle is due, judged from values alone; and that none is, once it has had its share."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from mnemosyned.config import SleepConfig
from mnemosyned.memory.consolidation import Selection, WorkingActivity
from mnemosyned.sleep.triggers import (
    AgeTrigger,
    CountTrigger,
    IdleTrigger,
    MachineState,
    SizeTrigger,
    SleepTrigger,
    TokensTrigger,
    model_refusal,
)

NOW = datetime(2026, 3, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
STILL = WorkingActivity(
    rows=0, movable=0, bytes=0, oldest=None, by_source={}, by_session={}
)
EVERY: list[SleepTrigger] = [
    AgeTrigger(age=12 * HOUR),
    CountTrigger(entries=20, fresh=10 * MINUTE),
    SizeTrigger(rows_max=100, bytes_max=10_000),
    IdleTrigger(quiet=15 * MINUTE, gain_min=10, fresh=10 * MINUTE),
    TokensTrigger(budget=1_000),
]


def seen(**changes: object) -> WorkingActivity:
    return replace(STILL, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("trigger", EVERY, ids=lambda one: one.name)
def test_nothing_is_due_where_nothing_is(trigger: SleepTrigger) -> None:
    assert not trigger.due(STILL, NOW)
    assert not trigger.due(seen(quiet=1_000 * HOUR), NOW)


def test_the_names_in_the_log_differ() -> None:
    assert len({trigger.name for trigger in EVERY}) == len(EVERY)


def test_age_waits_for_half_the_time_to_live_and_its_slack() -> None:
    age = AgeTrigger(age=12 * HOUR, slack=HOUR)

    assert not age.due(seen(oldest=NOW - 13 * HOUR), NOW)
    assert age.due(seen(oldest=NOW - 13 * HOUR - MINUTE), NOW)
    assert age.select_memories(STILL, NOW) == Selection(before=NOW - 12 * HOUR)


def test_after_its_cycle_age_rests_for_its_slack() -> None:
    age = AgeTrigger(age=12 * HOUR, slack=HOUR)
    left = seen(oldest=age.select_memories(STILL, NOW).before)

    assert not age.due(left, NOW + HOUR)
    assert age.due(left, NOW + HOUR + MINUTE)


def test_a_clock_set_back_makes_nothing_due() -> None:
    assert not AgeTrigger(age=12 * HOUR).due(seen(oldest=NOW), NOW - 1_000 * HOUR)


def test_counted_is_each_source_by_itself() -> None:
    count = CountTrigger(entries=20, fresh=10 * MINUTE)

    assert not count.due(seen(by_source={"chat": 19, None: 19}), NOW)
    busy = seen(by_source={"chat": 19, None: 20, "mail": 33})
    assert count.due(busy, NOW)
    assert count.select_memories(busy, NOW) == Selection(
        before=NOW - 10 * MINUTE, sources=(None, "mail")
    )


@pytest.mark.parametrize(("rows", "taken"), [(100, None), (101, 11), (200, 110)])
def test_rows_beyond_the_limit_go_with_a_tenth_more(
    rows: int, taken: int | None
) -> None:
    size = SizeTrigger(rows_max=100)
    activity = seen(rows=rows, movable=rows)

    assert size.due(activity, NOW) is (taken is not None)
    if taken is not None:
        assert size.select_memories(activity, NOW) == Selection(oldest=taken)


def test_bytes_are_counted_in_memories_of_middling_size() -> None:
    size = SizeTrigger(rows_max=1_000, bytes_max=10_000)
    activity = seen(rows=200, movable=200, bytes=20_000)

    assert size.due(activity, NOW)
    assert size.select_memories(activity, NOW) == Selection(oldest=110)
    assert not size.due(seen(rows=100, movable=100, bytes=10_000), NOW)


def test_pinned_memories_make_no_cycle_due() -> None:
    assert not SizeTrigger(rows_max=100).due(seen(rows=500, movable=0), NOW)


def test_idle_needs_quiet_and_something_to_gain() -> None:
    idle = IdleTrigger(quiet=15 * MINUTE, gain_min=10, fresh=10 * MINUTE)

    assert not idle.due(seen(quiet=15 * MINUTE, by_source={"chat": 9}), NOW)
    assert not idle.due(seen(quiet=14 * MINUTE, by_source={"chat": 10}), NOW)
    ready = seen(quiet=15 * MINUTE, by_source={"chat": 5, None: 5})
    assert idle.due(ready, NOW)
    assert idle.select_memories(ready, NOW) == Selection(before=NOW - 10 * MINUTE)


def test_a_session_at_four_fifths_of_its_tokens_gives_up_its_older_part() -> None:
    tokens = TokensTrigger(budget=1_000)

    assert not tokens.due(seen(by_session={"a": (40, 3_199), "b": (9, 100)}), NOW)
    full = seen(by_session={"a": (40, 3_200), "b": (10, 4_000)})
    assert tokens.due(full, NOW)
    assert tokens.select_memories(full, NOW) == Selection(session="b", oldest=5)


# -------------------------------------------------------------- model work

QUIET = MachineState(on_battery=False, load=0.0)


def refuses(
    sleep: SleepConfig, machine: MachineState = QUIET, *, quiet: timedelta = HOUR
) -> str:
    return model_refusal(sleep, machine, seen(quiet=quiet), NOW.time())


def test_by_default_a_model_may_always_write() -> None:
    busy = MachineState(on_battery=True, load=99)

    assert refuses(SleepConfig(), busy, quiet=timedelta()) == ""


def test_on_its_battery_the_machine_may_refuse() -> None:
    sleep = SleepConfig(model_policy="ac_power")

    assert "battery" in refuses(sleep, MachineState(on_battery=True, load=0))
    assert refuses(sleep) == ""


def test_in_use_the_machine_may_refuse() -> None:
    sleep = SleepConfig(model_policy="idle")

    assert "in use" in refuses(sleep, quiet=4 * MINUTE)
    assert refuses(sleep, quiet=5 * MINUTE) == ""


def test_under_load_the_machine_may_refuse() -> None:
    sleep = SleepConfig(load_max=1.0)

    assert "1.5" in refuses(sleep, MachineState(on_battery=False, load=1.5))
    assert refuses(sleep, MachineState(on_battery=False, load=1.0)) == ""


@pytest.mark.parametrize(
    ("begins", "ends", "hour", "held"),
    [
        (22, 7, 23, True),
        (22, 7, 6, True),
        (22, 7, 7, False),
        (9, 17, 12, True),
        (9, 17, 8, False),
    ],
)
def test_quiet_hours_go_over_midnight(
    begins: int, ends: int, hour: int, *, held: bool
) -> None:
    sleep = SleepConfig(quiet_hours=f"{begins:02}:00-{ends:02}:00")

    assert bool(model_refusal(sleep, QUIET, STILL, time(hour))) is held
