"""Which clocks are believed: those that are no further ahead than the time that has passed."""

from datetime import timedelta

from support.cases import each_case
from support.fakes import NOON

from mnemosyned.memory.clock import (
    OFF_MAX,
    SLACK_FOR,
    TOLERANCE,
    Judgment,
    Sighting,
    judge_clock,
)

DAY = timedelta(days=1)
FIRST = Sighting(moment=NOON, boot="a", uptime_s=1_000.0)


def seen(
    last: Sighting,
    *,
    passed: timedelta,
    jumped: timedelta = timedelta(),
    boot: str = "a",
) -> Judgment:
    """The clock after some time, and after it was set by so much."""
    began = last.uptime_s if boot == last.boot else 0.0
    return judge_clock(
        last,
        now=last.moment + passed + jumped,
        boot=boot,
        uptime_s=began + passed.total_seconds(),
    )


def test_the_first_sight_is_believed() -> None:
    judged = judge_clock(None, now=NOON, boot="a", uptime_s=5.0)

    assert (judged.now, judged.ahead) == (NOON, timedelta())


@each_case("passed", [timedelta(), DAY, 800 * DAY])
def test_time_that_passed_is_believed_however_long(passed: timedelta) -> None:
    judged = seen(FIRST, passed=passed)

    assert (judged.now, judged.ahead) == (NOON + passed, timedelta())


@each_case("jumped", [2 * TOLERANCE, 2 * DAY, 800 * DAY])
def test_a_jump_is_not_believed_however_long_it_stays(jumped: timedelta) -> None:
    soon = timedelta(minutes=1)
    at_once = seen(FIRST, passed=soon, jumped=jumped)
    much_later = seen(at_once.sighting, passed=90 * DAY, jumped=jumped)

    assert (at_once.ahead, at_once.now) == (jumped, NOON + soon)
    assert (much_later.ahead, much_later.now) == (jumped, NOON + soon + 90 * DAY)


def test_a_jump_that_is_taken_back_leaves_no_trace() -> None:
    jumped = seen(FIRST, passed=DAY, jumped=800 * DAY)

    right = seen(jumped.sighting, passed=DAY)

    assert (right.now, right.ahead) == (NOON + 2 * DAY, timedelta())
    assert seen(right.sighting, passed=DAY, jumped=800 * DAY).ahead == 800 * DAY


@each_case(
    ("off", "ahead"), [(3 * DAY, 0 * DAY), (OFF_MAX, 0 * DAY), (800 * DAY, 800 * DAY)]
)
def test_a_machine_off_for_long_is_asked_about(
    off: timedelta, ahead: timedelta
) -> None:
    judged = seen(FIRST, passed=timedelta(minutes=2), jumped=off, boot="b")

    assert judged.ahead == ahead


def test_after_a_start_the_clock_may_be_set_right_for_a_while() -> None:
    behind = seen(FIRST, passed=timedelta(minutes=1), boot="b")

    soon = seen(behind.sighting, passed=timedelta(minutes=5), jumped=2 * DAY, boot="b")
    settled = seen(behind.sighting, passed=SLACK_FOR + timedelta(hours=2), boot="b")
    late = seen(settled.sighting, passed=timedelta(minutes=5), jumped=2 * DAY, boot="b")

    assert (soon.ahead, late.ahead) == (timedelta(), 2 * DAY)


def test_catching_up_after_a_pause_is_allowed_once() -> None:
    judged = seen(FIRST, passed=timedelta(minutes=1), boot="b")
    for _ in range(3):
        judged = seen(
            judged.sighting, passed=timedelta(minutes=5), jumped=3 * DAY, boot="b"
        )

    assert judged.ahead == 3 * DAY


def test_a_clock_that_begins_in_1970_and_is_set_right_is_believed() -> None:
    epoch = seen(FIRST, passed=timedelta(minutes=1), jumped=-20_000 * DAY, boot="b")

    right = judge_clock(
        epoch.sighting,
        now=NOON + 2 * DAY,
        boot="b",
        uptime_s=epoch.sighting.uptime_s + 60,
    )

    assert epoch.ahead == right.ahead == timedelta()
    assert right.now == NOON + 2 * DAY


def test_sightings_of_a_fast_clock_are_dropped_when_it_is_corrected() -> None:
    back = seen(FIRST, passed=DAY, jumped=-3_650 * DAY)
    settled = seen(back.sighting, passed=2 * DAY)

    assert back.ahead == timedelta()
    assert seen(settled.sighting, passed=DAY, jumped=800 * DAY).ahead == 800 * DAY


def test_a_start_that_cannot_be_told_from_another_is_judged_by_its_length() -> None:
    nameless = Sighting(moment=NOON, boot="", uptime_s=90_000.0)

    longer = judge_clock(nameless, now=NOON + 90 * DAY, boot="", uptime_s=90_060.0)
    other = judge_clock(nameless, now=NOON + 3 * DAY, boot="", uptime_s=60.0)

    assert (longer.ahead > 89 * DAY, other.ahead) == (True, timedelta())
