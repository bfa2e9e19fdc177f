"""The daemon: its process, its supervisor, and the resources that it serves."""
