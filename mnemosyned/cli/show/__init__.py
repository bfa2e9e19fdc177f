"""Results in words, a module for each kind."""
