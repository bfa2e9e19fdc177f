"""The process: its life, its supervisor, and what it answers."""
