"""What people type for a time, read on Monday, 23 November 2026, at 01:30 in Berlin."""

import re
import time as clock
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st
from support.cases import each_case, read_cases

from mnemosyned.text.dates.questions import TimeSpan
from mnemosyned.text.dates.typed import (
    CHARS_MAX,
    AmbiguousDate,
    period_around,
    read_time,
)
from mnemosyned.text.languages.tables import (
    LANGUAGES,
    MONTHS,
    UNITS,
    WEEKDAYS,
)

CASES = read_cases("typed_times")
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 23, 1, 30, tzinfo=BERLIN)
LOOKBEHIND = re.compile(r"\(\?<![^)]*\)")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Cairo"]


def here(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    """A time as the clock of a zone shows it."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def ends(
    text: str, now: datetime = NOW, *, ahead: bool = False
) -> tuple[datetime, datetime]:
    meant = read_time(text, now, ahead=ahead)
    assert meant is not None, f"{text} is not read"
    return meant.since, meant.until


@each_case(("text", "since", "until"), CASES["stretches"])
def test_a_day_or_longer_is_read_whole(text: str, since: str, until: str) -> None:
    assert ends(text) == (here(since), here(until))


@each_case(("text", "english"), [
    ("la settimana scorsa", "last week"), ("l'année dernière", "last year"), ("na próxima semana", "next week"),
    ("w zeszłym tygodniu", "last week"), ("на прошлой неделе", "last week"), ("forra veckan", "last week"),
    ("no ano passado", "last year"), ("segunda-feira", "monday"), ("von mo bis mi", "from monday to wednesday"),
    ("el lunes de la semana pasada", "monday of last week"), ("vorletzte Woche", "week before last"),
])  # fmt: skip
def test_a_period_is_read_with_or_without_its_article(text: str, english: str) -> None:
    assert ends(text) == ends(english)


@each_case(("text", "moment"), CASES["instants"])
def test_a_clock_or_a_duration_is_an_instant(text: str, moment: str) -> None:
    assert ends(text) == (here(moment), here(moment))


@each_case(("text", "since"), [
    ("friday", "2026-11-27"),
    ("monday", "2026-11-23"),
    ("18 Nov", "2027-11-18"),
    ("29 feb", "2028-02-29"),
    ("7d", "2026-11-30T01:30"),
    ("01:00", "2026-11-24T01:00"),
    ("monday 01:00", "2026-11-30T01:00"),
    ("2 days ago", "2026-11-21T01:30"),
    ("2026-11-18", "2026-11-18"),
])  # fmt: skip
def test_a_time_to_come_is_the_next_of_its_kind(text: str, since: str) -> None:
    assert ends(text, ahead=True)[0] == here(since)


@each_case("text", [
    "", " ", "soon", "yesterday yesterday", "30 feb", "31.4.2026", "2026-13", "2026-02-29",
    "25:00", "10:60", "13pm", "0.5 months", "0.5", "0.5.", "0 May", "0 May 2025", "00.11.2026",
    "18.11", "18.0.2026", "2026-00-10", "in 2 days ago", "last week 10:00", "Monday 2026-11-18",
    "0001-01-01", "999999y", "1700000000", "7", "7 dogs", "what happened yesterday",
    "2026-11-18 10:00 somewhere", "x" * (CHARS_MAX + 1), "yesterday" + " " * 10_000,
])  # fmt: skip
def test_nonsense_is_no_time(text: str) -> None:
    assert read_time(text, NOW) is None


@each_case("text", ["03/04/2026", "3/4/26", "03-04-2026"])
def test_a_date_with_two_readings_names_both(text: str) -> None:
    with pytest.raises(AmbiguousDate) as caught:
        read_time(text, NOW)

    assert caught.value.readings == ("2026-03-04", "2026-04-03")


# ------------------------------------------------------- where the clock changes


@each_case(("now", "text", "since", "hours"), [
    ("2026-03-30T12:00", "yesterday", "2026-03-29", 23),
    ("2026-10-26T12:00", "yesterday", "2026-10-25", 25),
    ("2026-11-23", "2026-03-29 02:30", "2026-03-29T03:30", 0),  # the clock leaps over it
    ("2026-11-23", "2026-10-25 02:30", "2026-10-25T02:30", 1),  # the clock shows it twice
    ("2026-10-25T12:00", "1d", "2026-10-24T12:00", 0),
    ("2026-10-25T12:00", "24h", "2026-10-24T13:00", 0),
])  # fmt: skip
def test_where_the_clock_changes_a_time_is_as_long_as_the_clock_makes_it(
    now: str, text: str, since: str, hours: int
) -> None:
    begin, end = ends(text, here(now).astimezone(BERLIN))

    assert (begin, end - begin) == (here(since), timedelta(hours=hours))


def test_a_duration_in_the_hour_that_comes_twice_counts_from_the_right_one() -> None:
    now = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)

    assert ends("30m", now)[0] == now.astimezone(UTC) - timedelta(minutes=30)


def test_a_day_begins_where_the_asker_is() -> None:
    now = datetime(2026, 11, 22, 20, tzinfo=NEW_YORK)

    assert ends("today", now)[0] == here("2026-11-22", NEW_YORK)
    assert ends("today", now.astimezone(BERLIN))[0] == here("2026-11-23")


# ------------------------------------------------------------------- languages


@each_case("name", sorted(MONTHS))
def test_every_language_s_months_are_read(name: str) -> None:
    days = [here(f"2025-{MONTHS[name]:02}-{day}") for day in (18, 19)]

    assert ends(f"18 {name} 2025") == tuple(days)


@each_case("name", sorted(WEEKDAYS))
def test_every_language_s_weekdays_are_read(name: str) -> None:
    since, _ = ends(name)

    assert since.astimezone(BERLIN).weekday() == WEEKDAYS[name]
    assert timedelta() <= NOW - since < timedelta(days=8)


GRAMMARS = [language.times for language in LANGUAGES if language.times]


@given(st.data())
def test_each_phrase_means_what_it_means_in_english(data: st.DataObject) -> None:
    grammar = data.draw(st.sampled_from(GRAMMARS))
    phrase, pattern = data.draw(st.sampled_from(sorted(grammar.phrases.items())))
    words = data.draw(st.from_regex(LOOKBEHIND.sub("", pattern), fullmatch=True))
    step = data.draw(st.sampled_from(["last", "this", "next"]))
    before = getattr(grammar, f"{step}_before")
    period = data.draw(st.sampled_from(["week", "month", "year"]))
    name = data.draw(st.from_regex(grammar.periods[period], fullmatch=True))

    assert ends(words) == ends(phrase)
    if before:
        before = data.draw(st.from_regex(before, fullmatch=True))
        assert ends(before + name) == ends(f"{step} {period}")


@given(st.data())
def test_every_unit_of_every_language_is_counted(data: st.DataObject) -> None:
    grammar = data.draw(st.sampled_from(GRAMMARS))
    unit = data.draw(st.sampled_from(UNITS))
    name = data.draw(st.from_regex(grammar.units[unit], fullmatch=True))
    before = data.draw(st.from_regex(grammar.ahead_before, fullmatch=True))
    assert before

    assert ends(f"3 {name}") == ends(f"3 {unit}s")
    assert ends(f"{before} 3 {name}") == ends(f"in 3 {unit}s")
    if grammar.ago_before:
        assert ends(f"{grammar.ago_before} 3 {name}") == ends(f"3 {unit}s ago")


# ------------------------------------------------------------------ properties


@given(
    st.datetimes(datetime(1900, 1, 2), datetime(2900, 1, 1)),  # noqa: DTZ001
    st.sampled_from(ZONES),
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%B %d, %Y %H:%M:%S"]),
)
def test_a_written_time_is_read_back(moment: datetime, zone: str, form: str) -> None:
    now = NOW.astimezone(ZoneInfo(zone))
    zoned = moment.replace(microsecond=0, tzinfo=now.tzinfo)

    since, _ = ends(zoned.strftime(form), now)

    assert since == zoned.astimezone(UTC)


@given(st.datetimes(datetime(1900, 1, 2), datetime(2900, 1, 1)))  # noqa: DTZ001
def test_days_of_the_calendar_join_without_a_gap(moment: datetime) -> None:
    day, following = moment.date(), moment.date() + timedelta(days=1)

    assert ends(day.isoformat())[1] == ends(following.isoformat())[0]


PIECES = st.sampled_from(
    "1 2 99 d h min a an few last next this on the of in ago vor il y a monday nov 18. : - / + t z "
    "10:00 am pm 2026 2026-11-18 yesterday gestern hier , . half 0 999999 weeks and".split()
)


@given(st.one_of(st.text(max_size=CHARS_MAX), st.lists(PIECES).map(" ".join)))
@example("1d" * 50)
@example("a " * 50)
@example("1 " * 50)
@example("la " * 33)
@example("1d, and " * 12)
def test_any_text_is_read_or_refused_at_once(text: str) -> None:
    began = clock.process_time()
    meant = None
    with suppress(AmbiguousDate):
        meant = read_time(text, NOW)
    took_s = clock.process_time() - began

    assert meant is None or meant.since <= meant.until
    assert took_s < 1


# --------------------------------------------------------------------- periods


@each_case(("text", "unit", "since", "until"), [
    ("yesterday", "day", "2026-11-22", "2026-11-23"),
    ("3 days ago", "day", "2026-11-20", "2026-11-21"),
    ("last week", "week", "2026-11-16", "2026-11-23"),
    ("18 Nov", "week", "2026-11-16", "2026-11-23"),
    ("2026-11-18", "month", "2026-11-01", "2026-12-01"),
    ("december 2026", "month", "2026-12-01", "2027-01-01"),
    ("2026-03-29", "day", "2026-03-29", "2026-03-30"),
])  # fmt: skip
def test_a_time_begins_in_its_period(
    text: str, unit: str, since: str, until: str
) -> None:
    span = period_around(text, unit, NOW)  # type: ignore[arg-type]

    assert span == TimeSpan(here(since), here(until))
    assert period_around("soon", unit, NOW) is None  # type: ignore[arg-type]
