"""A line of the daemon's log as a person reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.domain.instants import in_zone

_LEVELS_LEFT_OUT = {"info", "debug"}


def readable(line: str) -> str:
    """Return a line of JSON as time, event and values; another line as it is."""
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    level = entry.pop("level", "info")
    head = [
        _time(entry.pop("timestamp", "")),
        "" if level in _LEVELS_LEFT_OUT else f"{level}:",
        str(entry.pop("event")).replace("_", " "),
    ]
    values = [f"{name}={_value(value)}" for name, value in entry.items()]
    return "  ".join([" ".join(filter(None, head)), *values])


def _time(timestamp: object) -> str:
    """Return the local time of an entry, with its date."""
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return str(timestamp)
    return f"{in_zone(moment, None):%Y-%m-%d %H:%M:%S}"


def _value(value: Any) -> str:  # noqa: ANN401 whatever JSON holds
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
