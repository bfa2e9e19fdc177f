"""The endpoint of `mnem mcp` for a daemon behind a URL; loaded only if one is named."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from mnemosyned.agents.mcp.pump import DaemonLost, Endpoint
from mnemosyned.client.remote import remote_daemon
from mnemosyned.errors import RemoteFault
from mnemosyned.socket_path import url_from_environment

if TYPE_CHECKING:
    import ssl

    from mnemosyned.client.remote import RemoteDaemon


CONNECT_S = 10.0


class RemoteEndpoint(Endpoint):
    """The way to a daemon behind a URL, over TLS unless it is on this machine.

    A reset may come from whoever is on the way, when the daemon had read the message.
    """

    def __init__(self, remote: RemoteDaemon) -> None:
        """Read the authorities. Raises `ValueError` where the file of one cannot be used."""
        self._remote = remote
        self._context: ssl.SSLContext | None = None
        self.fields = remote.headers.decode()
        if remote.tls:
            from mnemosyned.client.tls import (  # noqa: PLC0415 http needs none
                tls_context,
            )

            self._context = tls_context(remote.ca)

    def __str__(self) -> str:
        return self._remote.url

    def open(self) -> socket.socket:
        if self._context is None:
            connection = socket.create_connection(
                (self._remote.host, self._remote.port), CONNECT_S
            )
        else:
            connection = self._opened(self._context)
        connection.settimeout(None)
        return connection

    def _opened(self, context: ssl.SSLContext) -> socket.socket:
        from mnemosyned.client.tls import connect  # noqa: PLC0415 as above

        try:
            return connect(self._remote, context, CONNECT_S)
        except RemoteFault as fault:
            if fault.is_foreign:
                raise DaemonLost(fault.words) from fault
            raise

    def lost(self, error: OSError) -> str:
        if isinstance(error, RemoteFault):
            return error.words
        reason = error.strerror or error
        return f"no daemon answers on {self} ({reason}); check that it runs"

    def refused(self) -> str:
        return self._remote.refusal(
            "it is wrong, has expired or was revoked; ask who runs the daemon for another"
        )


class NoWay(Endpoint):
    """An address that cannot be used: every message is answered with what is wrong with it."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __str__(self) -> str:
        return self._reason

    def open(self) -> socket.socket:
        raise DaemonLost(self._reason)

    def lost(self, _: OSError) -> str:
        return self._reason


def remote_endpoint(remote: RemoteDaemon | None) -> Endpoint:
    """The way to the daemon given or named by the environment, whatever is wrong with it."""
    try:
        return RemoteEndpoint(remote or remote_daemon(url_from_environment() or ""))
    except ValueError as error:
        return NoWay(str(error))
