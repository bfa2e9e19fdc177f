from collections import Counter
from datetime import timedelta
from itertools import pairwise
from random import Random

from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON, memory, pending

from mnemosyned.memory.consolidation import (
    PREVIEW_CHARS,
    GroupLimits,
    Pending,
    log_preview,
    make_episode,
    plan,
)

LIMITS = GroupLimits()


memories_of_a_week = st.lists(
    st.tuples(
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
def test_each_memory_is_in_one_batch_and_each_batch_keeps_every_limit(
    pending: list[Pending], limits: GroupLimits
) -> None:
    batches = plan(pending, limits=limits)

    planned = Counter(id for batch in batches for id in batch.ids)
    assert planned == Counter(memory.id for memory in pending)
    begins = [batch.covers_from for batch in batches]
    assert begins == sorted(begins)
    for batch in batches:
        times = [memory.created_at for memory in batch.members]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert len({(memory.session, memory.source) for memory in batch.members}) == 1
        assert len(batch.members) <= limits.entries_max
        assert batch.chars <= limits.chars_max or len(batch.members) == 1
        assert all(timedelta() <= pause < limits.pause for pause in pauses)


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


@each_case(("memories", "batches"), [
    ([pending("1", hours=0, session="a", source="chat"), pending("2", hours=1, session="b", source="chat"),
      pending("3", hours=2, session="a", source="tool"), pending("4", hours=3, session="a", source="chat")],
     [("1", "4"), ("2",), ("3",)]),
    ([pending("1", source=None), pending("2", source=""), pending("3", source=None)], [("1", "3"), ("2",)]),
    # A pause of six hours starts a new episode; a long row without one stays one.
    ([pending("1"), pending("2", hours=6 - 1 / 1_800)], [("1", "2")]),
    ([pending("1"), pending("2", hours=6)], [("1",), ("2",)]),
    ([pending("1"), pending("2", hours=6 + 1 / 1_800)], [("1",), ("2",)]),
    ([pending(str(at), hours=at * 5) for at in range(10)], [tuple("0123456789")]),
    # A huge memory is a batch of its own.
    ([pending("1"), pending("huge", hours=1, chars=50_000), pending("3", hours=2)],
     [("1",), ("huge",), ("3",)]),
])  # fmt: skip
def test_sources_sessions_and_pauses_part_batches(
    memories: list[Pending], batches: list[tuple[str, ...]]
) -> None:
    assert [batch.ids for batch in plan(memories, limits=LIMITS)] == batches


@each_case(("count", "chars", "lengths"), [
    (30, 10, [30]), (31, 10, [15, 16]), (60, 10, [30, 30]), (61, 10, [20, 20, 21]), (100, 10, [25] * 4),
    (8, 1_000, [8]), (12, 1_000, [6, 6]),
])  # fmt: skip
def test_a_group_with_too_many_memories_or_characters_is_parted_evenly(
    count: int, chars: int, lengths: list[int]
) -> None:
    group = [pending(str(at), hours=at / 60, chars=chars) for at in range(count)]

    assert [len(batch.members) for batch in plan(group, limits=LIMITS)] == lengths


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
    assert log_preview("two\nlines") == "two lines"
