"""Standing instructions: recognized, compared, chosen for a context."""
