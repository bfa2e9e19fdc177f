"""One module per language: calendar, numbers, stop words, time expressions."""
