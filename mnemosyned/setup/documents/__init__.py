"""Configuration files edited as text, so that layout and comments stay."""
