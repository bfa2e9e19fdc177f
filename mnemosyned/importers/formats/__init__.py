"""Formats of other programs, one module each or one for formats alike."""
