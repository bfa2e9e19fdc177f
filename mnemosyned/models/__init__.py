"""Language models on this machine: fetched when asked for, checked, chosen, removed."""
