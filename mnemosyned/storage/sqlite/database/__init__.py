"""The database file: its connections, log, copies, schema and lock."""
