"""Output of test runners and CI servers."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("runs"))
def test_a_run_is_its_counts_and_its_failures(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


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
