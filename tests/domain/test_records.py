"""Summaries of records: what each kind becomes, and the prose that no rule may take."""

import json
import re
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import example, given, strategies as st
from support.cases import each_case
from support.datasets.mixed_year import mixed_year
from support.fakes import said_in_turn

from mnemosyned.summary.records.lines import RecordLine
from mnemosyned.summary.records.summarize import summarize_records

SAMPLES = Path(__file__).parents[1] / "support" / "datasets" / "records"
VIENNA = ZoneInfo("Europe/Vienna")
_HASH = re.compile(
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b|\b0x[0-9a-f]{6,}\b"
)
_BARE_VALUES = re.compile(r"[\d\s.,:;/%€$-]+")


def record_lines(*contents: str) -> tuple[RecordLine, ...]:
    """Return the lines of memories that must all be records; each must be readable."""
    summary = summarize_records(said_in_turn(*contents), zone=VIENNA)
    assert summary.prose == ()
    for line in summary.lines:
        assert_readable(line)
    return summary.lines


def record_texts(*contents: str) -> list[str]:
    """Return the texts of the lines of memories that must all be records."""
    return [line.text for line in record_lines(*contents)]


def assert_readable(line: RecordLine) -> None:
    """Check what holds for every line: a whole sentence without hashes, on one line."""
    assert line.text.endswith((".", "!", "?", "…", "”", "。")), line.text
    assert line.text == " ".join(line.text.split())
    assert not _BARE_VALUES.fullmatch(line.text)
    for text in (line.text, *line.index_terms):
        assert not _HASH.search(text), text
    assert 0 <= line.worth <= 1
    assert line.memories >= 1


def record_samples(kind: str) -> list[tuple[str, list[str]]]:
    """Return the samples of a kind: each record and the lines it must become.

    In the file a line `===` stands before each record and `--> ` before each line expected.
    """
    samples = []
    for block in _blocks(kind):
        content, *expected = block.split("\n--> ")
        samples.append((content, expected))
    assert len(samples) >= 8
    return samples


def prose_samples() -> list[str]:
    """Return texts that no rule may take."""
    return _blocks("prose")


def _blocks(name: str) -> list[str]:
    text = (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n===\n")[1:]


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
    memories = said_in_turn(text)
    assert summarize_records(memories, zone=VIENNA).prose == tuple(memories)


def test_a_line_has_no_character_that_cannot_be_stored() -> None:
    # What a program writes that cuts a text inside an emoji, beside a whole emoji and a backslash.
    cut = r'{"title": "it broke \ud83d", "note": "\u0000 \ud83d\ude00 C:\\u0000"}'
    line = summarize_records(said_in_turn(cut), zone=VIENNA).lines[0]
    assert line.text == "JSON record: it broke \ufffd (note \ufffd 😀 C:\\u0000)."


@given(st.lists(st.sampled_from(PIECES), max_size=12))
@example([])
@example(RECORDS)
def test_each_memory_is_prose_or_stood_for_by_a_line(contents: list[str]) -> None:
    memories = said_in_turn(*contents)
    summary = summarize_records(memories, zone=VIENNA)
    kept = {id(memory) for memory in summary.prose}
    taken = [n for n, memory in enumerate(memories) if id(memory) not in kept]
    assert [id(one) for one in summary.prose] == [
        id(one) for one in memories if id(one) in kept
    ]
    assert {line.position for line in summary.lines} <= set(taken)
    assert bool(summary.lines) == bool(taken)
    assert sum(line.memories for line in summary.lines) >= len(taken)
    positions = [line.position for line in summary.lines]
    assert positions == sorted(positions)
    for line in summary.lines:
        assert_readable(line)
    assert summarize_records(memories, zone=VIENNA) == summary


PARTS = st.sampled_from(RECORDS).flatmap(
    lambda record: st.builds(
        lambda start, stop: record[start:stop],
        st.integers(0, len(record)),
        st.integers(0, len(record)),
    )
)


@example(
    'Traceback (most recent call last):\n  File "a.py", line 3, in load\nValueError: bad:'
)
@given(PARTS | st.text(alphabet="{}[]:,.|$-= \n\taAbB019é⏎'\"(", max_size=80))
def test_any_text_and_any_part_of_a_record_is_taken_or_left(text: str) -> None:
    summary = summarize_records(said_in_turn(text), zone=VIENNA)
    assert bool(summary.lines) != bool(summary.prose)
    for line in summary.lines:
        assert line.text == " ".join(line.text.split())


def test_lines_are_bounded_and_those_left_out_are_counted() -> None:
    words = [f"{first}{second}" for first in "abcdefghijklm" for second in "nopqrstuvw"]
    events = [json.dumps({"title": f"Event {word}"}) for word in words]
    lines = summarize_records(said_in_turn(*events), zone=VIENNA).lines
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
            memories = said_in_turn(text)
            assert summarize_records(memories, zone=VIENNA).prose == tuple(memories), (
                text
            )


# ------------------------------------------------------------------ prose


DATASETS = Path(__file__).parents[1] / "support" / "datasets"
BY_HAND = (DATASETS / "written_year.txt").read_text(encoding="utf-8").splitlines()


@each_case("texts", [
    *([text] for text in prose_samples()),
    [record.content for record in mixed_year().records],
    [line for line in BY_HAND if line and line[0] not in "#=?"],
])  # fmt: skip
def test_prose_is_left_alone(texts: list[str]) -> None:
    """Samples that resemble records, a year of notes and chats, and one written by hand."""
    memories = said_in_turn(*texts)
    summary = summarize_records(memories, zone=UTC)
    assert (summary.lines, summary.prose) == ((), tuple(memories))


def test_of_the_week_only_runs_and_commits_are_records() -> None:
    path = Path(__file__).parents[1] / "demo" / "week.jsonl"
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    memories = said_in_turn(*(entry["content"] for entry in entries))
    summary = summarize_records(memories, zone=UTC)
    taken = {entries[line.position]["source"] for line in summary.lines}
    assert taken <= {"shell", "ci"}
    counted = sum(line.memories for line in summary.lines)
    assert len(summary.prose) == len(entries) - counted


# ------------------------------------------------- many records, and long ones


FEW = "abcdefghij"
CLOSED = [f"{first}{second}" for first in FEW for second in FEW]
COMMIT = (
    "commit 3f2a9c81d0e7b6a54f3e2d1c0b9a887766554433\nAuthor: Ben <b@x.example>\n"
    "Date:   Tue Mar 10 09:12:44 2026 +0100\n\n    Round amounts\n\n    The accountant insists.\n"
)
TRACE = (
    'Traceback (most recent call last):\n  File "/srv/jobs.py", line 7, in run\n    go()\n'
    "TimeoutError: no answer after {} s"
)
PLACE = 'File "/srv/jobs.py", line 7, in run'
TRACES_ALIKE = (
    f"TimeoutError: no answer after 30 s, {PLACE} … "
    f"TimeoutError: no answer after 32 s, {PLACE} (3 alike)."
)
ROWS_ALIKE = (
    "14 rows: date 2026-03-01, item Item 1, amount 1.50 … "
    "date 2026-03-14, item Item 14, amount 14.50 (14 alike)."
)
JSON_LOG = (
    '{"level":"info","time":"2026-03-10T02:10:00Z","msg":"start"}\n'
    '{"level":"error","time":"2026-03-10T02:10:05Z","msg":"stop"}'
)
INFO = [f"2026-03-10 02:00:{n:02} INFO job {n} done" for n in range(40)]
ERRORS = [f"2026-03-10 02:01:{n:02} ERROR job {n} failed: timeout" for n in range(3)]
PASSED = [
    f"Run {n} on main passed: {n} passed, 3 skipped in 3 min 25 s."
    for n in range(410, 420)
]
FAILED = (
    "Run 500 on main failed: test_overlap, AssertionError: expected [].",
    "Run 501 on main failed: disk quota exceeded on runner 7",
)


@each_case(("contents", "expected"), [
    (["a1b2c3d fix(importer): skip empty rows", "b2c3d4e docs: explain the import format",
      "c3d4e5f feat(importer): read semicolons"],
     [("2 commits to importer: skip empty rows; read semicolons.", 2),
      ("Commit: docs: explain the import format.", 1)]),
    (["1f2e3d4 Revert 9c8b7a6f5e4d, it broke the importer"],
     [("Commit: Revert, it broke the importer.", 1)]),
    ([COMMIT], [("Commit by Ben on Tue 10 March 2026: Round amounts.", 1)]),
    (['{"title": "Battery low", "status": "15 percent"}'] * 6,
     [("6 JSON records: Battery low (status 15 percent) (6 times).", 6)]),
    (['{"rate": 0.10, "big": 12345678901234567890, "none": null}'],
     [("JSON record: rate 0.10, big 12345678901234567890.", 1)]),
    (["[" + ", ".join(f'{{"title": "Item {n}", "price": {n}}}' for n in range(40)) + "]"],
     [("40 JSON records: Item 0 (price 0) … Item 39 (price 39) (40 alike).", 1)]),
    ([JSON_LOG],
     [("Log line, Tue 10 March 2026, 03:10: start.", 1), ("Error, Tue 10 March 2026, 03:10: stop.", 1)]),
    ([*INFO, *ERRORS],
     [("40 log lines, Tue 10 March 2026, 02:00: job 0 done … job 39 done (40 alike).", 40),
      ("3 errors, Tue 10 March 2026, 02:01: job 0 failed: timeout … job 2 failed: timeout (3 alike).", 3)]),
    ([*PASSED, *FAILED],
     [(f"{PASSED[0][:-1]} … {PASSED[-1][:-1]} (10 alike).", 10),
      (FAILED[0], 1), (f"{FAILED[1]}.", 1)]),
    (["\n".join(f"$ ./step-{n} --run" for n in range(100))],
     [("Ran `./step-0 --run` … Ran `./step-99 --run` (100 alike).", 1)]),
    (["$ ls\na.txt\nb.txt\nc.txt"], [("The command `ls` printed: 3 lines, the last c.txt.", 1)]),
    (["date,item,amount\n" + "\n".join(f"2026-03-{n:02},Item {n},{n}.50" for n in range(1, 15))],
     [(ROWS_ALIKE, 1)]),
    ([TRACE.format(seconds) for seconds in (30, 31, 32)],
     [(TRACES_ALIKE, 3)]),
])  # fmt: skip
def test_records_alike_are_counted(
    contents: list[str], expected: list[tuple[str, int]]
) -> None:
    lines = record_lines(*contents)

    assert [(line.text, line.memories) for line in lines] == expected


def test_a_line_is_where_its_first_record_is() -> None:
    lines = record_lines(*INFO, *ERRORS, *PASSED)
    assert [line.position for line in lines] == [0, 40, 43]


@each_case(("contents", "count", "begin", "end"), [
    (["\n".join(f"{n:07x}a1 fix(store): close {name}" for n, name in enumerate(CLOSED))],
     24, "4 commits to store: close aa; close ab; close ac; close ad.", "; and 4 more."),
    ([f"2026-03-10 02:00:01 ERROR cannot open {name}x" for name in CLOSED],
     24, "Error, Tue 10 March 2026, 02:00: cannot open aax.", "; and 76 more."),
    (["\n".join(f"FAILED tests/test_a.py::test_{n} - boom" for n in range(20))
      + "\n20 failed, 3 passed in 1.00s"], 1, "20 failed, 3 passed in 1.00s", "and 16 more."),
    (["city,code\n" + "\n".join(f"{name},{name.lower()}x" for name in "ABCDEFGHIJKL")],
     1, "12 rows: city A, code ax; city B, code bx; ", "; and 8 more."),
])  # fmt: skip
def test_records_are_bounded(
    contents: list[str], count: int, begin: str, end: str
) -> None:
    texts = record_texts(*contents)

    assert len(texts) == count
    assert begin in texts[0]
    assert texts[-1].endswith(end)


def test_the_body_and_the_paths_are_index_terms() -> None:
    assert "accountant" in record_lines(COMMIT)[0].index_terms


def test_a_wide_table_names_its_columns() -> None:
    header = ",".join(f"column_{letter}" for letter in "abcdefghijkl")
    row = ",".join("12345678901x")
    (text,) = record_texts(f"{header}\n{row}\n{row}\n{row}")
    assert "column_j 0, and 2 more: column_k, column_l" in text


@each_case(("less", "more"), [
    (["a1b2c3d fix(store): close files"], ["b2c3d4e feat(api)!: drop v1"]),
    (INFO, ERRORS),
    (PASSED, [FAILED[0]]),
])  # fmt: skip
def test_what_breaks_or_fails_is_worth_more(less: list[str], more: list[str]) -> None:
    plain, grave = record_lines(*less, *more)
    assert grave.worth > plain.worth


def test_a_failed_command_and_a_trace_are_worth_much() -> None:
    failed, passed = record_lines(record_samples("shells")[2][0])
    assert failed.worth > passed.worth
    (trace,) = record_lines(record_samples("traces")[0][0])
    assert trace.worth >= 0.8
