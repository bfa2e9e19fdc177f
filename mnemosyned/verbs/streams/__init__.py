"""Streams of lines: live events, and everything that an export holds."""
