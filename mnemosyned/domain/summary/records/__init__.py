"""Summaries of records that are no prose: a module for each kind, one function for all.

Imports none of them: their rules take a tenth of the daemon's start, and only a sleep needs them.
"""
