"""Ports that a database server has besides: owners, and the upkeep of the server."""
