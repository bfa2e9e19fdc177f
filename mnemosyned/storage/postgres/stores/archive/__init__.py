"""The ports of the archive, one module each."""
