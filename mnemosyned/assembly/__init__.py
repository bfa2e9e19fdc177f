"""Assembly of the parts: a memory built from its settings."""
