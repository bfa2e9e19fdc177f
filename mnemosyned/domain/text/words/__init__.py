"""Tables of words: stop words, cues, irregular forms, spellings."""
