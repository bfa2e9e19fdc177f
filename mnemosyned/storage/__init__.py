"""Where memory is kept: implementations of `MemoryStore`."""
