"""Both ends of the calendar in many zones, and texts that count from there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

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
