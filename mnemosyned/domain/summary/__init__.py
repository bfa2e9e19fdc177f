"""Summaries of memories: extraction by rule, and checks of a model's text."""
