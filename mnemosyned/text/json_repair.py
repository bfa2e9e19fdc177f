"""Repair of JSON from programs that cut texts within a character: half surrogate pairs and invalid UTF-8."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def decode_cut_texts(decode: Callable[[bytes], T], data: bytes) -> T:
    """Return the result of `decode`; if it refuses the JSON, repair the JSON first.

    Raises the errors of `decode`. A JavaScript program that cuts a text inside an emoji writes half of a
    surrogate pair into JSON, which strict decoders refuse.
    """
    try:
        return decode(data)
    except ValueError:
        return decode(repair_json(data))


def repair_json(data: bytes) -> bytes:
    """Return JSON with invalid characters replaced; data that is no JSON is returned unchanged."""
    try:
        value = json.loads(data.decode("utf-8-sig", "replace"))
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        return data
