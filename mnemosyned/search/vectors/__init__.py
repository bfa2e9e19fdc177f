"""Semantic search: embedding, index, and one model for many owners."""
