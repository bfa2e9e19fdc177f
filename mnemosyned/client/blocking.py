"""`Client`: every verb as a blocking method."""

from __future__ import annotations

from mnemosyned.client.connection import Connection
from mnemosyned.verbs.facade import Verbs


class Client(Connection, Verbs):
    """Speaks to a running daemon; safe to use from several threads.

    `Client()` uses the daemon's socket; `Client(url="http://127.0.0.1:7464", token=…)` its TCP port.

    A request whose connection was lost is sent again if it cannot take effect twice: reads,
    `remember`, whose memories get their id here, and `compact`, which finds its earlier result.
    """
