"""Memory in one SQLite file: write-ahead log, full durability, FTS5 over every tier."""

from mnemosyned.storage.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]
