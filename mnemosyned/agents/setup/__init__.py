"""Memory in the agents people use: settings written into their configuration, and taken out again."""
