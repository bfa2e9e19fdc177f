"""Memory in one SQLite file: write-ahead log, full durability, FTS5 over every tier."""

from mnemosyned.storage.sqlite.database.connections import bound_caches
from mnemosyned.storage.sqlite.opening import open_store
from mnemosyned.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "bound_caches", "open_store"]
