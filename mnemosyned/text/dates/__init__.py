"""Times in words: found in a text, and asked for in a question."""
