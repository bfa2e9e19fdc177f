"""Folders that are followed: files that grow or change in them are remembered."""
