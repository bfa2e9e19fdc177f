"""The verbs from Python, over the daemon's socket."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import msgspec

from mnemosyned.domain.errors import DaemonUnreachable, MnemosynedError, by_code
from mnemosyned.domain.memory import new_id
from mnemosyned.paths import SOCKET_VARIABLE, default_socket
from mnemosyned.requests import Request, checked, result_type
from mnemosyned.verbs import VERBS, Remember, RememberMany, Sleep, Verbs
from mnemosyned.verbs_keeping import Backup, Forget, Prune, Restore
from mnemosyned.verbs_window import Compact

R = TypeVar("R")

TIMEOUT_S = 60.0
LONG_TIMEOUT_S = 3_600.0
LONG = (Sleep, Forget, Restore, Prune, Backup)
"""What may take long, as it works through many memories step by step."""
IDLE_MAX = 16
_NAMES = {verb: name for name, verb in VERBS.items()}


class Client(Verbs):
    """Speaks to a running daemon; safe to use from several threads.

    A lost connection is tried again where that cannot do the work twice: reading, remembering,
    which carries an id made here, and compacting, which finds what it kept before.
    """

    def __init__(
        self, socket: str | os.PathLike[str] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        given = socket or os.environ.get(SOCKET_VARIABLE)
        self.socket = Path(given) if given else default_socket()
        self._timeout_s = timeout_s
        self._idle: deque[_Connection] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def call(self, request: Request[R]) -> R:
        """Run one verb. Raises what the daemon raised, and `DaemonUnreachable`."""
        request = _with_ids(checked(request))
        path = "/v1/" + _NAMES[type(request)]
        body = msgspec.json.encode(request)
        status, answer = self._send(path, body, request)
        if status == 200:
            return msgspec.json.decode(answer, type=result_type(type(request)))
        raise _error(status, answer)

    def _send(self, path: str, body: bytes, request: Request[Any]) -> tuple[int, bytes]:
        repeatable = not request.writes or isinstance(request, Remember | RememberMany | Compact)
        timeout_s = LONG_TIMEOUT_S if isinstance(request, LONG) else self._timeout_s
        try:
            if repeatable:
                with contextlib.suppress(IndexError, ConnectionError, HTTPException):
                    return self._exchange(self._idle.pop(), path, body)
            return self._exchange(_Connection(self.socket, timeout_s), path, body)
        except (FileNotFoundError, ConnectionRefusedError, PermissionError) as error:
            raise DaemonUnreachable(
                f"no daemon answers on {self.socket} ({error.strerror}). Start it with "
                "`systemctl --user start mnemosyned`, or `mnemosyned` in another terminal"
            ) from error
        except TimeoutError as error:
            raise DaemonUnreachable(
                f"the daemon on {self.socket} did not answer in time; see its log"
            ) from error
        except (HTTPException, OSError) as error:
            raise DaemonUnreachable(
                f"the daemon on {self.socket} hung up ({error!r}); see its log, then try again"
            ) from error

    def _exchange(self, connection: _Connection, path: str, body: bytes) -> tuple[int, bytes]:
        """One request and its answer; the connection is kept for the next, or closed."""
        try:
            # A daemon that refuses a large body hangs up before its end; the reason is readable.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        usual = connection.timeout == self._timeout_s
        if usual and not response.will_close and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()
        return response.status, answer


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.close()
            raise


def _with_ids(request: Request[R]) -> Request[R]:
    """Memories carry their id from here on, so that sending them again is safe."""
    if isinstance(request, Remember):
        changes: dict[str, Any] = {"id": request.id or new_id(datetime.now(UTC))}
    elif isinstance(request, RememberMany):
        changes = {"memories": [_with_ids(memory) for memory in request.memories]}
    else:
        return request
    return cast("Request[R]", msgspec.structs.replace(request, **changes))


def _error(status: int, answer: bytes) -> MnemosynedError:
    try:
        error = msgspec.json.decode(answer)["error"]
        kind = by_code().get(error["code"], MnemosynedError)
        return kind(error["message"], field=error.get("field"))
    except (msgspec.DecodeError, KeyError, TypeError):
        return MnemosynedError(f"the daemon answered {status}: {answer[:200]!r}")
