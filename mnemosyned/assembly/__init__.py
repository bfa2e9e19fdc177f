"""Where the parts meet: builds a memory from its settings."""
