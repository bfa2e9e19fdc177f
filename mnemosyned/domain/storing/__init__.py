"""Decisions of a store: what it does with what it is given, whatever keeps the rows."""
