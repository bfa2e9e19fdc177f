"""Verbs of conversations: context, compact."""
