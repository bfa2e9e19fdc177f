"""Memory in the agents people use: what is written into their configuration, and taken out again."""
