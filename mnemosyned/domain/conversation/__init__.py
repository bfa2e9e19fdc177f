"""A conversation and its context, made to fit a window of tokens."""
