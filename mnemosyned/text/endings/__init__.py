"""Statements that end an older statement: a changed value, a dropped decision, a correction."""
