"""Preferences said in passing: tables by language, and how they are read."""
