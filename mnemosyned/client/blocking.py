"""`Client`: every verb as a blocking method."""

from __future__ import annotations

from mnemosyned.client.connection import Connection
from mnemosyned.verbs.facade import Verbs


class Client(Connection, Verbs):
    """Speaks to a running daemon; safe to use from several threads.

    `Client()` uses the daemon's socket; `Client(url="http://127.0.0.1:7464", token=…)` its TCP port.

    A request on a lost connection is repeated if that cannot do its work twice: reads, `remember`,
    whose memories get their id here, and `compact`, which finds what it stored before.
    """
