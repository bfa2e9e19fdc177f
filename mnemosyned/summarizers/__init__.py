"""Implementations of `Summarizer`."""
