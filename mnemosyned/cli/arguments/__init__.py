"""Arguments and options of the command line, ids, and values that a shell completes."""
