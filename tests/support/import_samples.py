"""Samples of the formats that `mnem import` reads, made up in their real shape; here of plain ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
MILLISECONDS = 1_773_651_600_000
"""2026-03-16T09:00:00Z."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a memory has to be; the time as ISO 8601 with its zone, or empty for any."""

    content: str
    session: str
    source: str
    role: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A source, and what has to be read from it."""

    format: str
    write: Callable[[Path], Path]
    """Writes it into a folder and returns its path."""
    expected: list[Expected] = field(default_factory=list)
    bad: int = 0


# ---------------------------------------------------------------------- JSON


def json_array(folder: Path) -> Path:
    return write_json(
        folder / "memories.json",
        [
            {"content": "The ferry leaves at 7:40", "session": "trip", "role": "Ann"},
            {"content": "Pack the tent", "created_at": "2026-03-16T09:00:00+01:00"},
            {"content": "wrong", "colour": "red"},
            {"content": "Pack the tent", "source": "phone"},
        ],
    )


# --------------------------------------------------------------------- notes


def note(folder: Path) -> Path:
    (folder / "Vault" / ".obsidian").mkdir(parents=True)
    return write_text(
        folder / "Vault" / "Trips" / "Ferry.md",
        "---\r\ntitle: Ferry to Rødby\r\ndate: 2026-03-16T09:00:00+01:00\r\n"
        "tags: [trip, sea]\r\n---\r\nLeaves at 7:40, see [[Harbor|the harbor]]. #booked\r\n",
    )


# ------------------------------------------------------------------- helpers


def write_json(path: Path, value: object) -> Path:
    return write_text(path, json.dumps(value, ensure_ascii=False))


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


NINE, A_MINUTE_LATER = "2026-03-16T09:00:00+00:00", "2026-03-16T09:01:00+00:00"

PLAIN = [
    Sample(
        "json",
        json_array,
        [
            Expected("The ferry leaves at 7:40", "trip", "", "Ann"),
            Expected("Pack the tent", "default", "", "", "2026-03-16T09:00:00+01:00"),
            Expected("Pack the tent", "default", "phone"),
        ],
        bad=1,
    ),
    Sample(
        "notes",
        note,
        [
            Expected(
                "Ferry to Rødby\n\nLeaves at 7:40, see [[Harbor|the harbor]]. #booked",
                "notes:Vault",
                "notes",
                "",
                "2026-03-16T09:00:00+01:00",
            )
        ],
    ),
]
