"""Commands of the shell that are more than one verb, a module each."""
