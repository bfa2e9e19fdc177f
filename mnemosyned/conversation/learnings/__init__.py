"""Standing instructions and preferences: recognition, conflicts and selection."""
