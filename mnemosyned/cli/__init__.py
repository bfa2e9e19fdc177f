"""The shell client `mnem`."""
