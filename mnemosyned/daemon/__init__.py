"""The process: its life and its supervisor."""
