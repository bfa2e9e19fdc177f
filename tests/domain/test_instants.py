"""Arithmetic that saturates at the calendar's ends, and the rules that count days with it."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st
from support.cases import each_case
from support.fakes import memory

import mnemosyned
from mnemosyned.cli.output.terminal import local_time
from mnemosyned.conversation.injected import InjectedQuote
from mnemosyned.conversation.memory_items import MemoryItem, consolidate_memories
from mnemosyned.conversation.sections import Quoted
from mnemosyned.instants import day_at, in_zone, shift, shift_months
from mnemosyned.memory.periods import Level, Period, begin_of, key_of, open_from
from mnemosyned.memory.values import EndedStatement
from mnemosyned.models.summarizer import render_memory
from mnemosyned.summary.extract import ExtractiveSummarizer, compose_episode, extract
from mnemosyned.summary.grounding.check import GroundingSources
from mnemosyned.text.dates import formatting as dates
from mnemosyned.text.dates.mentions import announced_start
from mnemosyned.text.dates.questions import parse_times

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
ZONES = (
    UTC,
    timezone(timedelta(hours=23, minutes=59)),
    timezone(-timedelta(hours=23, minutes=59)),
    *map(
        ZoneInfo,
        ("America/New_York", "Pacific/Kiritimati", "Europe/Berlin", "Asia/Kathmandu"),
    ),
)
zones = st.sampled_from(ZONES)
instants = st.one_of(
    st.timedeltas(timedelta(), timedelta(days=800)).map(lambda since: FIRST + since),
    st.timedeltas(timedelta(), timedelta(days=800)).map(lambda until: LAST - until),
    st.sampled_from((FIRST, LAST)),
    st.datetimes(timezones=st.just(UTC)),
)
"""Mostly within two years of an end, in UTC."""
zoned_datetimes = st.builds(
    lambda naive, zone: naive.replace(tzinfo=zone),
    instants.map(lambda moment: moment.replace(tzinfo=None)),
    zones,
)
"""Local times in many zones, some of them outside the calendar in UTC."""
TIME_PHRASES = (
    "yesterday", "the day before yesterday", "today", "tomorrow", "tonight", "last night",
    "this morning", "yesterday evening", "last week", "next week", "last weekend", "next weekend",
    "last month", "next month", "last year", "next year", "last Friday", "on Monday",
    "next Sunday evening", "999 days ago", "99 weeks ago", "12 months ago", "999 years ago",
    "the last 999 days", "the past 999 years", "last summer", "winter 9999", "in December",
    "in December 9999", "0001-01-01T00:00:00Z", "9999-12-31", "31 December 9999", "1 January 0001",
    "0000-00-00", "in 2000", "gestern", "letztes Jahr", "vor drei Tagen", "hace 2 semanas",
    "in 999 days", "two weeks from now",
)  # fmt: skip
"""Times as questions and memories speak of them."""


ENDS = datetime.min, datetime.max  # noqa: DTZ901 no zone is meant
spoken = st.sampled_from(TIME_PHRASES)
LEVELS = (Level.DAY, Level.WEEK, Level.MONTH)


@pytest.fixture(params=["America/New_York", "Pacific/Kiritimati", "UTC"])
def local(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The process in a zone at either edge of the map."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# -------------------------------------------------------------- arithmetic


@given(zoned_datetimes, st.timedeltas())
def test_a_shift_ends_within_the_calendar(moment: datetime, by: timedelta) -> None:
    shifted = shift(moment, by)

    assert shifted.tzinfo == moment.tzinfo
    naive = shifted.replace(tzinfo=None)
    if naive not in ENDS:
        assert naive - moment.replace(tzinfo=None) == by
    else:
        assert (by > timedelta()) == (naive == ENDS[1]) or by == timedelta()


@given(zoned_datetimes, zones)
def test_an_instant_is_the_same_in_another_zone(moment: datetime, zone: tzinfo) -> None:
    there = in_zone(moment, zone)

    assert there.tzinfo == zone
    assert abs(there - moment) < timedelta(days=2)
    if timedelta(days=2) < moment - FIRST < LAST - FIRST - timedelta(days=2):
        assert there == moment


@given(zoned_datetimes, st.integers(-200_000, 200_000))
def test_months_are_counted_up_to_the_ends(moment: datetime, count: int) -> None:
    there = shift_months(moment, count)

    months = there.year * 12 + there.month - moment.year * 12 - moment.month
    assert months == count or there.replace(tzinfo=None) in ENDS
    assert (there > moment) == (count > 0) or there == moment


def test_a_day_beyond_the_calendar_has_no_name() -> None:
    assert day_at(date.min, -1) is None
    assert day_at(date.max, 1) is None
    assert day_at(date.min, 1) == date(1, 1, 2)


# ---------------------------------------------------------- questions, texts


@given(spoken, zoned_datetimes)
def test_a_question_at_either_end_of_time_is_read(text: str, asked: datetime) -> None:
    for span in parse_times(f"what was {text} in the log?", asked).spans:
        assert FIRST <= span.since < span.until <= LAST
        around = span.with_margin()
        assert FIRST <= around.since <= span.since
        assert span.until <= around.until <= LAST


@given(spoken, zoned_datetimes)
def test_times_at_the_ends_are_resolved_or_left_out(text: str, said: datetime) -> None:
    read = dates.annotate_relative_dates(f"we met {text}, I think", said)

    meant = re.findall(r" \((?:about )?(?:(?:\d+ )?[A-Z][a-z]+ )?(\d+)\)", read)
    assert all(1 <= int(year) <= 9999 for year in meant)
    assert re.sub(r" \([^)]*\)", "", read) == f"we met {text}, I think"


@each_case(("text", "said", "resolved"), [
    ("we met yesterday", FIRST, ""),
    ("we met last month", FIRST, ""),
    ("we met tomorrow", FIRST, " (2 January 1)"),
    ("we meet next year", LAST, ""),
])  # fmt: skip
def test_a_day_beyond_the_calendar_is_not_made_up(
    text: str, said: datetime, resolved: str
) -> None:
    assert dates.annotate_relative_dates(text, said) == text + resolved


@each_case(("text", "starts"), [
    ("From January the rent is 68.", "2027-01-01"),
    ("ab nächster Woche", "2026-11-16"),
    ("à partir du 15 décembre", "2026-12-15"),
    ("Per 1 januari zitten we bij VGZ.", "2027-01-01"),
    ("От поставщика: с января 68.", "2027-01-01"),
    ("The contract is valid from January 2028.", "2028-01-01"),
    ("Ab Oktober zahlen wir 68.", "2026-11-10"),
    ("since January we pay 68", "2026-11-10"),
    ("We moved from Hetzner to OVH.", "2026-11-10"),
    ("The data is from December to March.", "2026-11-10"),
])  # fmt: skip
def test_what_is_announced_begins_at_the_time_that_is_named(
    text: str, starts: str
) -> None:
    said = datetime(2026, 11, 10, 17).astimezone()

    assert f"{announced_start(text, said):%F}" == starts


@given(spoken, zoned_datetimes)
def test_at_the_ends_of_time_nothing_is_announced_before(
    text: str, said: datetime
) -> None:
    for each in (text, "January", "May 3"):
        assert said <= announced_start(f"from {each} on", said)


def test_a_question_asked_on_the_last_day_reaches_its_end() -> None:
    (span,) = parse_times("what happened today", LAST).spans

    midnight = LAST.replace(hour=0, minute=0, second=0, microsecond=0)
    assert (span.since, span.until) == (midnight, LAST)


# ----------------------------------------------------------------- summaries


@given(st.lists(st.tuples(spoken, instants), min_size=3, max_size=4), zones)
def test_memories_of_either_end_are_summarized_and_checked(
    told: list[tuple[str, datetime]], zone: tzinfo
) -> None:
    texts = [
        f"Ada signed the lease {text}. It is number {at}."
        for at, (text, _) in enumerate(told)
    ]
    memories = [
        memory(text, text, created_at=said)
        for text, (_, said) in zip(texts, told, strict=True)
    ]

    summary = ExtractiveSummarizer(zone=zone).summarize(memories)

    assert "Ada" in summary.text
    extracted = extract(memories, ratio=0.5, zone=zone)
    prose = compose_episode(memories, ["Ada agreed."], extract=extracted, zone=zone)
    assert "Ada agreed." in prose.text
    for one in memories:
        assert render_memory(one, zone=zone).startswith("<memory time=")
    assert GroundingSources(memories, zone=zone).numbers


@given(instants, st.sampled_from(LEVELS))
@example(FIRST, Level.WEEK)
@example(LAST, Level.WEEK)
@example(FIRST, Level.MONTH)
@example(LAST, Level.MONTH)
def test_each_instant_has_a_period_with_a_name(moment: datetime, level: Level) -> None:
    begins = begin_of(level, moment)
    ends = Period(level, begins, ()).ends

    assert begins <= moment < ends or (moment, ends) == (LAST, LAST)
    assert key_of(level, begins)
    assert open_from(level, moment) <= moment


@pytest.mark.parametrize(
    ("local", "days"),
    [("America/New_York", (9, 10)), ("Pacific/Kiritimati", (10, 11))],
    indirect=["local"],
)
@pytest.mark.usefixtures("local")
def test_the_day_of_a_line_is_that_of_the_local_clock(days: tuple[int, int]) -> None:
    evening = datetime(2026, 3, 10, 2, tzinfo=UTC)
    quote = InjectedQuote(id="a", text="tea", said=evening)
    ended = replace(quote, ended_at=evening + timedelta(days=1))

    assert quote.assemble(99) == f"- [2026-03-{days[0]:02}] tea"
    line = replace(quote, related=(ended,)).assemble(99)
    assert f"(until 2026-03-{days[1]}:" in line
    assert f"[2026-03-{days[0]:02}]" in Quoted(text="tea", said=evening).render()
    assert open_from(Level.DAY, evening).day == days[0]
    gone = EndedStatement(
        at=evening, by="b", reason="gone", sentence="tea", successor="no tea"
    )
    assert gone.note.startswith(f"until {days[0]} March 2026")


@pytest.mark.usefixtures("local")
def test_either_end_is_shown_in_the_local_zone() -> None:
    assert local_time(FIRST).startswith("0001-01-01")
    assert local_time(LAST).startswith("9999-12-31")


@pytest.mark.usefixtures("local")
def test_items_without_a_zone_at_either_end_are_consolidated() -> None:
    items = [
        MemoryItem(content=f"note {at}", created_at=moment)
        for moment in ENDS  # local time is meant
        for at in range(3)
    ]

    assert consolidate_memories(items).archived == ()


# ------------------------------------------------------------ nowhere else


CONVERTING = re.compile(r"\.(?:astimezone|strftime)\b")


def test_no_other_module_converts_zones_by_itself() -> None:
    package = Path(mnemosyned.__file__).parent
    converting = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if CONVERTING.search(path.read_text())
    }

    # What is handed in from outside is refused where UTC has no such instant.
    assert converting == {"instants.py", "verbs/request.py", "verbs/times.py"}
