"""Which texts speak of a time to come, whatever words say so."""

from datetime import UTC, datetime, timedelta

from support.cases import each_case

from mnemosyned.text.dates.mentions import MentionReader, mention_terms
from mnemosyned.text.dates.spans import TimeSpan

SAID = datetime(2026, 10, 28, 9, tzinfo=UTC)  # a Wednesday
FRIDAY = TimeSpan(datetime(2026, 11, 6, tzinfo=UTC), datetime(2026, 11, 7, tzinfo=UTC))
NEXT_WEEK = TimeSpan(
    datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)
)


@each_case("text", [
    "Dinner with Ravi, Fri 6 November 19:30", "Abfahrt am 6. November um 16:04",
    "rendez-vous le 6 novembre", "due 2026-11-06", "am 6.11.2026 kommt der Elektriker",
    "on the sixth of November we walk", "see you on the 6th", "I come next Friday",
])  # fmt: skip
def test_a_date_to_come_is_read_from_when_it_was_said(text: str) -> None:
    assert MentionReader([FRIDAY]).mentions_any_time(text, SAID)


@each_case(
    ("text", "days_before"),
    [
        ("the technician comes tomorrow", 1),
        ("übermorgen ist Training", 2),
        ("the party is on Friday", 4),
    ],
)
def test_a_day_is_counted_from_when_it_was_said(text: str, days_before: int) -> None:
    said = FRIDAY.since - timedelta(days=days_before)

    assert MentionReader([FRIDAY]).mentions_any_time(text, said)
    assert not MentionReader([FRIDAY]).mentions_any_time(
        text, said - timedelta(days=30)
    )


@each_case("text", [
    "Dinner on 6 November 2025", "it was on 5 November", "sometime in November",
    "version 6.11 is out", "the parts arrive next week", "",
])  # fmt: skip
def test_another_or_a_longer_time_is_not_that_day(text: str) -> None:
    assert not MentionReader([FRIDAY]).mentions_any_time(text, SAID)


def test_a_week_has_the_days_of_it_and_what_is_called_next_week() -> None:
    assert MentionReader([NEXT_WEEK]).mentions_any_time(
        "the parts arrive next week", SAID
    )
    assert MentionReader([NEXT_WEEK]).mentions_any_time(
        "on-call 2 to 8 November: Ravi", SAID
    )


def test_terms_are_few_however_long_the_time_is() -> None:
    year = TimeSpan(datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))

    terms = mention_terms(year)

    assert len(terms.dates) + len(terms.days) + len(terms.months) < 100
