"""Hooks of agents' tools: what they are told, and what is captured of their conversations."""
