"""The installation looked after from the shell, with and without a daemon."""
