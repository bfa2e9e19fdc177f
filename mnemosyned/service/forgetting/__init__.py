"""Forgetting: by request, by age, out of the file, and taking a cycle back."""
