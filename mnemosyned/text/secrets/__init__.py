"""Secrets in a text, and their masking."""
