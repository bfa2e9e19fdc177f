"""Finds and masks secrets: passwords, keys, tokens, card numbers; and finds exact values."""
