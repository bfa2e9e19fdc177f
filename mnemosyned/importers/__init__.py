"""Memories read from what other programs keep: formats, and the import that runs them."""
