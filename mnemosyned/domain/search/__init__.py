"""Search: questions, candidates, ranking, de-duplication, hits."""
