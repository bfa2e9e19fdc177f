"""Readers of every importer: files, text, JSON and archives that may be broken."""
