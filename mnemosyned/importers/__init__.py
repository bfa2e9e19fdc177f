"""Memories read from what other programs keep: formats, the import, transcripts, watched folders."""
