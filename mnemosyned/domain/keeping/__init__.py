"""How long things are kept: forgetting, pruning, undo, backups by date."""
