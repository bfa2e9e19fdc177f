"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""
