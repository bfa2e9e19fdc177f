"""When a cycle is due, judged from values alone; and that none is, once it has had its share."""

from dataclasses import replace
from datetime import time, timedelta
from functools import partial
from typing import Any

from support.cases import each_case
from support.fakes import NOON as NOW

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


SMALLER = partial(select_by_size, rows_max=1_000, bytes_max=10_000)


@each_case(("trigger", "activity", "due"), [
    *((trigger, {}, None) for trigger in (AGE, COUNT, SIZE, IDLE, TOKENS)),
    *((trigger, {"quiet": 1_000 * HOUR}, None) for trigger in (AGE, COUNT, SIZE, IDLE, TOKENS)),
    # Half the time to live, and its slack.
    (AGE, {"oldest": NOW - 13 * HOUR}, None),
    (AGE, {"oldest": NOW - 13 * HOUR - MINUTE}, Selection(before=NOW - 12 * HOUR)),
    (AGE, {"oldest": NOW + 1_000 * HOUR}, None),  # as after a clock that was set back
    # Each source by itself.
    (COUNT, {"by_source": {"chat": 19, None: 19}}, None),
    (COUNT, {"by_source": {"chat": 19, None: 20, "mail": 33}},
     Selection(before=NOW - 10 * MINUTE, sources=(None, "mail"))),
    # What is beyond the limit, and a tenth more; pinned rows cannot move.
    (SIZE, {"rows": 100, "movable": 100}, None),
    (SIZE, {"rows": 101, "movable": 101}, Selection(oldest=11)),
    (SIZE, {"rows": 200, "movable": 200}, Selection(oldest=110)),
    (SIZE, {"rows": 500, "movable": 0}, None),
    # Bytes are counted in memories of middling size.
    (SMALLER, {"rows": 200, "movable": 200, "bytes": 20_000}, Selection(oldest=110)),
    (SMALLER, {"rows": 100, "movable": 100, "bytes": 10_000}, None),
    # Quiet, and something to gain.
    (IDLE, {"quiet": 15 * MINUTE, "by_source": {"chat": 9}}, None),
    (IDLE, {"quiet": 14 * MINUTE, "by_source": {"chat": 10}}, None),
    (IDLE, {"quiet": 15 * MINUTE, "by_source": {"chat": 5, None: 5}}, Selection(before=NOW - 10 * MINUTE)),
    # At four fifths of its tokens a session gives up its older part.
    (TOKENS, {"by_session": {"a": (40, 3_199), "b": (9, 100)}}, None),
    (TOKENS, {"by_session": {"a": (40, 3_200), "b": (10, 4_000)}}, Selection(session="b", oldest=5)),
])  # fmt: skip
def test_a_trigger_selects_what_is_due(
    trigger: SleepTrigger, activity: dict[str, Any], due: Selection | None
) -> None:
    assert trigger(seen(**activity), NOW) == due


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


def test_after_its_cycle_age_rests_for_its_slack() -> None:
    left = seen(oldest=NOW - 12 * HOUR)

    assert AGE(left, NOW + HOUR) is None
    assert AGE(left, NOW + HOUR + MINUTE)


# -------------------------------------------------------------- model work

QUIET = MachineState(on_battery=False, load=0.0)


@each_case(("sleep", "machine", "quiet", "why"), [
    (SleepConfig(), MachineState(on_battery=True, load=99), timedelta(), ""),
    (SleepConfig(model_policy="ac_power"), MachineState(on_battery=True, load=0), HOUR, "battery"),
    (SleepConfig(model_policy="ac_power"), QUIET, HOUR, ""),
    (SleepConfig(model_policy="idle"), QUIET, 4 * MINUTE, "in use"),
    (SleepConfig(model_policy="idle"), QUIET, 5 * MINUTE, ""),
    (SleepConfig(load_max=1.0), MachineState(on_battery=False, load=1.5), HOUR, "1.5"),
    (SleepConfig(load_max=1.0), MachineState(on_battery=False, load=1.0), HOUR, ""),
])  # fmt: skip
def test_on_its_battery_in_use_or_under_load_the_machine_may_refuse(
    sleep: SleepConfig, machine: MachineState, quiet: timedelta, why: str
) -> None:
    refusal = model_refusal(sleep, machine, seen(quiet=quiet), NOW.time())

    assert why in refusal
    assert bool(refusal) == bool(why)


@each_case(("begins", "ends", "hour", "held"), [
    (22, 7, 23, True),
    (22, 7, 6, True),
    (22, 7, 7, False),
    (9, 17, 12, True),
    (9, 17, 8, False),
])  # fmt: skip
def test_quiet_hours_cross_midnight(
    begins: int, ends: int, hour: int, *, held: bool
) -> None:
    sleep = SleepConfig(quiet_hours=f"{begins:02}:00-{ends:02}:00")

    assert bool(model_refusal(sleep, QUIET, STILL, time(hour))) is held
