"""Summaries of records that are no prose: logs, commits, mails and others."""
