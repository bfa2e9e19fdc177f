"""Memory set up in the tools that people use, and taken out again."""
