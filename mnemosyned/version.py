"""The version of this package; at the ground, so that every part may name it."""

__version__ = "0.1.0"
