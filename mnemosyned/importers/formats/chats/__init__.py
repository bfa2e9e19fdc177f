"""Conversations: exports of ChatGPT and Claude, and transcripts of agents' tools."""
