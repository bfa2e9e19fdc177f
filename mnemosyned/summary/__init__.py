"""Extractive summaries, roll-ups, and the check of a model's summary."""
