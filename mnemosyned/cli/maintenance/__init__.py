"""The installation from the shell, with and without a daemon; these commands alone load the engine."""
