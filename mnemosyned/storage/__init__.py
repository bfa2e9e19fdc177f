"""Implementations of `MemoryStore`."""
