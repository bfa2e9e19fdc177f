"""Memory in one SQLite file: write-ahead log, full durability, FTS5 over every tier."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemosyned.storage.sqlite.connections import bound_caches
    from mnemosyned.storage.sqlite.store import SqliteStore, open_store


__all__ = ["SqliteStore", "bound_caches", "open_store"]

_MODULES = {
    "SqliteStore": "store",
    "bound_caches": "connections",
    "open_store": "store",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load a part where it is asked for: who looks at a lock or a file needs no store."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
