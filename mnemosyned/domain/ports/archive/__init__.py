"""Ports of the archive: restoring, pruning, undo, grace times, export and exact import."""
