"""The ports of a `MemoryStore`, one module each."""
