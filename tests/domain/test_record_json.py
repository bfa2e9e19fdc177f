"""JSON objects, arrays and lines."""

import pytest
from support.records import (
    VIENNA,
    record_lines,
    record_samples,
    record_texts,
    remembered,
)

from mnemosyned.summary.records.summarize import summarize_records


@pytest.mark.parametrize(("content", "expected"), record_samples("json"))
def test_json_reads_as_a_sentence(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


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


def test_what_is_no_whole_json_stays_prose() -> None:
    texts = ['{"a": 1} is what I get', "{", "[]", "{}", "[1, 2", '{"a": ' * 5_000]
    memories = remembered(*texts)
    assert len(summarize_records(memories, zone=VIENNA).prose) == len(texts)
