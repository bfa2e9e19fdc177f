"""The HTTP server: listeners, connections, threads and who may ask."""
