"""Watched folders: files that grow or change in them are remembered."""
