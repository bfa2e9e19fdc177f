"""How texts become vectors, and how those nearest to a question are found."""
