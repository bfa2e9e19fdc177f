"""Stack traces of several languages."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("traces"))
def test_a_trace_is_its_error_and_its_place(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


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
