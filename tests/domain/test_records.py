"""Summaries of records: what each kind becomes, and the prose that no rule may take."""

import json
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

from hypothesis import given, strategies as st
from support.cases import each_case
from support.datasets.mixed_year import mixed_year
from support.records import (
    VIENNA,
    assert_readable,
    prose_samples,
    record_lines,
    record_samples,
    record_texts,
    remembered,
)

from mnemosyned.summary.records.summarize import LINES_MAX, summarize_records

KINDS = (
    "calendars", "commits", "json", "logs", "mails", "messages", "runs", "shells", "tables",
    "traces",
)  # fmt: skip
RECORDS = [content for kind in KINDS for content, _ in record_samples(kind)]
PIECES = [*RECORDS, *prose_samples()]


@each_case(
    ("content", "expected"),
    [sample for kind in KINDS for sample in record_samples(kind)],
)
def test_a_record_reads_as_a_sentence(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


@each_case(
    "text",
    [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT\nthis is no property\nEND:VEVENT",
        "BEGIN:VEVENT\nDTSTART:20269999\nEND:VEVENT",
        '{"a": 1} is what I get',
        "{",
        "[]",
        "{}",
        "[1, 2",
        '{"a": ' * 5_000,
    ],
)
def test_a_broken_record_stays_prose(text: str) -> None:
    memories = remembered(text)
    assert summarize_records(memories, zone=VIENNA).prose == tuple(memories)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_each_memory_is_prose_or_stood_for_by_a_line(contents: list[str]) -> None:
    memories = remembered(*contents)
    summary = summarize_records(memories, zone=VIENNA)
    kept = {id(memory) for memory in summary.prose}
    taken = [n for n, memory in enumerate(memories) if id(memory) not in kept]
    assert {line.position for line in summary.lines} <= set(taken)
    assert bool(summary.lines) == bool(taken)
    assert sum(line.memories for line in summary.lines) >= len(taken)
    positions = [line.position for line in summary.lines]
    assert positions == sorted(positions)
    for line in summary.lines:
        assert_readable(line)


@given(st.sampled_from(RECORDS), st.data())
def test_a_record_cut_anywhere_does_no_harm(record: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(record)))
    stop = data.draw(st.integers(start, len(record)))
    summary = summarize_records(remembered(record[start:stop]), zone=VIENNA)
    for line in summary.lines:
        assert line.text == " ".join(line.text.split())


@given(st.text(alphabet="{}[]:,.|$-= \n\taAbB019é⏎'\"(", max_size=80))
def test_any_text_is_taken_or_left(text: str) -> None:
    summary = summarize_records(remembered(text), zone=VIENNA)
    assert bool(summary.lines) != bool(summary.prose)


def test_lines_are_bounded_and_those_left_out_are_counted() -> None:
    events = [
        json.dumps({"title": f"Event {n}", "start": "2026-03-10"}) for n in range(1_000)
    ]
    lines = summarize_records(remembered(*events), zone=VIENNA).lines
    assert len(lines) == LINES_MAX
    assert sum(line.memories for line in lines) == 1_000
    left_over = next(line for line in lines if line.text.startswith("There are"))
    assert left_over.text == "There are 601 more JSON records."
    assert "999" not in left_over.text


def test_a_record_with_prose_around_it_is_prose() -> None:
    before = "Can you tell me what this means for us and how I can fix it?"
    after = "I have no idea what to make of it, and it worked until last week."
    for record in RECORDS:
        for text in (f"{before}\n\n{record}", f"{before}\n\n{record}\n\n{after}"):
            memories = remembered(text)
            assert summarize_records(memories, zone=VIENNA).prose == tuple(memories), (
                text
            )


def test_the_same_memories_give_the_same_lines() -> None:
    memories = remembered(*RECORDS)
    first = summarize_records(memories, zone=VIENNA)
    assert summarize_records(memories, zone=VIENNA) == first


def test_no_memories_give_no_lines() -> None:
    summary = summarize_records([], zone=VIENNA)
    assert (summary.lines, summary.prose) == ((), ())


# ------------------------------------------------------------------ prose


PROSE = prose_samples()


@each_case("text", PROSE)
def test_prose_is_left_alone(text: str) -> None:
    memories = remembered(text)
    summary = summarize_records(memories, zone=UTC)
    assert summary.lines == ()
    assert summary.prose == tuple(memories)


def test_prose_keeps_its_order_and_its_objects() -> None:
    memories = remembered(*PROSE[:10], '{"title": "Dentist", "start": "2026-03-10"}')
    summary = summarize_records(memories, zone=UTC)
    assert [id(memory) for memory in summary.prose] == [id(m) for m in memories[:10]]
    assert [line.position for line in summary.lines] == [10]


def test_a_year_of_notes_and_chats_is_prose() -> None:
    memories = remembered(*(record.content for record in mixed_year().records))
    assert len(summarize_records(memories, zone=UTC).prose) == len(memories)


def test_a_year_written_by_hand_is_prose() -> None:
    path = Path(__file__).parents[1] / "support" / "datasets" / "written_year.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and line[0] not in "#=?"]
    assert len(texts) > 100
    memories = remembered(*texts)
    assert len(summarize_records(memories, zone=UTC).prose) == len(memories)


def test_of_the_week_only_runs_and_commits_are_records() -> None:
    path = Path(__file__).parents[1] / "demo" / "week.jsonl"
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    summary = summarize_records(
        remembered(*(entry["content"] for entry in entries)), zone=UTC
    )
    taken = [entries[line.position]["source"] for line in summary.lines]
    assert set(taken) == {"shell", "ci"}
    assert len(summary.prose) == len(entries) - sum(
        line.memories for line in summary.lines
    )


# ------------------------------------------------------------- calendars


def test_times_are_shown_in_the_zone() -> None:
    event = "BEGIN:VEVENT\nSUMMARY:Call\nDTSTART:20260704T233000Z\nEND:VEVENT"
    assert record_texts(event) == ["Call, Sun 5 July 2026, 01:30."]


def test_events_are_worth_more_than_passed_runs() -> None:
    (event,) = record_lines(record_samples("calendars")[0][0])
    (run,) = record_lines("pytest -q: 18 passed in 4.0 s")
    assert event.worth > run.worth


def test_lines_of_ics_may_end_as_its_standard_says() -> None:
    content = "\n".join(record_samples("calendars")[0][0].splitlines())
    assert record_texts(content.replace("\n", "\r\n")) == record_texts(content)


# --------------------------------------------------------------- commits


def test_commits_of_many_memories_are_joined_by_component() -> None:
    lines = record_lines(
        "a1b2c3d fix(importer): skip empty rows",
        "b2c3d4e docs: explain the import format",
        "c3d4e5f feat(importer): read semicolons",
    )
    assert [(line.text, line.position, line.memories) for line in lines] == [
        ("2 commits to importer: skip empty rows; read semicolons.", 0, 2),
        ("Commit (documentation): explain the import format.", 1, 1),
    ]


def test_a_long_log_stays_within_lines_of_a_few_subjects() -> None:
    log = "\n".join(f"{n:07x}a1 fix(store): close file {n}" for n in range(100))
    texts = record_texts(log)
    assert len(texts) == 25
    assert all(text.startswith("4 commits to store: ") for text in texts)


def test_hashes_in_a_subject_are_left_out() -> None:
    lines = record_lines("1f2e3d4 Revert 9c8b7a6f5e4d, it broke the importer")
    assert lines[0].text == "Commit: Revert, it broke the importer."


def test_a_breaking_change_is_worth_more() -> None:
    plain, breaking = record_lines(
        "a1b2c3d fix(store): close files", "b2c3d4e feat(api)!: drop v1"
    )
    assert breaking.worth > plain.worth


def test_the_body_and_the_paths_are_index_terms() -> None:
    (line,) = record_lines(
        "commit 3f2a9c81d0e7b6a54f3e2d1c0b9a887766554433\nAuthor: Ben <b@x.example>\n"
        "Date:   Tue Mar 10 09:12:44 2026 +0100\n\n    Round amounts\n\n    The accountant insists.\n"
    )
    assert line.text == "Commit by Ben on Tue 10 March 2026: Round amounts."
    assert "accountant" in line.index_terms


# ------------------------------------------------------------------ json


def test_equal_objects_are_counted() -> None:
    (line,) = record_lines(*['{"title": "Battery low", "status": "15 percent"}'] * 6)
    assert line.text == "Battery low (status 15 percent) (6 times)."
    assert line.memories == 6


def test_numbers_stay_as_they_are_written() -> None:
    (text,) = record_texts('{"rate": 0.10, "big": 12345678901234567890, "none": null}')
    assert text == "Config with rate 0.10 and big 12345678901234567890."


def test_a_long_list_says_how_much_is_left_out() -> None:
    items = ", ".join(f'{{"title": "Item {n}", "price": {n}}}' for n in range(40))
    texts = record_texts(f"[{items}]")
    assert len(texts) == 25
    assert texts[-1] == "The list has 16 more records."


def test_json_lines_with_a_level_are_a_log() -> None:
    (text, _) = record_texts(
        '{"level":"info","time":"2026-03-10T02:10:00Z","msg":"start"}\n'
        '{"level":"error","time":"2026-03-10T02:10:05Z","msg":"stop"}'
    )
    assert text.startswith("2 log lines")


# ------------------------------------------------------------------ logs


def test_lines_of_many_memories_are_counted_together() -> None:
    info = [f"2026-03-10 02:00:{n:02} INFO job {n} done" for n in range(40)]
    errors = [
        f"2026-03-10 02:01:{n:02} ERROR job {n} failed: timeout" for n in range(3)
    ]
    overview, error = record_lines(*info, *errors)
    assert overview.text == (
        "43 log lines, Tue 10 March 2026, 02:00 to 02:01 (40 info, 3 errors): "
        "job 0 done (and 39 more like it)."
    )
    assert error.text == (
        "Error, Tue 10 March 2026, 02:01: job 0 failed: timeout (and 2 more like it)."
    )
    assert (error.position, error.memories) == (40, 3)
    assert error.worth > overview.worth


def test_many_kinds_of_errors_are_bounded() -> None:
    words = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    texts = record_texts(
        *(f"2026-03-10 02:00:01 ERROR cannot open {word}" for word in words)
    )
    assert len(texts) == 8
    assert texts[1].startswith("Error, ") or texts[0].startswith("100 log lines")
    assert "The log has 94 more kinds of errors and warnings, in 94 lines." in texts


# ----------------------------------------------------------------- mails


def test_what_a_long_mail_says_later_is_found_by_index_terms() -> None:
    filler = "The first part is about the harbor and its many berths. " * 8
    mail = f"From: Ben\nSubject: News\n\n{filler}\nThe marmalade contest is in June."
    (line,) = record_lines(mail)
    assert len(line.text) < 420
    assert "marmalade" in line.index_terms or "marmalade" in line.text


def test_a_mail_without_sender_stays_prose() -> None:
    memories = remembered("Subject: to change\nDate: tomorrow\n\nI will write again.")
    assert summarize_records(memories, zone=VIENNA).lines == ()


def test_a_mail_that_the_user_kept_names_only_the_parties_it_has() -> None:
    (memory,) = remembered(
        "From: Ben\nSubject: Berth D07\n\nThe map looks great to me."
    )
    summary = summarize_records([replace(memory, role="user")], zone=VIENNA)
    assert summary.lines[0].text == (
        "Mail from Ben, “Berth D07”: The map looks great to me."
    )


# -------------------------------------------------------------- messages


def test_a_group_of_several_days_says_the_day() -> None:
    memories = remembered(*["SMS\nFrom: Anna\nText: The train is late again."] * 2)
    later = replace(memories[1], created_at=memories[1].created_at + timedelta(days=1))
    lines = summarize_records([memories[0], later], zone=VIENNA).lines
    assert [line.text for line in lines] == [
        "SMS from Anna, Tue 10 March 2026, 09:00: The train is late again.",
        "SMS from Anna, Wed 11 March 2026, 09:01: The train is late again.",
    ]


def test_a_long_message_is_cut_between_sentences() -> None:
    body = "The first sentence says where we meet. " * 12
    (line,) = record_lines(f"SMS\nFrom: Anna\nText: {body}Bring the compass.")
    assert line.text.endswith("where we meet.")
    assert len(line.text) < 300
    assert "compass" in line.index_terms


def test_a_long_chat_says_how_much_is_left_out() -> None:
    chat = "\n".join(f"[14:{n % 60:02}] Anna: message number {n}" for n in range(80))
    texts = record_texts(chat)
    assert texts[-1] == "Chat: The chat goes on for 20 more lines."


# ------------------------------------------------------------------ runs


def test_runs_of_a_suite_are_one_line_with_the_failures() -> None:
    passed = [
        f"Run {n} on main passed: {n} passed, 3 skipped in 3 min 25 s."
        for n in range(410, 420)
    ]
    failed = [
        "Run 500 on main failed: test_overlap, AssertionError: expected [].",
        "Run 501 on main failed: disk quota exceeded on runner 7",
    ]
    (line,) = record_lines(*passed, *failed)
    assert line.text == (
        "12 test runs, 2 failed: Run 500 on main (test_overlap, AssertionError: expected []); "
        "Run 501 on main (disk quota exceeded on runner 7); the last that passed (Run 419 on main) "
        "had 419 passed, 3 skipped in 3 min 25 s."
    )
    assert line.memories == 12


def test_runs_that_all_passed_are_worth_less() -> None:
    (passed,) = record_lines(
        "pytest -q: 18 passed in 4.0 s", "pytest -q: 19 passed in 4.1 s"
    )
    (failed,) = record_lines("pytest -q: 1 failed, 17 passed in 4.0 s")
    assert passed.text == (
        "2 pytest runs, none failed; the last that passed (pytest -q) had 19 passed in 4.1 s."
    )
    assert failed.worth > passed.worth


def test_many_failures_are_counted() -> None:
    failures = "\n".join(f"FAILED tests/test_a.py::test_{n} - boom" for n in range(20))
    (text,) = record_texts(f"{failures}\n20 failed, 3 passed in 1.00s")
    assert text.endswith("and 16 more.")
    assert "20 failed, 3 passed in 1.00s" in text


# ---------------------------------------------------------------- shells


def test_a_failed_command_is_worth_more() -> None:
    failed, passed = record_lines(record_samples("shells")[2][0])
    assert failed.worth > passed.worth


def test_a_long_session_is_bounded() -> None:
    texts = record_texts("\n".join(f"$ ./step-{n} --run" for n in range(100)))
    assert len(texts) == 25
    assert texts[-1] == "The session ran 76 more commands."


def test_a_listing_says_how_many_lines_it_has() -> None:
    assert record_texts("$ ls\na.txt\nb.txt\nc.txt") == [
        "The command `ls` printed: 3 lines, the last c.txt."
    ]


# ---------------------------------------------------------------- tables


def test_a_long_table_shows_its_first_rows() -> None:
    rows = "\n".join(f"2026-03-{n:02},Item {n},{n}.50" for n in range(1, 15))
    (line,) = record_lines(f"date,item,amount\n{rows}")
    assert line.text.startswith(
        "Table of 14 rows with columns date, item and amount; first rows: "
    )
    assert "item Item 3, amount 3.50" in line.text
    assert "Item 4" not in line.text


def test_a_wide_table_counts_its_columns() -> None:
    header = ",".join(f"column_{letter}" for letter in "abcdefghijkl")
    row = ",".join("12345678901x")
    (text,) = record_texts(f"{header}\n{row}\n{row}\n{row}")
    assert "column_h and 4 more" in text


# ---------------------------------------------------------------- traces


def test_a_repeated_trace_is_counted() -> None:
    traces = [
        f'Traceback (most recent call last):\n  File "/srv/jobs.py", line 7, in run\n    go()\n'
        f"TimeoutError: no answer after {seconds} s"
        for seconds in (30, 31, 32)
    ]
    (line,) = record_lines(*traces)
    assert (
        line.text
        == "TimeoutError: no answer after 30 s in run (/srv/jobs.py, line 7), 3 times."
    )
    assert line.memories == 3


def test_a_trace_is_worth_much() -> None:
    (line,) = record_lines(record_samples("traces")[0][0])
    assert line.worth >= 0.8
