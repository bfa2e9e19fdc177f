"""Transcripts that agents' tools keep of their conversations."""
