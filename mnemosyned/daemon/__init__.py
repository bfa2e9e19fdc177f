"""The process: its life, its supervisor, and the HTTP server on its socket."""
