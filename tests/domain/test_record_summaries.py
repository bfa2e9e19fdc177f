"""What holds for summaries of records of every kind."""

import json

from hypothesis import given, settings, strategies as st
from support.records import (
    VIENNA,
    assert_readable,
    prose_samples,
    record_samples,
    remembered,
)

from mnemosyned.summary.records.summarize import LINES_MAX, summarize_records

KINDS = (
    "calendars", "commits", "json", "logs", "mails", "messages", "runs", "shells", "tables",
    "traces",
)  # fmt: skip
RECORDS = [content for kind in KINDS for content, _ in record_samples(kind)]
PIECES = [*RECORDS, *prose_samples()]


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RECORDS), st.data())
def test_a_record_cut_anywhere_does_no_harm(record: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(record)))
    stop = data.draw(st.integers(start, len(record)))
    summary = summarize_records(remembered(record[start:stop]), zone=VIENNA)
    for line in summary.lines:
        assert line.text == " ".join(line.text.split())


@settings(max_examples=100, deadline=None)
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
