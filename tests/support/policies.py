"""Changes of the policies in force, as a reload of the settings makes them."""

from dataclasses import replace
from typing import Any

from mnemosyned.service.policies import PolicyHolder


def change_sleep(policies: PolicyHolder, **changes: Any) -> None:  # noqa: ANN401
    """Put other rules of sleep in force."""
    sleep = replace(policies.sleep, **changes)
    policies.current = replace(policies.current, sleep=sleep)


def change_intake(policies: PolicyHolder, **changes: Any) -> None:  # noqa: ANN401
    """Put other rules for new memories in force."""
    intake = replace(policies.intake, **changes)
    policies.current = replace(policies.current, intake=intake)


def change_window(policies: PolicyHolder, **changes: Any) -> None:  # noqa: ANN401
    """Put other defaults of `context` and `compact` in force."""
    window = replace(policies.window, **changes)
    policies.current = replace(policies.current, window=window)
