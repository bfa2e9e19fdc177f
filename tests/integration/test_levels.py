"""Episodes fold into days, days into weeks, weeks into months; late arrivals open them again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.fakes import FakeClock, agent_session, memory, raising
from support.services import Lab
from support.stores import get_episode

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    Selection,
    Trigger,
)
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.sleep.context import CycleRequest

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def said(at: datetime, name: str, **fields: Any) -> list[MemoryRecord]:  # noqa: ANN401
    """Three memories of one episode."""
    return [
        memory(f"{name}{i}", created_at=at + timedelta(minutes=i), **fields)
        for i in range(3)
    ]


def a_day(lab: Lab, *days: int, episodes: int = 3) -> None:
    """Episodes an hour apart in sources of their own, from the morning on, on each day."""
    for day in days:
        for at in range(episodes):
            moment = MONDAY + timedelta(days=day, hours=at)
            lab.put(*said(moment, f"d{day}e{at}x", source=f"s{at}"))


def sleep(lab: Lab, *, day: int) -> CycleReport:
    """Sleep on the morning after the day after that one, when it is over and rolled up."""
    lab.clock.moment = MONDAY + timedelta(days=day + 1, hours=11)
    return lab.run_cycle(Trigger.SCHEDULE)


def level(lab: Lab, number: int) -> list[Episode]:
    """All summaries of a level, oldest first."""
    ids = [
        row.episode
        for row in lab.store.sleep.log(limit=1_000)
        if row.level == number and row.episode
    ]
    return lab.store.memories.summaries(sorted(set(ids)))


def keys(report: CycleReport) -> list[str]:
    return [group.period for group in report.groups if group.level]


@pytest.fixture(autouse=True)
def on_monday(clock: FakeClock) -> None:
    clock.moment = MONDAY + timedelta(hours=12)


@pytest.fixture
def day(lab: Lab) -> Episode:
    """A day of three episodes, after its sleep."""
    a_day(lab, 0)
    sleep(lab, day=0)
    (day,) = level(lab, 1)
    return day


# ------------------------------------------------------------------- folding


def test_a_day_that_is_over_is_rolled_up_once_without_a_model(lab: Lab) -> None:
    a_day(lab, 0)

    report = sleep(lab, day=0)
    again = sleep(lab, day=0)

    (day,) = level(lab, 1)
    fields = (day.level, day.item_count, day.session, day.source)
    assert fields == (1, 9, "default", None)
    assert day.period_from == MONDAY.replace(hour=0)
    last = MONDAY + timedelta(hours=2, minutes=2)
    assert (day.covers_from, day.covers_until) == (MONDAY, last)
    below = level(lab, 0)
    assert [one.id for one in below] == list(get_episode(lab.store, day.id).summary_of)
    assert {one.parent for one in below} == {day.id}
    # A summary has at most 60 % of what is below.
    assert day.content.split("\n") == [one.content for one in below][:2]
    assert (report.promoted, report.rolled_up, keys(report)) == (3, 1, ["2026-03-02"])
    assert again.status is CycleStatus.NOTHING_TO_DO
    assert len(lab.summarizer.calls) == 3


def test_a_day_that_is_not_over_waits_and_other_cycles_fold_nothing(lab: Lab) -> None:
    a_day(lab, 0, 1)
    lab.clock.moment = MONDAY + timedelta(hours=26)

    waiting = lab.run_cycle(Trigger.SCHEDULE)
    lab.clock.moment = MONDAY + timedelta(days=9)
    relief = lab.cycle.run(
        CycleRequest(trigger=Trigger.CAP, selection=Selection(oldest=3))
    )
    session = lab.run_cycle(Trigger.EXPLICIT, session="default")

    assert (waiting.promoted, waiting.rolled_up) == (3, 0)
    assert (relief.rolled_up, session.rolled_up) == (0, 0)


def test_sessions_that_share_a_day_keep_to_themselves_under_a_filter(lab: Lab) -> None:
    for at, session in enumerate(("mine", "yours", "theirs")):
        lab.put(*said(MONDAY + at * HOUR, session, session=session))
    sleep(lab, day=0)
    (day,) = level(lab, 1)

    hits = lab.recall("short note yours0", session="mine").hits

    assert day.session == ""
    assert {hit.session for hit in hits} == {"mine"}
    assert "yours" not in " ".join(hit.content for hit in hits)


def talk(lab: Lab, number: int, project: str, text: str, *, day: int = 0) -> None:
    """A message in a session of its own in a project."""
    said_at, session = MONDAY + timedelta(days=day), f"codex:{number}"
    lab.store.agents.keep_session(agent_session(session, project, said_at))
    lab.put(memory(f"t{number}", text, created_at=said_at, session=session))


def test_a_day_names_the_project_of_each_session_and_each_line_leads_to_its_words(
    lab: Lab,
) -> None:
    texts = {
        "tide": "We decided to round VAT on every invoice line.",
        "shop": "I moved the shop's pages to the server in Graz.",
    }
    for number, (project, text) in enumerate(texts.items()):
        talk(lab, number, f"github.com/ann/{project}", text)

    sleep(lab, day=0)

    (day,) = level(lab, 1)
    assert sorted(day.content.splitlines()) == [
        f"[{project}] {text}" for project, text in sorted(texts.items())
    ]
    for line in day.content.splitlines():
        words = line.partition("] ")[2]
        (episode,) = [one for one in level(lab, 0) if words in one.content]
        (original,) = get_episode(lab.store, episode.id).summary_of
        assert lab.memory(original).content == words


def test_two_projects_whose_last_part_is_the_same_are_named_apart(lab: Lab) -> None:
    pages = "I moved the shop's pages to the server in Graz."
    talk(
        lab, 1, "github.com/ann/shop", "We decided to round VAT on every invoice line."
    )
    talk(lab, 2, "github.com/bob/shop", pages, day=1)

    sleep(lab, day=1)

    lines = [line for day in level(lab, 1) for line in day.content.splitlines()]
    assert [line.partition("] ")[0] for line in lines] == [
        "[github.com/ann/shop",
        "[github.com/bob/shop",
    ]


@pytest.mark.thorough
def test_a_very_long_day_keeps_to_a_readable_size(lab: Lab) -> None:
    for at in range(30):
        text = f"Ticket {at}-{{}} about the pump was closed by Ada. ".format
        content = "".join(map(text, range(60)))
        moment = MONDAY + timedelta(minutes=10 * at)
        notes = said(moment, f"m{at}", source=f"s{at}", content=content)
        lab.put(*notes)

    report = sleep(lab, day=0)

    (day,) = level(lab, 1)
    assert (report.rolled_up, day.item_count) == (1, 90)
    assert len(day.content) <= 12_000
    assert len(day.content.split("\n")) <= len(level(lab, 0))
    assert day.content.endswith("by Ada.")


# ------------------------------------------------------------ late arrivals


def test_a_late_arrival_opens_its_day_week_and_month_again(lab: Lab) -> None:
    a_day(lab, *range(35))
    early = sleep(lab, day=33)
    over = sleep(lab, day=36)
    counts = [len(level(lab, number)) for number in range(4)]
    before = [[one.id for one in level(lab, number)] for number in (1, 2, 3)]

    lab.put(*said(MONDAY + timedelta(days=8, hours=5), "late"))
    report = sleep(lab, day=37)

    # A month is over with the last week that begins in it.
    assert "2026-03" not in keys(early)
    assert keys(over) == ["2026-04-05", "2026-W14", "2026-03"]
    assert counts == [105, 35, 5, 1]
    assert keys(report) == ["2026-03-10", "2026-W11", "2026-03"]
    after = [level(lab, number) for number in (1, 2, 3)]
    assert [[one.id for one in row] for row in after] == before
    reopened = [row[at].content for row, at in zip(after, (8, 1, 0), strict=True)]
    assert all("late1" in content for content in reopened)
    ((month,),) = after[2:]
    assert (month.item_count, month.summarizer) == (35 * 9 + 3, "aaak")
    assert len(lab.store.memories.originals(month.id)) == 35 * 9 + 3


# ------------------------------------------------------------ looking at it


def test_expand_goes_down_one_level_or_to_the_words(lab: Lab, day: Episode) -> None:
    words = lab.expand(day.id)
    below = lab.expand(day.id, depth=1)
    bottom = lab.expand(below.summaries[0].id, depth=1)

    assert (len(words.originals), words.summaries) == (9, [])
    assert (below.originals, [one.level for one in below.summaries]) == ([], [0, 0, 0])
    ids = [one.id for one in bottom.originals]
    assert (ids, bottom.summaries) == (["d0e0x0", "d0e0x1", "d0e0x2"], [])


@pytest.mark.usefixtures("day")
def test_a_memory_has_one_place_also_in_a_day_that_was_rewritten(lab: Lab) -> None:
    lab.put(*said(MONDAY + 5 * HOUR, "late"))
    sleep(lab, day=1)

    for word in ("late1", "d0e1x1"):
        (hit,) = lab.recall(word, limit=20).hits
        assert [line.id for line in hit.lines] == [word]


def test_exact_details_are_carried_up_each_once(lab: Lab) -> None:
    for at, mail in enumerate(("a@b.io", "c@d.io", "a@b.io")):
        content = f"Write to {mail}"
        notes = said(MONDAY + at * HOUR, f"{at}", source=f"{at}", content=content)
        lab.put(*notes)

    sleep(lab, day=0)

    details = get_episode(lab.store, level(lab, 1)[0].id).details
    assert [detail.value for detail in details] == ["a@b.io", "c@d.io"]


# Roll-ups that fail or race, and what forgetting changes in them.


def test_a_fold_that_fails_leaves_all_as_it_was_and_is_tried_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_day(lab, *range(7))

    with monkeypatch.context() as patch:
        patch.setattr(lab.store.rollups, "write", raising(StorageFailed("disk full")))
        failed = sleep(lab, day=7)
    again = sleep(lab, day=7)

    assert (failed.rolled_up, failed.failed, failed.promoted) == (0, 7, 21)
    assert failed.status is CycleStatus.PARTIAL
    assert again.rolled_up == 8
    errors = {row.error for row in lab.store.sleep.log(limit=99) if row.level}
    assert errors == {None, "storage_failed"}


def test_a_memory_forgotten_during_a_roll_up_does_not_return(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_day(lab, 0)
    lab.clock.moment = MONDAY + timedelta(hours=26)
    lab.run_cycle(Trigger.SCHEDULE)

    read = lab.store.rollups.index_terms

    def forget(ids: Sequence[str]) -> dict[str, str]:
        lab.forget("d0e1x1")
        return read(ids)

    with monkeypatch.context() as patch:
        patch.setattr(lab.store.rollups, "index_terms", forget)
        raced = sleep(lab, day=0)
    again = sleep(lab, day=0)

    assert (raced.rolled_up, again.rolled_up) == (0, 1)
    assert "d0e1x1" not in level(lab, 1)[0].content
