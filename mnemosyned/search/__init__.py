"""From a question to hits: candidates, ranking and de-duplication."""
