"""Log lines of several formats."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("logs"))
def test_log_lines_are_counted_and_errors_quoted(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


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
