"""Times as callers give them: in JSON, in a URL, as objects of Python, through every border."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
import tzlocal
from support.cases import each_case

from mnemosyned.daemon.openapi import openapi
from mnemosyned.errors import InvalidRequest, InvalidTime, MnemosynedError
from mnemosyned.service import reading
from mnemosyned.verbs import times
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.request import parse, parse_text, validate
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.times import GivenTime, read_given, read_period

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 1, 30, tzinfo=BERLIN)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "local_now", lambda: NOW)


def here(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=BERLIN)).astimezone(UTC)


GIVEN: list[tuple[GivenTime, str]] = [
    ("yesterday", "2026-11-22"),
    ("2026-03-09T14:30:00Z", "2026-03-09T15:30"),
    ("2026-03-09T14:30:00", "2026-03-09T14:30"),
    (datetime(2026, 3, 9, 14, 30), "2026-03-09T14:30"),  # noqa: DTZ001
    (datetime(2026, 3, 9, 14, 30, tzinfo=UTC), "2026-03-09T15:30"),
    (datetime(2026, 10, 25, 2, 30), "2026-10-25T02:30"),  # noqa: DTZ001
    (datetime(2026, 10, 25, 2, 30, fold=1), "2026-10-25T01:30Z"),  # noqa: DTZ001 the second reading
    (date(2026, 3, 9), "2026-03-09"),
    (timedelta(days=7), "2026-11-16T01:30"),
]


@each_case(("given", "moment"), GIVEN)
def test_python_may_give_dates_durations_or_words(
    given: GivenTime, moment: str
) -> None:
    assert validate(Recall("x", since=given)).since == here(moment)


@each_case(
    ("since", "until", "end"),
    [
        ("last week", "yesterday", "2026-11-23"),
        ("1 Nov", "30 Nov", "2026-12-01"),
        ("1 Dec", "31 Dec", "2026-01-01"),
        ("last monday", "friday", "2026-11-21"),
        ("1 Nov", "5 Nov", "2026-11-06"),
        ("2026-11-01", "last week", "2026-11-23"),
        ("2026", "18 Nov", "2026-11-19"),
        ("2026", "2026-11-18", "2026-11-19"),
    ],
)
def test_an_end_includes_its_day_and_is_the_next_after_the_beginning(
    since: str, until: str, end: str
) -> None:
    fields = {"query": "x", "since": since, "until": until}
    beginnings = {"2026": "2026-01-01", "last week": "2026-11-16"}

    for request in (
        parse_text(Recall, fields),
        parse(Recall, json.dumps(fields).encode()),
    ):
        assert isinstance(request, Recall)
        assert request.until == here(end)
        if since in beginnings:
            assert request.since == here(beginnings[since])


def test_a_date_of_python_includes_its_day_as_an_end() -> None:
    request = validate(Forget(until=date(2026, 11, 18), dry_run=True))

    assert request.until == here("2026-11-19")


def test_a_time_to_come_counts_forward() -> None:
    words = parse(Remember, b'{"content": "x", "valid_until": "7d"}')
    duration = validate(Remember("x", valid_until=timedelta(days=7)))

    assert isinstance(words, Remember)
    assert words.valid_until == duration.valid_until == here("2026-11-30T01:30")


def test_times_are_read_where_and_when_the_question_was_asked() -> None:
    asked_at = "2026-03-09T00:30:00+09:00"
    fields = {"query": "x", "since": "yesterday", "asked_at": asked_at}

    request = parse(Recall, json.dumps(fields).encode())

    assert isinstance(request, Recall)
    assert request.since == datetime(2026, 3, 7, 15, tzinfo=UTC)


def test_each_memory_of_a_batch_may_have_its_time_in_words() -> None:
    batch = RememberMany([Remember("a", created_at="18 Nov"), Remember("b")])

    times_of = [memory.created_at for memory in validate(batch).memories]
    assert times_of == [here("2026-11-18"), None]


@each_case(
    ("fields", "message"),
    [
        ({"created_at": "soon"}, 'created_at: "soon" is not a valid time; try yesterday, 7d or 2026-03-09'),
        ({"valid_until": "never\x1b"}, 'valid_until: "never\\x1b" is not a valid time; try tomorrow, 7d or '),
        ({"valid_until": "yesterday"}, "valid_until is over before the memory begins; try tomorrow"),
        ({"created_at": "03/04/2026"}, 'created_at: "03/04/2026" can be read as 2026-03-04 or 2026-04-03; '),
    ],
)  # fmt: skip
def test_a_wrong_time_comes_with_its_field(
    fields: dict[str, str], message: str
) -> None:
    passed = {"created_at": "2025-05-04", "valid_until": "2025-05-05"}
    memories = [{"content": "x", **passed}, {"content": "x", **fields}]

    with pytest.raises(InvalidTime) as caught:
        parse(RememberMany, json.dumps({"memories": memories}).encode())

    assert caught.value.message.startswith(f"memories[1].{message}")
    assert caught.value.field == f"memories[1].{next(iter(fields))}"


def test_other_mistakes_next_to_a_time_in_words_are_told_too() -> None:
    with pytest.raises(InvalidRequest, match=r"^limit must be at least 1$"):
        parse(Recall, b'{"query": "x", "since": "yesterday", "limit": 0}')


@each_case(
    ("after", "code"),
    [
        (b'"\xe9"}', "invalid_text"),
        (rb'"\ud83d"}', "invalid_text"),
        (rb'"a\\\uDE00 b \ud83d\ude00"}', "invalid_text"),
        (rb'"\\ud83d \ud83d\ude00', "malformed_json"),
        (b"[" * 100_000, "malformed_json"),
        (b"", "malformed_json"),
    ],
)
def test_a_body_that_breaks_after_a_time_is_refused(after: bytes, code: str) -> None:
    with pytest.raises(MnemosynedError) as caught:
        parse(Remember, b'{"created_at": "yesterday", "content": ' + after)

    assert caught.value.code == code


@each_case("given", [timedelta.max, timedelta.min, datetime.min])  # noqa: DTZ901
def test_a_time_beyond_the_calendar_is_refused(given: GivenTime) -> None:
    with pytest.raises(InvalidTime, match="outside the calendar"):
        validate(Recall("x", since=given))


def test_a_standard_time_is_decoded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError("a time by RFC 3339 was read as words")

    monkeypatch.setattr(times, "read_request_times", unexpected)
    memories = [Remember("x", created_at=NOW, valid_until=NOW)] * 3

    validate(RememberMany(memories))
    parse(RememberMany, msgspec.json.encode(RememberMany(memories)))


def test_a_period_of_nonsense_names_its_argument() -> None:
    with pytest.raises(InvalidTime, match='when: "soon" is not a valid time'):
        read_period("soon", "day", NOW)


def test_the_description_shows_that_a_time_may_be_in_words() -> None:
    description = openapi()
    parameters = description["paths"]["/v1/recall"]["get"]["parameters"]
    (parameter,) = (each for each in parameters if each["name"] == "since")
    field = description["components"]["schemas"]["Recall"]["properties"]["since"]

    for schema in (field, parameter["schema"]):
        standard, words, _ = schema["anyOf"]
        assert standard == {"type": "string", "format": "date-time"}
        for example in words["examples"]:
            assert read_given(example, field="since", now=NOW).tzinfo


def test_a_question_knows_the_zone_of_its_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "local_zone", lambda: BERLIN)

    query = reading.make_query(Recall("what happened in May 2026?"), now=NOW)

    (span,) = query.spans
    assert (span.since, span.until) == (here("2026-05-01"), here("2026-06-01"))


@pytest.mark.parametrize("zone", ["CET-1CEST", "Nowhere/Here"])
def test_a_nameless_zone_is_what_it_is_at_present(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        now = datetime.now(UTC).astimezone(times.local_zone())
        expected = datetime.now(UTC).astimezone().utcoffset()
    times.local_zone()

    assert now.utcoffset() == expected


def test_a_machine_that_travels_is_in_its_new_zone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "localtime"
    monkeypatch.setattr(times, "ZONE_FILE", str(file))
    monkeypatch.setattr(tzlocal, "reload_localzone", lambda: ZoneInfo(file.read_text()))
    zones = []
    for name in ("Europe/Berlin", "Asia/Tokyo"):
        (other := tmp_path / "other").write_text(name)
        other.rename(file)
        zones += [times.local_zone(), times.local_zone()]

    assert list(map(str, zones)) == [*2 * ["Europe/Berlin"], *2 * ["Asia/Tokyo"]]
