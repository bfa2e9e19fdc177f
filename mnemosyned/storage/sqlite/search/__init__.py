"""Finds candidates: full text, filters, times."""
