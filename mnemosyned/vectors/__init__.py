"""Vectors of memories, indexed and compared."""
