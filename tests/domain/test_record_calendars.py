"""ICS, labeled events and flat rows of calendars."""

import pytest
from support.records import (
    VIENNA,
    record_lines,
    record_samples,
    record_texts,
    remembered,
)

from mnemosyned.summary.records.summarize import summarize_records


@pytest.mark.parametrize(("content", "expected"), record_samples("calendars"))
def test_an_event_has_title_place_and_time(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


def test_times_are_shown_in_the_zone() -> None:
    event = "BEGIN:VEVENT\nSUMMARY:Call\nDTSTART:20260704T233000Z\nEND:VEVENT"
    assert record_texts(event) == ["Call, Sun 5 July 2026, 01:30."]


def test_events_are_worth_more_than_passed_runs() -> None:
    (event,) = record_lines(record_samples("calendars")[0][0])
    (run,) = record_lines("pytest -q: 18 passed in 4.0 s")
    assert event.worth > run.worth


def test_a_broken_calendar_stays_prose() -> None:
    texts = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT\nthis is no property\nEND:VEVENT",
        "BEGIN:VEVENT\nDTSTART:20269999\nEND:VEVENT",
    ]
    memories = remembered(*texts)
    assert len(summarize_records(memories, zone=VIENNA).prose) == len(texts)


def test_lines_of_ics_may_end_as_its_standard_says() -> None:
    content = "\n".join(record_samples("calendars")[0][0].splitlines())
    assert record_texts(content.replace("\n", "\r\n")) == record_texts(content)
