"""A window on the memory: `mnem web` serves pages on loopback, in a process of its own."""
