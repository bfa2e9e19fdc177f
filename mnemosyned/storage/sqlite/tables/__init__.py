"""The rows of each table: read, written and deleted."""
