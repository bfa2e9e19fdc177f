"""The database in words, for each answer that names it."""

from __future__ import annotations

from mnemosyned.verbs.status import Stats

BY_THE_SERVER = "those of the server: mnem export writes a copy besides"


def on_disk(stats: Stats) -> str:
    """The size of the database; empty where that is not known."""
    return f"{stats.bytes_on_disk / 1e6:.1f} MB on disk" if stats.bytes_on_disk else ""
