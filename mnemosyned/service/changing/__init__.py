"""Changes of what is kept: selected, previewed, edited, tagged and pinned."""
