"""The Model Context Protocol: the daemon's server, and the program that carries a client's lines to it."""
