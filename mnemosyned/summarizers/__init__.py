"""How memory is shortened: implementations of `Summarizer`."""
