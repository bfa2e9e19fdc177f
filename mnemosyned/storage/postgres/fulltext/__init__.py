"""Terms of texts as the full-text index of SQLite would have them."""
