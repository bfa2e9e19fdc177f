from collections import Counter
from datetime import timedelta
from itertools import pairwise
from random import Random

from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON, memory, pending

from mnemosyned.memory.consolidation import (
    PREVIEW_CHARS,
    Batch,
    GroupLimits,
    Pending,
    log_preview,
    make_episode,
    plan,
)

LIMITS = GroupLimits()


def ids(batches: list[Batch]) -> list[tuple[str, ...]]:
    return [batch.ids for batch in batches]


def row(count: int, *, chars: int = 10) -> list[Pending]:
    return [pending(str(at), hours=at / 60, chars=chars) for at in range(count)]


memories_of_a_week = st.lists(
    st.builds(
        lambda minute, session, source, chars: (minute, session, source, chars),
        st.integers(0, 7 * 24 * 60),
        st.sampled_from(["a", "b"]),
        st.sampled_from([None, "chat", ""]),
        st.integers(1, 500),
    ),
    max_size=60,
).map(
    lambda drawn: [
        pending(str(at), hours=minute / 60, session=session, source=source, chars=chars)
        for at, (minute, session, source, chars) in enumerate(drawn)
    ]
)
limits = st.builds(
    GroupLimits,
    entries_max=st.integers(3, 10),
    chars_max=st.integers(200, 2_000),
    pause=st.integers(1, 24).map(lambda hours: timedelta(hours=hours)),
)


@given(memories_of_a_week, limits)
def test_every_memory_is_in_exactly_one_batch(
    pending: list[Pending], limits: GroupLimits
) -> None:
    batches = plan(pending, limits=limits)

    planned = Counter(id for batch in batches for id in batch.ids)
    assert planned == Counter(memory.id for memory in pending)


@given(memories_of_a_week, limits)
def test_a_batch_keeps_every_limit(pending: list[Pending], limits: GroupLimits) -> None:
    for batch in plan(pending, limits=limits):
        times = [memory.created_at for memory in batch.members]
        pauses = [later - earlier for earlier, later in pairwise(times)]

        assert len({(memory.session, memory.source) for memory in batch.members}) == 1
        assert len(batch.members) <= limits.entries_max
        assert batch.chars <= limits.chars_max or len(batch.members) == 1
        assert all(timedelta() <= pause < limits.pause for pause in pauses)


@given(memories_of_a_week, limits)
def test_the_batch_with_the_oldest_memory_comes_first(
    pending: list[Pending], limits: GroupLimits
) -> None:
    begins = [batch.covers_from for batch in plan(pending, limits=limits)]

    assert begins == sorted(begins)


@given(memories_of_a_week, limits, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_handed_in(
    pending: list[Pending], limits: GroupLimits, random: Random
) -> None:
    distinct = list({memory.created_at: memory for memory in pending}.values())
    shuffled = list(distinct)
    random.shuffle(shuffled)

    planned = plan(shuffled, limits=limits)

    assert {batch.ids for batch in planned} == {
        b.ids for b in plan(distinct, limits=limits)
    }


def test_nothing_pending_makes_no_plan() -> None:
    assert plan([], limits=LIMITS) == []


def test_sources_and_sessions_are_never_mixed() -> None:
    mixed = [
        pending("1", hours=0, session="a", source="chat"),
        pending("2", hours=1, session="b", source="chat"),
        pending("3", hours=2, session="a", source="tool"),
        pending("4", hours=3, session="a", source="chat"),
    ]

    assert ids(plan(mixed, limits=LIMITS)) == [("1", "4"), ("2",), ("3",)]


def test_memories_without_a_source_are_a_group_of_their_own() -> None:
    mixed = [
        pending("1", source=None),
        pending("2", source=""),
        pending("3", source=None),
    ]

    assert ids(plan(mixed, limits=LIMITS)) == [("1", "3"), ("2",)]


@each_case(
    ("pause_s", "expected"),
    [
        (6 * 3600 - 2, [("1", "2")]),
        (6 * 3600, [("1",), ("2",)]),
        (6 * 3600 + 2, [("1",), ("2",)]),
    ],
)
def test_a_pause_of_six_hours_starts_a_new_episode(
    pause_s: int, expected: list[tuple[str, ...]]
) -> None:
    two = [pending("1"), pending("2", hours=pause_s / 3600)]

    assert ids(plan(two, limits=LIMITS)) == expected


def test_a_long_row_without_a_pause_stays_one_episode() -> None:
    row = [pending(str(at), hours=at * 5) for at in range(10)]

    assert len(plan(row, limits=LIMITS)) == 1


@each_case(
    ("count", "lengths"),
    [(30, [30]), (31, [15, 16]), (60, [30, 30]), (61, [20, 20, 21]), (100, [25] * 4)],
)
def test_a_group_too_long_is_parted_evenly(count: int, lengths: list[int]) -> None:
    batches = plan(row(count), limits=LIMITS)

    assert [len(batch.members) for batch in batches] == lengths


def test_a_group_with_too_many_characters_is_parted_evenly() -> None:
    batches = plan(row(12, chars=1_000), limits=LIMITS)

    assert [batch.chars for batch in batches] == [6_000, 6_000]


def test_exactly_the_size_limit_is_one_batch() -> None:
    assert [batch.chars for batch in plan(row(8, chars=1_000), limits=LIMITS)] == [
        8_000
    ]


def test_a_huge_memory_is_a_batch_of_its_own() -> None:
    group = [
        pending("1"),
        pending("huge", hours=1, chars=50_000),
        pending("3", hours=2),
    ]

    assert ids(plan(group, limits=LIMITS)) == [("1",), ("huge",), ("3",)]


def test_an_episode_names_all_its_originals_and_the_time_it_covers() -> None:
    originals = [
        memory("1", hours_ago=3, session="s", source="chat"),
        memory("2", hours_ago=1),
    ]

    episode = make_episode(
        originals, id="e", content="short", summarizer="fake", now=NOON
    )

    assert episode.summary_of == ("1", "2")
    assert episode.item_count == 2
    assert (episode.session, episode.source) == ("s", "chat")
    assert episode.covers_from == NOON - timedelta(hours=3)
    assert episode.covers_until == NOON - timedelta(hours=1)


def test_a_preview_is_one_short_line() -> None:
    long = log_preview("word \n" * 500)

    assert "\n" not in long
    assert len(long) <= PREVIEW_CHARS
    assert long.endswith("…")


def test_a_short_summary_is_its_own_preview() -> None:
    assert log_preview("two\nlines") == "two lines"
