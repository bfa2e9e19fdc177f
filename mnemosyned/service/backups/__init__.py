"""Backups: on request, by schedule, and which files beside a database are some."""
