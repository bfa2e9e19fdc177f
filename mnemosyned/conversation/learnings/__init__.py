"""Learnings."""
