"""Rows of what surrounds memory: agents' sessions, watched files, the clock."""
