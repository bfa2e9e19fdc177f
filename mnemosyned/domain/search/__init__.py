"""What a match is worth: queries, scores, ranking, de-duplication."""
