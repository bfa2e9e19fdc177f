"""Days, weeks and months: which children a period takes, beyond what the seeds' cases say of it."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies as st

from mnemosyned.memory.periods import Child, group_into_periods

MONDAY = datetime(2026, 3, 9, tzinfo=UTC)


def child(date: str, **changes: object) -> Child:
    moment = datetime.fromisoformat(date).replace(tzinfo=UTC)
    return Child(id=date, covers_from=moment, **changes)  # type: ignore[arg-type]


def test_few_wait_and_a_week_belongs_to_the_month_it_begins_in() -> None:
    weeks = [child(day) for day in ("2026-03-16", "2026-03-30", "2026-04-06")]

    found = group_into_periods(weeks, to_level=3, minimum=1)

    assert [(each.key, len(each.members)) for each in found] == [
        ("2026-03", 2),
        ("2026-04", 1),
    ]
    assert group_into_periods(weeks, to_level=3, minimum=3) == []


def test_a_day_is_one_of_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    late = Child(id="a", covers_from=datetime(2026, 3, 15, 8, tzinfo=tokyo))

    (found,) = group_into_periods([late], to_level=1, minimum=1)

    assert found.key == "2026-03-14"


def test_members_are_in_order_and_their_originals_are_counted() -> None:
    days = [child(f"2026-03-{day:02}", item_count=day) for day in (11, 9, 10)]

    (found,) = group_into_periods(days, to_level=2)

    assert found.ids == ("2026-03-09", "2026-03-10", "2026-03-11")
    assert found.item_count == 30


def test_a_rolled_up_summary_is_left_out_unless_its_parent_is_reopened() -> None:
    folded = [child(f"2026-03-{day:02}", parent="w") for day in (9, 10, 11)]

    assert group_into_periods(folded, to_level=2) == []
    (again,) = group_into_periods(
        [*folded, child("2026-03-12")], to_level=2, reopened={"w": MONDAY}
    )
    assert len(again.members) == 4


def test_a_reopened_summary_keeps_its_members_in_whatever_zone_it_was_written() -> None:
    evening = child("2026-03-08", parent="d")

    (found,) = group_into_periods(
        [evening, child("2026-03-09")], to_level=1, minimum=1, reopened={"d": MONDAY}
    )

    assert len(found.members) == 2


moments = st.datetimes(timezones=st.just(UTC))


@given(st.lists(moments, max_size=40), st.sampled_from([1, 2, 3]))
def test_every_child_is_in_exactly_one_period_that_holds_it(
    given_moments: list[datetime], level: int
) -> None:
    children = [
        Child(id=str(at), covers_from=moment) for at, moment in enumerate(given_moments)
    ]

    found = group_into_periods(children, to_level=level, minimum=1)

    assert sorted(id for period in found for id in period.ids) == sorted(
        one.id for one in children
    )
    for period in found:
        assert all(
            period.begins <= one.covers_from <= period.ends for one in period.members
        )
    assert len({period.key for period in found}) == len(found)
