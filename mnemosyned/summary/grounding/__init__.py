"""The check of a model's answer against its sources."""
