"""Doors for agents: hooks, the Model Context Protocol, and the setup of their tools."""
