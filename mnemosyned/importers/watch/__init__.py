"""Folders that are followed: changed files are read into memory."""
