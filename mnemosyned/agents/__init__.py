"""Doors for agents: hooks of their tools, the setup of these tools, the Model Context Protocol."""
