"""Hooks of agents' tools: what is captured, and what is injected."""
