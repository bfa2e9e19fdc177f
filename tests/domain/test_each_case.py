"""Tests that run all their cases at once lose no failure."""

import pytest
from support.cases import each_case


def raise_for_odd(number: int) -> None:
    if number % 2:
        raise ValueError(number)


def test_all_cases_run_and_each_failure_names_its_case() -> None:
    ran = []

    @each_case("number", [1, 2, 3, 4])
    def refuses(number: int) -> None:
        ran.append(number)
        with pytest.raises(ValueError, match=str(number)):
            raise_for_odd(number)

    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail") as failed:
        refuses()

    assert ran == [1, 2, 3, 4]
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["case: {'number': 2}"],
        ["case: {'number': 4}"],
    ]


def test_a_test_keeps_its_marks_and_its_fixtures() -> None:
    @each_case("number", [1])
    @pytest.mark.thorough
    def reads(number: int, tmp_path: object) -> None:
        assert number
        assert tmp_path

    reads(tmp_path="here")

    marks = vars(reads)["pytestmark"]
    assert [mark.name for mark in marks] == ["thorough"]
