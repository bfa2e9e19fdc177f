"""Lists without a question, and tags: every filter, every page, whatever moves meanwhile."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from support.cases import each_case
from support.engines import POSTGRES, new_database
from support.fakes import consolidate, memory, promotion, remember_batch
from support.services import Lab
from support.stores import TRIO

from mnemosyned import InvalidRequest, Memory, Remember, Tier
from mnemosyned.errors import BatchChanged, InvalidTime, PartlyDone
from mnemosyned.memory.listing import ListOrder
from mnemosyned.service.reading import ListService
from mnemosyned.storage.common import session as common_session
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.conversation import Injections
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import Recall, Tag, Untag
from mnemosyned.verbs.request import Request

START = datetime(2025, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def listed_memory(
    request: pytest.FixtureRequest, database: Path, blank: Path
) -> Iterator[Memory]:
    is_server = request.config.getoption("--engine") == POSTGRES
    place = new_database() if is_server else shutil.copy(blank, database)
    with Memory(place) as opened:
        yield opened


@pytest.mark.parametrize("order", ListOrder)
def test_a_sleep_and_new_memories_between_pages_neither_repeat_nor_hide_any(
    listed_memory: Memory, order: ListOrder
) -> None:
    notes = [
        Remember(
            f"note {number}",
            id=f"note-{number}",
            session=f"s{number % 2}",
            created_at=START + timedelta(hours=number // 3 * 3),
        )
        for number in range(60)
    ]
    listed_memory.remember_many(notes[:40])
    listed_memory.sleep(force=True)
    listed_memory.remember_many(notes[40:])

    page = listed_memory.list(limit=20, order=order)
    shown = [record.id for record in page]
    listed_memory.remember("as new as can be")
    listed_memory.remember("older than all", created_at=START - timedelta(days=1))
    listed_memory.sleep(force=True)
    while page.next:
        page = listed_memory.list(limit=11, order=order, after=page.next)
        shown += [record.id for record in page]

    assert len(shown) == len(set(shown))
    assert {note.id for note in notes} <= set(shown)


def test_summaries_are_listed_by_level(listed_memory: Memory) -> None:
    days = [START + timedelta(days=day) for day in range(3)]
    listed_memory.remember_many(
        [Remember(f"{day}: {n}", created_at=day) for day in days for n in range(4)]
    )
    listed_memory.sleep(force=True)

    page = listed_memory.list(level="day", limit=2)
    rest = listed_memory.list(level="day", limit=2, after=page.next)
    narrow = listed_memory.list(level="day", since=days[1])

    shown = [(one.level, one.covers_from) for one in (*page.episodes, *rest.episodes)]
    assert shown == [(1, day) for day in reversed(days)]
    assert (page.memories, len(narrow.episodes)) == ([], 2)
    with pytest.raises(InvalidRequest, match="level is for summaries"):
        listed_memory.list(level="day", tier=Tier.ARCHIVE)


def test_what_was_superseded_or_expired_is_listed_on_request(
    listed_memory: Memory,
) -> None:
    listed_memory.remember("Rome", id="old")
    listed_memory.remember("Paris", id="new", supersedes="old")
    listed_memory.remember("until noon", id="gone", valid_until=START)

    assert [record.id for record in listed_memory.list()] == ["new"]
    everything = {record.id for record in listed_memory.list(history=True)}
    assert everything == {"old", "new", "gone"}


@each_case("cursor", ["1", "x~m1", "1~x1", "1~m", "9" * 18 + "~m1", "~"])
def test_a_cursor_that_no_page_gave_is_refused(
    listed_memory: Memory, cursor: str
) -> None:
    with pytest.raises(InvalidRequest, match="not a cursor"):
        listed_memory.list(after=cursor)


def test_sessions_and_sources_are_those_that_begin_so(listed_memory: Memory) -> None:
    for session, source in (("home", "cook"), ("hotel", "mail"), ("work", "mail")):
        listed_memory.remember("tea", session=session, source=source)

    sessions = listed_memory.sessions(prefix="ho", limit=1)

    assert (len(sessions), sessions.total) == (1, 2)
    assert [total.source for total in listed_memory.sources(prefix="co")] == ["cook"]


def test_days_are_counted_one_by_one_and_a_few_at_once(listed_memory: Memory) -> None:
    for day in (9, 11):
        listed_memory.remember(f"{day}", created_at=f"2026-03-{day:02}T12:00:00Z")

    days = listed_memory.days(since="2026-03-09", until="2026-03-11").days

    counted = [(str(one.day), one.memories, one.given) for one in days]
    assert [count for _, *count in counted] == [[1, 0], [0, 0], [1, 0]]
    assert [day for day, *_ in counted] == ["2026-03-09", "2026-03-10", "2026-03-11"]
    leapt = "2026-03-31T23:30+02:00"  # two days after the clock leapt
    for by, count in (("hour", 24), ("day", 30), ("month", 12)):
        named = listed_memory.days(by=by, until=leapt, zone="Europe/Berlin")  # type: ignore[arg-type]
        assert len(named) == count
    for end in ("0001-01-20", "9999-12-31"):
        assert len(listed_memory.days(until=end)) >= 20


@each_case("days", [0, 1])
@each_case("request_", [Recall("ibex"), ListMemories(), Tag(tags=["a"]), Injections()])
def test_times_between_which_nothing_lies_are_refused(
    lab: Lab, request_: Request[Any], days: int
) -> None:
    swapped = replace(request_, since=START, until=START - timedelta(days=days))

    with pytest.raises(InvalidTime, match=r"since .* is not before `until`"):
        lab.call(swapped)


@each_case(
    ("period", "problem"),
    [
        ({"since": "2026-03-11", "until": "2026-03-09"}, "since is after until"),
        ({"since": "9998-03-11"}, "since is in the future"),
        ({"since": "2020-01-01", "until": "2026-03-09"}, "1 to 400 days"),
        ({"since": "2026-01-01", "zone": "Nowhere/Here"}, "is no time zone"),
        ({"since": "2026-01-01", "zone": "../UTC"}, "is no time zone"),
        ({"since": "2026-01-01", "zone": "Europe"}, "is no time zone"),
    ],
)
def test_days_that_cannot_be_counted_are_refused(
    listed_memory: Memory, period: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        listed_memory.days(**period)


@pytest.mark.thorough
def test_hours_days_and_months_are_counted_alike_before_and_after_sleeps(
    listed_memory: Memory,
) -> None:
    chance, first = random.Random(3), datetime(2026, 2, 1, 22, tzinfo=UTC)
    minutes = [chance.randrange(60 * 24 * 60) for _ in range(400)]
    times = [first + timedelta(minutes=each) for each in minutes]
    berlin = ZoneInfo("Europe/Berlin")

    def check(memory: Memory, kept: list[datetime]) -> None:
        forms = {"hour": "%Y-%m-%d %H", "day": "%Y-%m-%d", "month": "%Y-%m-01"}
        for by, form in forms.items():
            day, days = (25, 10) if by == "hour" else (1, 100)
            since = datetime(2026, 3 if by == "hour" else 1, day, tzinfo=berlin)
            until = since + timedelta(days=days)
            counted = memory.days(since=since, until=until, by=by, zone="Europe/Berlin")  # type: ignore[arg-type]
            seen = {
                f"{one.day}" + (f" {one.hour:02}" if by == "hour" else ""): one.memories
                for one in counted.days
                if one.memories
            }
            local = [moment.astimezone(berlin) for moment in kept]
            assert seen == Counter(
                f"{moment:{form}}" for moment in local if since <= moment < until
            )

    listed_memory.remember_many(
        [
            Remember(
                f"Line {number} of it.",
                id=f"m{number}",
                session=f"s{moment:%d}" if number % 3 else "long",
                created_at=moment,
            )
            for number, moment in enumerate(times)
        ]
    )
    check(listed_memory, times)
    listed_memory.sleep(force=True)
    assert listed_memory.list(level="month").episodes
    check(listed_memory, times)
    listed_memory.remember("late", session="late", created_at=times[7])
    check(listed_memory, [*times, times[7]])
    listed_memory.forget([f"m{number}" for number in range(20)])
    listed_memory.sleep(force=True)
    check(listed_memory, [*times[20:], times[7]])


@pytest.mark.thorough
def test_a_day_of_very_many_episodes_has_the_values_of_the_first(
    listed_memory: Memory,
) -> None:
    count = common_session.DETAILED_MAX + 3
    values = [f"{10_000 + number}" for number in range(count)]
    for number, value in enumerate(values):
        moment = START + timedelta(seconds=number)
        text = f"The ticket is number {value}."
        listed_memory.remember(text, session=f"s{number}", created_at=moment)
    listed_memory.sleep(force=True)
    (day,) = listed_memory.list(level="day").episodes

    shown = listed_memory.expand(day.id, depth=1)

    assert len(shown.summaries) == count
    details = [detail.value for detail in shown.episode.details]
    assert details == values[: common_session.DETAILED_MAX]


def test_a_secret_of_any_episode_is_masked_in_all_originals_of_a_month(
    listed_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = common_session.FIRST_BELOW.replace(str(common_session.DETAILED_MAX), "1")
    monkeypatch.setattr(common_session, "FIRST_BELOW", first)
    texts = [
        "The ticket is number 10007.",
        "The password is hunter2xyz, from today on.",
        "Ana typed hunter2xyz once more.",
    ]
    for hour, text in enumerate(texts):
        moment = START + timedelta(hours=hour)
        listed_memory.remember(text, session=f"s{hour}", created_at=moment)
    listed_memory.sleep(force=True)
    (month,) = listed_memory.list(level="month").episodes

    shown = listed_memory.expand(month.id)
    revealed = listed_memory.expand(month.id, reveal=True)

    masked = [text.replace("hunter2xyz", "[secret:password]") for text in texts]
    assert [original.content for original in shown.originals] == masked
    assert [original.content for original in revealed.originals] == texts


def test_days_are_those_of_a_zone(listed_memory: Memory) -> None:
    listed_memory.remember("new year", created_at="2025-12-31T16:00:00Z")

    for since, until in (
        ("2026-01-01T00:00+09:00", "2026-01-01T12:00+09:00"),
        ("2026-01-01", "2026-01-01"),
    ):
        (day,) = listed_memory.days(since=since, until=until, zone="Asia/Tokyo")
        assert (str(day.day), day.memories) == ("2026-01-01", 1)


@pytest.mark.parametrize(
    ("zone", "first", "last", "hours"),
    [
        (
            "Antarctica/Troll",  # from 01:00 to 03:00
            *("2026-03-29", "2026-03-29"),
            {"29T00:30Z": (29, 0), "29T01:30Z": (29, 3), "29T02:30Z": (29, 4)},
        ),
        (
            "Pacific/Apia",  # from the end of the 29th to the 31st
            *("2011-12-29", "2011-12-31"),
            {"30T09:30Z": (29, 23), "30T10:30Z": (31, 0), "30T11:30Z": (31, 1)},
        ),
    ],
)
def test_hours_that_a_clock_leaps_over_hold_nothing(
    listed_memory: Memory,
    zone: str,
    first: str,
    last: str,
    hours: dict[str, tuple[int, int]],
) -> None:
    for moment in hours:
        listed_memory.remember(moment, created_at=f"{first[:8]}{moment}")

    counted = listed_memory.days(since=first, until=last, by="hour", zone=zone).days

    seen = [(one.day.day, one.hour) for one in counted for _ in range(one.memories)]
    assert seen == list(hours.values())


def test_today_is_counted_by_one_look_at_the_clock(store: SqliteStore) -> None:
    days = [START + timedelta(days=day) for day in (-1, 0, 0, 0, 1)]
    said = [memory(f"{at}", created_at=day) for at, day in enumerate(days)]
    remember_batch(store, *said)
    # A clock that shows two times in turn, a day apart.
    moments = cycle((START, START - timedelta(days=1)))
    clock = SimpleNamespace(now=lambda: next(moments))
    lists = ListService(store=store.lists, clock=clock, bytes_on_disk=lambda: 0)

    assert [lists.count_today(), lists.count_today()] == [3, 1]


# Tags through the service: remembered, searched by, changed by filters.


@pytest.mark.parametrize("asleep", [False, True])
def test_recall_and_lists_have_only_what_has_one_of_the_tags_or_roles(
    lab: Lab, *, asleep: bool
) -> None:
    for number, tags in enumerate((["Sea"], ["hills"], [], ["sea", "hills"])):
        ibex = f"an ibex {number}"
        lab.remember(ibex, id=f"m{number}", role=f"r{number}", tags=tags)
    if asleep:
        lab.run_cycle(force=True)

    assert lab.found("ibex", tag="SEA") == {"m0", "m3"}
    assert lab.found("ibex", tag=["sea", "hills"]) == {"m0", "m1", "m3"}
    (hit,) = lab.recall("ibex", tag="hills", role="r1").hits
    assert (hit.lines[0] if asleep else hit).tags == ("hills",)
    assert lab.found("ibex", tag="desert") == set()
    assert lab.found("In short", tag="sea") == set()
    assert lab.found("ibex") == {"m0", "m1", "m2", "m3"}
    assert lab.found("ibex", role=["r1", "carl"]) == {"m1"}
    listed = lab.list(tag=["Sea", "desert"]).memories
    assert {memory.id for memory in listed} == {"m0", "m3"}
    prefixed = lab.list(tag="hills", id_prefix="m1").memories
    assert [memory.id for memory in prefixed] == ["m1"]


def test_an_episode_stands_for_its_originals(lab: Lab) -> None:
    lab.put(*TRIO)
    consolidate(lab.store, promotion("e", *TRIO))

    tagged = lab.tag(id="e", tags=["zoo"])

    assert (tagged.memories, tagged.changed, tagged.tags) == (3, 3, ["zoo"])
    assert lab.memory("2").tags == ("zoo",)


def test_what_was_previewed_is_what_changes(lab: Lab) -> None:
    lab.put(memory("1", "ibex one"), memory("2", "ibex two"))
    preview = lab.tag(query="ibex", tags=["a"], dry_run=True)
    lab.put(memory("3", "ibex three"))

    tagged = lab.tag(query="ibex", tags=["a"], mark=preview.mark)

    assert [line.id for line in preview.lines] == ["1", "2"]
    assert (preview.memories, tagged.memories, tagged.changed) == (2, 2, 2)
    assert lab.memory("3").tags == ()


def test_a_selection_that_changed_otherwise_is_refused(lab: Lab) -> None:
    lab.put(*(memory(str(at), f"ibex {at}") for at in range(3)))
    lab.tag(id=["0", "1"], tags=["old"])
    preview = lab.forget(tag="old", dry_run=True)
    lab.tag(id="2", tags=["old"])  # known before, but not seen

    with pytest.raises(BatchChanged, match="nothing was done"):
        lab.forget(tag="old", mark=preview.mark)

    assert lab.store.memories.working_count() == 3


def test_pinning_by_a_filter_leaves_the_archive(lab: Lab) -> None:
    lab.put(memory("1", "ibex one"))
    lab.run_cycle(force=True)
    lab.put(memory("2", "ibex two"))

    pinned = lab.pin(query="ibex")

    assert (pinned.memories, pinned.archived) == (1, 1)
    assert lab.memory("2").pinned
    assert not lab.memory("1").pinned


@each_case(
    ("request_", "message"),
    [
        (Tag(tags=["a"]), "say which memories"),
        (Untag(id="1", session="s", tags=["a"]), "either an id or filters"),
        (Tag(id="1", tags=["a,b"]), "comma"),
        (Tag(query="ibex", tags=["a"], mark="x"), "not the mark"),
        (Tag(query="ibex", tags=["a"], after="1"), "after needs dry_run"),
    ],
)
def test_a_selection_that_says_too_little_or_too_much_is_refused(
    lab: Lab, request_: Tag | Untag, message: str
) -> None:
    lab.put(memory("1", "ibex"))

    with pytest.raises(InvalidRequest, match=message):
        lab.call(request_)


def test_a_memory_with_too_many_tags_is_named_with_what_was_done(lab: Lab) -> None:
    lab.put(*(memory(f"{at}", f"kettle {at}", session="s") for at in range(150)))
    lab.tag("120", tags=[f"tag {number}" for number in range(100)])

    with pytest.raises(PartlyDone, match=r"100 of 150 memories are tagged.*120 would"):
        lab.tag(session="s", tags=["further"])
