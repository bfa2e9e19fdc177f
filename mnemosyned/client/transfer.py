"""Exports as they stream in, and parts of exports sent back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlencode

import msgspec

from mnemosyned.client.address import Address
from mnemosyned.client.messages import LONG_TIMEOUT_S, refusal_of, unreachable
from mnemosyned.domain.errors import MnemosynedError, UnknownVerb
from mnemosyned.domain.exchange import Restored
from mnemosyned.verbs.streams.exchange import EXPORT_PATH, RESTORE_PATH, Export

LINE_BYTES_MAX = 64 << 20


class _Transfer(HTTPConnection):
    """HTTP over a connection of ours, which was checked."""

    def __init__(self, address: Address) -> None:
        super().__init__("localhost", timeout=LONG_TIMEOUT_S)
        self._address = address

    def connect(self) -> None:
        self.sock = self._address.connect(LONG_TIMEOUT_S)
        self.sock.settimeout(LONG_TIMEOUT_S)


class Transfers:
    """Carries exports from a daemon and back to one."""

    def __init__(self, address: Address) -> None:
        self._connection = _Transfer(address)
        self._address = address
        lines = address.headers.decode().splitlines()
        self._headers = dict(line.split(": ", 1) for line in lines)

    @contextmanager
    def export(self, request: Export) -> Iterator[Iterator[bytes]]:
        """Give the lines of an export while the block runs. Raises what the daemon raised."""
        query = urlencode(msgspec.to_builtins(request), doseq=True)
        with closing(self._connection):
            yield _lines(self._response("GET", f"{EXPORT_PATH}?{query}"))

    def restore(self, lines: bytes) -> Restored:
        """Have the daemon store lines of an export. Raises what the daemon raised."""
        response = self._response("POST", RESTORE_PATH, lines)
        return msgspec.json.decode(response.read(), type=Restored)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _response(
        self, method: str, path: str, body: bytes | None = None
    ) -> HTTPResponse:
        try:
            self._connection.request(method, path, body, self._headers)
            response = self._connection.getresponse()
        except (OSError, HTTPException) as error:
            self._connection.close()
            failure = error if isinstance(error, OSError) else OSError(str(error))
            raise unreachable(failure, self._address) from error
        if response.status != 200:
            raise self._refusal(response)
        return response

    def _refusal(self, response: HTTPResponse) -> MnemosynedError:
        error = refusal_of(response.status, response.read(), self._address)
        if isinstance(error, UnknownVerb) and not self._address.file:
            return UnknownVerb(
                f"{self._address} hands out no exports and takes none, as it serves no owners; run "
                "the command on its machine"
            )
        return error


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines; a connection that ends early is an export without a footer."""
    try:
        while line := response.readline(LINE_BYTES_MAX):
            yield line
    except (HTTPException, OSError):
        return
