"""Summaries of records: what each kind becomes, and the prose that no rule may take."""

import json
from datetime import UTC
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

from mnemosyned.summary.records.summarize import summarize_records

KINDS = ("commits", "json", "logs", "runs", "shells", "tables", "traces")
RECORDS = [content for kind in KINDS for content, _ in record_samples(kind)]
PIECES = [*RECORDS, *prose_samples()]


@each_case(
    ("content", "expected"),
    [sample for kind in KINDS for sample in record_samples(kind)],
)
def test_a_record_reads_as_a_sentence(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


@each_case("text", [
    '{"a": 1} is what I get', "{", "[]", "{}", "[1, 2", '{"a": ' * 5_000,
])  # fmt: skip
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
    words = [f"{first}{second}" for first in "abcdefghijklm" for second in "nopqrstuvw"]
    events = [json.dumps({"title": f"Event {word}"}) for word in words]
    lines = summarize_records(remembered(*events), zone=VIENNA).lines
    assert len(lines) == 24
    assert sum(line.memories for line in lines) == 130
    assert lines[-1].text.startswith("38 JSON records: Event ")
    assert lines[-1].text.endswith("; and 34 more.")
    assert "Event mw" not in lines[-1].text


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
    assert set(taken) <= {"shell", "ci"}
    assert len(summary.prose) == len(entries) - sum(
        line.memories for line in summary.lines
    )


# --------------------------------------------------------------- commits


def test_commits_of_many_memories_are_joined_by_component() -> None:
    lines = record_lines(
        "a1b2c3d fix(importer): skip empty rows",
        "b2c3d4e docs: explain the import format",
        "c3d4e5f feat(importer): read semicolons",
    )
    assert [(line.text, line.position, line.memories) for line in lines] == [
        ("2 commits to importer: skip empty rows; read semicolons.", 0, 2),
        ("Commit: docs: explain the import format.", 1, 1),
    ]


def test_a_long_log_stays_within_lines_of_a_few_subjects() -> None:
    letters = "abcdefghij"
    names = [f"{first}{second}" for first in letters for second in letters]
    log = "\n".join(
        f"{n:07x}a1 fix(store): close {name}" for n, name in enumerate(names)
    )
    texts = record_texts(log)
    assert len(texts) == 24
    assert texts[0] == "4 commits to store: close aa; close ab; close ac; close ad."
    assert texts[-1].endswith("; and 4 more.")


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
    assert line.text == "6 JSON records: Battery low (status 15 percent) (6 times)."
    assert line.memories == 6


def test_numbers_stay_as_they_are_written() -> None:
    (text,) = record_texts('{"rate": 0.10, "big": 12345678901234567890, "none": null}')
    assert text == "JSON record: rate 0.10, big 12345678901234567890."


def test_a_long_list_shows_its_first_and_last_record() -> None:
    items = ", ".join(f'{{"title": "Item {n}", "price": {n}}}' for n in range(40))
    assert record_texts(f"[{items}]") == [
        "40 JSON records: Item 0 (price 0) … Item 39 (price 39) (40 alike)."
    ]


def test_json_lines_with_a_level_are_a_log() -> None:
    texts = record_texts(
        '{"level":"info","time":"2026-03-10T02:10:00Z","msg":"start"}\n'
        '{"level":"error","time":"2026-03-10T02:10:05Z","msg":"stop"}'
    )
    assert texts == [
        "Log line, Tue 10 March 2026, 03:10: start.",
        "Error, Tue 10 March 2026, 03:10: stop.",
    ]


# ------------------------------------------------------------------ logs


def test_lines_of_many_memories_are_counted_together() -> None:
    info = [f"2026-03-10 02:00:{n:02} INFO job {n} done" for n in range(40)]
    errors = [
        f"2026-03-10 02:01:{n:02} ERROR job {n} failed: timeout" for n in range(3)
    ]
    overview, error = record_lines(*info, *errors)
    assert overview.text == (
        "40 log lines, Tue 10 March 2026, 02:00: job 0 done … job 39 done (40 alike)."
    )
    assert error.text == (
        "3 errors, Tue 10 March 2026, 02:01: job 0 failed: timeout … "
        "job 2 failed: timeout (3 alike)."
    )
    assert (error.position, error.memories) == (40, 3)
    assert error.worth > overview.worth


def test_many_kinds_of_errors_are_bounded() -> None:
    words = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    texts = record_texts(
        *(f"2026-03-10 02:00:01 ERROR cannot open {word}" for word in words)
    )
    assert len(texts) == 24
    assert texts[0] == "Error, Tue 10 March 2026, 02:00: cannot open ak."
    assert texts[-1].startswith("77 errors, Tue 10 March 2026, 02:00: ")
    assert texts[-1].endswith("; and 76 more.")


# ------------------------------------------------------------------ runs


def test_runs_that_passed_are_one_line_and_failures_stand_alone() -> None:
    passed = [
        f"Run {n} on main passed: {n} passed, 3 skipped in 3 min 25 s."
        for n in range(410, 420)
    ]
    failed = [
        "Run 500 on main failed: test_overlap, AssertionError: expected [].",
        "Run 501 on main failed: disk quota exceeded on runner 7",
    ]
    of_passed, *of_failed = record_lines(*passed, *failed)
    assert of_passed.text == (
        "Run 410 on main passed: 410 passed, 3 skipped in 3 min 25 s … "
        "Run 419 on main passed: 419 passed, 3 skipped in 3 min 25 s (10 alike)."
    )
    assert [line.text for line in of_failed] == [
        "Run 500 on main failed: test_overlap, AssertionError: expected [].",
        "Run 501 on main failed: disk quota exceeded on runner 7.",
    ]
    assert of_passed.memories == 10
    assert of_failed[0].worth > of_passed.worth


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
    assert texts == ["Ran `./step-0 --run` … Ran `./step-99 --run` (100 alike)."]


def test_a_listing_says_how_many_lines_it_has() -> None:
    assert record_texts("$ ls\na.txt\nb.txt\nc.txt") == [
        "The command `ls` printed: 3 lines, the last c.txt."
    ]


# ---------------------------------------------------------------- tables


def test_a_long_table_shows_its_first_and_last_row() -> None:
    rows = "\n".join(f"2026-03-{n:02},Item {n},{n}.50" for n in range(1, 15))
    (line,) = record_lines(f"date,item,amount\n{rows}")
    assert line.text == (
        "14 rows: date 2026-03-01, item Item 1, amount 1.50 … "
        "date 2026-03-14, item Item 14, amount 14.50 (14 alike)."
    )


def test_rows_of_many_shapes_are_bounded() -> None:
    rows = "\n".join(f"{name},{name.lower()}x" for name in "ABCDEFGHIJKL")
    (text,) = record_texts(f"city,code\n{rows}")
    assert text.startswith("12 rows: city A, code ax; city B, code bx; ")
    assert text.endswith("; and 8 more.")


def test_a_wide_table_names_its_columns() -> None:
    header = ",".join(f"column_{letter}" for letter in "abcdefghijkl")
    row = ",".join("12345678901x")
    (text,) = record_texts(f"{header}\n{row}\n{row}\n{row}")
    assert "column_j 0, and 2 more: column_k, column_l" in text


# ---------------------------------------------------------------- traces


def test_a_repeated_trace_is_counted() -> None:
    traces = [
        f'Traceback (most recent call last):\n  File "/srv/jobs.py", line 7, in run\n    go()\n'
        f"TimeoutError: no answer after {seconds} s"
        for seconds in (30, 31, 32)
    ]
    (line,) = record_lines(*traces)
    place = 'File "/srv/jobs.py", line 7, in run'
    assert line.text == (
        f"TimeoutError: no answer after 30 s, {place} … "
        f"TimeoutError: no answer after 32 s, {place} (3 alike)."
    )
    assert line.memories == 3


def test_a_trace_is_worth_much() -> None:
    (line,) = record_lines(record_samples("traces")[0][0])
    assert line.worth >= 0.8
