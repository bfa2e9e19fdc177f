"""Memory in PostgreSQL: many owners in one schema, each apart from the others."""
