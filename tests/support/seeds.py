"""The seed of a test that does things by chance."""

from __future__ import annotations

import os
import random

IN_CI = 1
"""What lands a change tries the same each time, so that no change fails by chance; Hypothesis does too."""


def seed_of(variable: str) -> int:
    """The seed that a variable names, to repeat a run; else fixed in CI, and another each time elsewhere.

    Whoever uses it prints it.
    """
    if named := os.environ.get(variable):
        return int(named)
    return IN_CI if os.environ.get("CI") else random.randrange(10**6)
