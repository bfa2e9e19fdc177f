"""Forgotten memories: kept for a grace time, then purged."""
