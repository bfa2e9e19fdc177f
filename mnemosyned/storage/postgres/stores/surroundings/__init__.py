"""The ports of what surrounds memory, one module each."""
