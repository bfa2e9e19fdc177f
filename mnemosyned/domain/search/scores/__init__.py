"""Scores of candidates: their words, the lines around them, similarity, and the weight of each."""
