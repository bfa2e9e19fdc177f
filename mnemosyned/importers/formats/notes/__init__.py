"""Notes in Markdown."""
