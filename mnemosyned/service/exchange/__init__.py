"""Export and exact import."""
