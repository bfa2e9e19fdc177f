"""Stores of other memory programs."""
