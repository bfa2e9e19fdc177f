"""The memory that all large request bodies together may take."""

from __future__ import annotations

from mnemosyned.daemon.server.connection import Connection

SMALL_BYTES = 64 * 1024
"""A body up to this size needs no budget."""
LARGEST = 4
"""Number of bodies of the largest size that fit."""


class BodyBudget:
    """Reserves room for a body before it is read, until its request is answered."""

    def __init__(self, *, body_bytes_max: int) -> None:
        self._most = body_bytes_max
        self._free = LARGEST * body_bytes_max
        self.freed = False
        """Whether room was given back since the last call."""

    def wanted(self, connection: Connection) -> int:
        """The room that a connection needs and does not have."""
        size = connection.protocol.body_bytes
        if connection.reserved or size <= SMALL_BYTES:
            return 0
        # Of a body in chunks nobody knows how much is to come.
        return self._most if connection.protocol.in_chunks else size

    def reserve(self, connection: Connection) -> bool:
        """Reserve what the connection needs; False where there is no room for it."""
        wanted = self.wanted(connection)
        if wanted > self._free:
            return False
        self._free -= wanted
        connection.reserved += wanted
        return True

    def release(self, connection: Connection) -> None:
        """Give back what the connection has reserved."""
        self._free += connection.reserved
        self.freed = self.freed or connection.reserved > 0
        connection.reserved = 0
