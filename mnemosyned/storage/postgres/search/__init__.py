"""Finding rows: index terms, candidates, lists, filters."""
