"""Demands of a question besides its words: a time, a speaker, a source."""
