"""Cases of a test that `make test` leaves to `make test-e2e`."""

from __future__ import annotations

import pytest

Cases = list[object]


def thorough(*cases: object) -> Cases:
    """Mark cases of a parametrized test; a tuple has the values of several parameters."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough
        )
        for case in cases
    ]
