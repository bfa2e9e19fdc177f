"""Import and export from the shell: files read and written, with their progress."""
