"""Rows of owners: their numbers and totals, and their tokens."""
