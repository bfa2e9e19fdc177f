"""Memory in one SQLite file: write-ahead log, full durability, FTS5 over every tier."""
