"""Search: queries, candidates, scores, ranking, de-duplication."""
