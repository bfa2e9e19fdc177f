"""The ports of the store, a module for each."""
