"""The Model Context Protocol: memory as tools, resources and prompts of any agent."""
