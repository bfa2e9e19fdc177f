"""Searches for words: which rows have them, how rare each is, and what a text says of it."""
