"""The place of the memory: in a file of this machine, or on a PostgreSQL server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

SCHEMES = ("postgresql://", "postgres://")
HIDDEN = "***"
_SECRET_KEYS = ("password", "sslpassword")
_URL = re.compile(r"(\w+://)(?:([^/:@]*)(:[^/]*)?@)?([^?]*)(?:\?(.*))?", re.DOTALL)
"""Scheme, user, password, place and options as libpq parts them: a password may contain # and ?."""
_URL_AS_PATH = re.compile(r"(?:^|/)postgres(?:ql)?:/+([^?]*)(.*)")


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


def url_in_path(path: str) -> str | None:
    """The URL that was stored as a path, such as `/home/ann/postgresql:/ann@host/name`."""
    match = _URL_AS_PATH.search(path)
    if match is None:
        return None
    place, options = match.groups()
    is_name = "@" not in place and "/" not in place  # its slashes were merged
    return f"postgresql://{'/' if is_name else ''}{place}{options}"


def without_password(url: str, *, shown: str = HIDDEN) -> str:
    """The URL of a database with `shown` in the place of a password; without one if it is empty."""
    match = _URL.fullmatch(url)
    if match is None:
        return shown or HIDDEN
    scheme, user, password, place, options = match.groups()
    hidden = f":{shown}" if password and shown else ""
    pairs = [
        (key, shown if key in _SECRET_KEYS else value)
        for key, value in parse_qsl(options or "", keep_blank_values=True)
        if shown or key not in _SECRET_KEYS
    ]
    query = f"?{urlencode(pairs, safe='/*')}" if pairs else ""
    return f"{scheme}{'' if user is None else f'{user}{hidden}@'}{place}{query}"
