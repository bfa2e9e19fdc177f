"""Commands of a database server: owners, and its upkeep."""
