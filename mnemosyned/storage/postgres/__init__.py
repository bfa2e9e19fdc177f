"""Memory in PostgreSQL: many owners in one schema, each of them apart from the others."""
