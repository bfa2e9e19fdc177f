"""Ports of the archive: restoring, pruning, undo, export and exact import."""
