"""The full-text indexes: written, measured and rebuilt."""
