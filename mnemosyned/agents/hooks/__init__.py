"""Hooks of agents' tools: texts injected into their context, and conversations captured."""
