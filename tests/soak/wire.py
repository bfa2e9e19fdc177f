"""A kept-alive HTTP connection that sees every answer and every hang-up as it is."""

import json
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from e2e.daemons import UnixConnection

TIMEOUT_S = 600.0
"""A cycle gives way to whoever asks: beside thirty clients on a busy machine it takes minutes."""


class Reply(NamedTuple):
    """An answer, or a connection that ended without one (status 0)."""

    status: int
    body: Any
    seconds: float

    @property
    def code(self) -> str:
        """The stable code of an error; empty for none."""
        if self.status == 0:
            return "no_answer"
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error["code"]) if isinstance(error, dict) and "code" in error else ""

    @property
    def message(self) -> str:
        """What an error says."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return (
            str(error.get("message", ""))
            if isinstance(error, dict)
            else str(self.body)[:200]
        )


class Wire:
    """One client's connection; opened again where the daemon closed it after an answer."""

    def __init__(self, socket: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._connection: UnixConnection | None = None

    def post(self, verb: str, **fields: object) -> Reply:
        """Call a verb."""
        return self.send("POST", f"/v1/{verb}", json.dumps(fields).encode())

    def send(self, method: str, path: str, body: bytes | None = None) -> Reply:
        """Send one request and read its answer."""
        began = time.monotonic()
        try:
            if self._connection is None:
                self._connection = UnixConnection(self._socket)
                self._connection.timeout = self._timeout_s
            # It hangs up on a request it will not take; the answer can be read all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._connection.request(method, path, body)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, HTTPException) as error:
            self.close()
            return Reply(0, repr(error), time.monotonic() - began)
        if response.will_close:
            self.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text.decode("utf-8", "replace")
        return Reply(response.status, answer, time.monotonic() - began)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
