"""Cases of tests: tables in TOML files, tests that run all their cases at once, and cases that are rare."""

import functools
import inspect
import reprlib
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

DOMAIN = Path(__file__).parent.parent / "domain"
FAILURES_SHOWN_MAX = 10

Test = Callable[..., None]


def read_cases(name: str) -> dict[str, list[Any]]:
    """The tables of `tests/domain/NAME.toml`: a row of several values is a tuple."""
    tables = tomllib.loads((DOMAIN / f"{name}.toml").read_text("utf-8"))
    return {
        key: [tuple(row) if isinstance(row, list) else row for row in rows]
        for key, rows in tables.items()
    }


def each_case(
    names: str | Iterable[str], cases: Iterable[Any] | Callable[[], Iterable[Any]]
) -> Callable[[Test], Test]:
    """Run a test for every case, as `pytest.mark.parametrize` does, as one test of pytest.

    For functions that take less than the four milliseconds that pytest takes for a test. All cases
    run, and each failure names its case. Fixtures are made once: no case may change them. Two of
    these on one test run it for every pair. A function that reads many cases is called by the test:
    each worker collects all tests.
    """
    fields = [*(names.split(",") if isinstance(names, str) else names)]
    fields = [field.strip() for field in fields]
    known = [*cases] if isinstance(cases, Iterable) else []

    def decorate(test: Test) -> Test:
        def run(**fixtures: object) -> None:
            failures: list[Exception] = []
            rows = known if isinstance(cases, Iterable) else [*cases()]
            assert rows, "there are no cases"
            for row in rows:
                values = (row,) if len(fields) == 1 else row
                case = dict(zip(fields, values, strict=True))
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 raised below
                    # What `pytest.raises` and `pytest.fail` raise is no Exception.
                    failure = (
                        error
                        if isinstance(error, Exception)
                        else AssertionError(str(error))
                    ).with_traceback(error.__traceback__)
                    failure.add_note(f"case: {reprlib.repr(case)}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(
                    f"{len(failures)} of {len(rows)} cases fail",
                    failures[:FAILURES_SHOWN_MAX],
                )

        wanted = inspect.signature(test).parameters.values()
        fixtures = [each for each in wanted if each.name not in fields]
        functools.update_wrapper(run, test)
        run.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def thorough(*cases: object) -> list[object]:
    """Mark cases of a parametrized test; a tuple has the values of several parameters."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough
        )
        for case in cases
    ]
