"""Times in words: of a question, a sentence, a translation."""
