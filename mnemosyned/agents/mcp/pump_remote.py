"""The endpoint of `mnem mcp` for a daemon behind a URL; loaded only if one is named."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from mnemosyned.agents.mcp.pump import DaemonEndpoint, DaemonLost
from mnemosyned.client.remote import remote_daemon, remote_of
from mnemosyned.errors import RemoteFault
from mnemosyned.importers.projects import project_of
from mnemosyned.socket_path import url_from_environment

if TYPE_CHECKING:
    import ssl

    from mnemosyned.client.remote import RemoteDaemon
    from mnemosyned.socket_path import SavedConnection


CONNECT_S = 10.0


class RemoteEndpoint(DaemonEndpoint):
    """The address of a daemon behind a URL; a reset may come from a machine in between."""

    advice = "; check that it runs"

    def __init__(self, remote: RemoteDaemon) -> None:
        """Read the CA file of the remote daemon. Raises `ValueError` if it cannot be used."""
        self._remote = remote
        self._context: ssl.SSLContext | None = None
        self._projects: dict[str, str] = {}
        """Keys of projects by directory."""
        if remote.tls:
            from mnemosyned.client.tls import (  # noqa: PLC0415 http needs none
                tls_context,
            )

            self._context = tls_context(remote.ca)

    def __str__(self) -> str:
        return self._remote.url

    @property
    def fields(self) -> str:
        """The header fields that the daemon needs."""
        return self._remote.headers.decode()

    def describe_origin(self, origin: dict[str, str]) -> dict[str, str]:
        """Return the facts about a client, with the project of its directory on this machine."""
        directory = origin["claude_directory"] or origin["directory"]
        if directory not in self._projects:
            self._projects[directory] = project_of(
                directory, override=origin["project"]
            ).key
        return {**origin, "project": self._projects[directory]}

    def open(self) -> socket.socket:
        """Return a connection to the host of the URL, over TLS for https://.

        Raises `OSError`, and `DaemonLost` if the certificate is not the daemon's.
        """
        self._remote.renew_if_due()
        if self._context is None:
            place = (self._remote.host, self._remote.port)
            connection = socket.create_connection(place, CONNECT_S)
        else:
            from mnemosyned.client.tls import connect  # noqa: PLC0415 as above

            try:
                connection = connect(self._remote, self._context, CONNECT_S)
            except RemoteFault as fault:
                if fault.is_foreign:
                    raise DaemonLost(fault.words) from fault
                raise
        connection.settimeout(None)
        return connection

    def describe_loss(self, error: OSError) -> str:
        """Return the message for a daemon that does not answer, by the error of the connection."""
        if isinstance(error, RemoteFault):
            return error.words
        return super().describe_loss(error)

    def describe_refusal(self) -> str:
        """Return the message for a daemon that refuses the access token, with advice."""
        return self._remote.refusal_message(
            "it is wrong, has expired or was revoked; ask who runs the daemon for another"
        )


def remote_endpoint(
    remote: RemoteDaemon | None, saved: SavedConnection | None = None
) -> DaemonEndpoint:
    """Return the endpoint of `remote`, else of the login `saved`, else of the environment.

    For an invalid address it has the fault, with which every message is answered.
    """
    try:
        if remote is None and saved is not None:
            remote = remote_of(saved)
        return RemoteEndpoint(remote or remote_daemon(url_from_environment() or ""))
    except ValueError as error:
        return DaemonEndpoint(str(error))
