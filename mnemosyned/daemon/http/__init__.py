"""The HTTP server: listeners, connections, threads and access."""
