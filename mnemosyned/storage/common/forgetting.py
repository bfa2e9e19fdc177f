"""Forgetting: what both engines do alike to delete memories and learnings with all their traces."""

from __future__ import annotations

from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.storage.common.filters import (
    Condition,
    column_conditions,
    time_conditions,
)


def chosen_conditions(
    choice: ForgetFilter, newest: int | None, column: str = "{}"
) -> list[Condition]:
    """Return the conditions of a filter on columns, time and the newest row; `column` formats names."""
    when = column.format("created_at")
    conditions = [
        *column_conditions(choice.columns, column),
        *time_conditions(choice, first=when, last=when),
    ]
    if newest is not None:
        bound = f"{column.format('seq')} <= %(newest)s"
        conditions.append(Condition(bound, {"newest": newest}))
    return conditions
