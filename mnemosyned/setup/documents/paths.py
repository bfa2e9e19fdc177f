"""The way to a value in a document: the keys of objects and the indexes of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

Path = tuple[str | int, ...]
Json: TypeAlias = Any


def dotted(path: Path) -> str:
    """A path as people write it."""
    return ".".join(map(str, path))


def nested(path: Path, value: Json) -> Json:
    """The value within an object for each step of the path."""
    for step in reversed(path):
        value = {step: value}
    return value


def value_at(data: Json, path: Path) -> Json:
    """The value at a path; None where there is none."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step)
        elif _is_index(data, step):
            data = data[step]
        else:
            return None
    return data


def steps_present(data: Json, path: Path) -> int:
    """How many steps of a path exist."""
    for count, step in enumerate(path):
        present = step in data if isinstance(data, Mapping) else _is_index(data, step)
        if not present:
            return count
        data = data[step]
    return len(path)


def _is_index(data: Json, step: str | int) -> bool:
    return (
        isinstance(data, Sequence)
        and not isinstance(data, str)
        and isinstance(step, int)
        and step < len(data)
    )


def with_value(data: Json, path: Path, value: Json) -> Json:
    """A copy of the data with a value at a path, whose objects are made where they lack."""
    copy = deepcopy(data)
    inner = copy
    for step in path[:-1]:
        if isinstance(inner, dict) and inner.get(step) is None:
            inner[step] = {}
        inner = inner[step]
    inner[path[-1]] = value
    return copy


def with_element(data: Json, path: Path, value: Json) -> Json:
    """A copy of the data with an element at the end of the list at a path."""
    elements = value_at(data, path) or []
    return with_value(data, path, [*elements, value])


def without(data: Json, path: Path) -> Json:
    """A copy of the data without the value at a path."""
    copy = deepcopy(data)
    inner = value_at(copy, path[:-1])
    del inner[path[-1]]
    return copy


def pruned(data: Json, path: Path) -> Json:
    """A copy of the data without the empty objects on the way to a path."""
    for length in range(len(path), 0, -1):
        if value_at(data, path[:length]) == {}:
            data = without(data, path[:length])
    return data
