"""When a cycle is due, judged from values alone; and that none is, once it has had its share."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from functools import partial

from support.cases import each_case

from mnemosyned.config.settings import Config, SleepConfig
from mnemosyned.memory.consolidation import Selection, Trigger, WorkingActivity
from mnemosyned.sleep.triggers import (
    MachineState,
    SleepTrigger,
    make_triggers,
    model_refusal,
    select_by_age,
    select_by_count,
    select_by_size,
    select_by_tokens,
    select_when_idle,
)

NOW = datetime(2026, 3, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
STILL = WorkingActivity(
    rows=0, movable=0, bytes=0, oldest=None, by_source={}, by_session={}
)
AGE = partial(select_by_age, age=12 * HOUR, slack=HOUR)
COUNT = partial(select_by_count, entries=20, fresh=10 * MINUTE)
SIZE = partial(select_by_size, rows_max=100)
IDLE = partial(select_when_idle, quiet=15 * MINUTE, gain_min=10, fresh=10 * MINUTE)
TOKENS = partial(select_by_tokens, budget=1_000)


def seen(**changes: object) -> WorkingActivity:
    return replace(STILL, **changes)  # type: ignore[arg-type]


@each_case("trigger", [AGE, COUNT, SIZE, IDLE, TOKENS])
def test_nothing_is_due_where_nothing_is(trigger: SleepTrigger) -> None:
    assert trigger(STILL, NOW) is None
    assert trigger(seen(quiet=1_000 * HOUR), NOW) is None


def test_the_settings_switch_triggers_on_by_name() -> None:
    sleep = SleepConfig(on_count=1, on_idle_minutes=1, on_session_tokens=1, on_age=True)

    assert list(make_triggers(Config(sleep=sleep))) == [
        Trigger.SIZE,
        Trigger.AGE,
        Trigger.TOKENS,
        Trigger.COUNT,
        Trigger.IDLE,
    ]
    assert make_triggers(Config(auto_sleep=False)) == {}


def test_age_waits_for_half_the_time_to_live_and_its_slack() -> None:
    assert AGE(seen(oldest=NOW - 13 * HOUR), NOW) is None
    due = AGE(seen(oldest=NOW - 13 * HOUR - MINUTE), NOW)
    assert due == Selection(before=NOW - 12 * HOUR)


def test_after_its_cycle_age_rests_for_its_slack() -> None:
    left = seen(oldest=NOW - 12 * HOUR)

    assert AGE(left, NOW + HOUR) is None
    assert AGE(left, NOW + HOUR + MINUTE)


def test_a_clock_set_back_makes_nothing_due() -> None:
    assert AGE(seen(oldest=NOW), NOW - 1_000 * HOUR) is None


def test_counted_is_each_source_by_itself() -> None:
    assert COUNT(seen(by_source={"chat": 19, None: 19}), NOW) is None
    busy = seen(by_source={"chat": 19, None: 20, "mail": 33})
    assert COUNT(busy, NOW) == Selection(
        before=NOW - 10 * MINUTE, sources=(None, "mail")
    )


@each_case(("rows", "taken"), [(100, None), (101, 11), (200, 110)])
def test_rows_beyond_the_limit_go_with_a_tenth_more(
    rows: int, taken: int | None
) -> None:
    due = SIZE(seen(rows=rows, movable=rows), NOW)

    assert due == (Selection(oldest=taken) if taken else None)


def test_bytes_are_counted_in_memories_of_middling_size() -> None:
    size = partial(select_by_size, rows_max=1_000, bytes_max=10_000)

    large = seen(rows=200, movable=200, bytes=20_000)
    assert size(large, NOW) == Selection(oldest=110)
    assert size(seen(rows=100, movable=100, bytes=10_000), NOW) is None


def test_pinned_memories_make_no_cycle_due() -> None:
    assert SIZE(seen(rows=500, movable=0), NOW) is None


def test_idle_needs_quiet_and_something_to_gain() -> None:
    assert IDLE(seen(quiet=15 * MINUTE, by_source={"chat": 9}), NOW) is None
    assert IDLE(seen(quiet=14 * MINUTE, by_source={"chat": 10}), NOW) is None
    ready = seen(quiet=15 * MINUTE, by_source={"chat": 5, None: 5})
    assert IDLE(ready, NOW) == Selection(before=NOW - 10 * MINUTE)


def test_a_session_at_four_fifths_of_its_tokens_gives_up_its_older_part() -> None:
    near = seen(by_session={"a": (40, 3_199), "b": (9, 100)})
    assert TOKENS(near, NOW) is None
    full = seen(by_session={"a": (40, 3_200), "b": (10, 4_000)})
    assert TOKENS(full, NOW) == Selection(session="b", oldest=5)


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


@each_case(
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
