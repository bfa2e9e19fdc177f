"""Results of verbs as words, tables, lines or JSON."""
