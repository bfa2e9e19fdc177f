"""The place of the memory: in a file of this machine, or on a PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

SCHEMES = ("postgresql://", "postgres://")
HIDDEN = "***"
_SECRET_KEYS = ("password", "sslpassword")


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """A SQLite file, or else the URL of a PostgreSQL database."""

    file: Path | None = None
    url: str = ""

    def __str__(self) -> str:
        return str(self.file) if self.file else without_password(self.url)


def is_server(database: str | None) -> bool:
    """Whether a setting names a server and no file."""
    return database is not None and database.startswith(SCHEMES)


def without_password(url: str) -> str:
    """The URL of a database as it may be shown."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}{colon}{HIDDEN if colon else ''}{at}{host}"
    pairs = [
        (key, HIDDEN if key in _SECRET_KEYS else value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit(parts._replace(netloc=shown, query=urlencode(pairs, safe="/*")))
