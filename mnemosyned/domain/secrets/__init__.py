"""Finds and masks secrets such as passwords, keys and card numbers; extracts exact values."""
