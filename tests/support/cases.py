"""Long tables of cases of the domain tests, each in a TOML file next to its test."""

import tomllib
from pathlib import Path
from typing import Any

DOMAIN = Path(__file__).parent.parent / "domain"


def read_cases(name: str) -> dict[str, list[Any]]:
    """The tables of `tests/domain/NAME.toml`: a row of several values is a tuple."""
    tables = tomllib.loads((DOMAIN / f"{name}.toml").read_text("utf-8"))
    return {
        key: [tuple(row) if isinstance(row, list) else row for row in rows]
        for key, rows in tables.items()
    }
