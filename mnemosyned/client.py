"""The verbs from Python, over the daemon's socket."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import struct
from collections import deque
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import msgspec

from mnemosyned.domain.errors import (
    DaemonUnreachable,
    ForeignDaemon,
    MnemosynedError,
    by_code,
)
from mnemosyned.domain.memory import new_id
from mnemosyned.paths import SOCKET_VARIABLE, default_socket
from mnemosyned.verbs.conversation import Compact
from mnemosyned.verbs.facade import VERBS, Verbs
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import Request, checked, parse_result
from mnemosyned.verbs.retention import Backup, Forget, Prune, Restore
from mnemosyned.verbs.sleep import Sleep, Undo

R = TypeVar("R")

TIMEOUT_S = 60.0
LONG_TIMEOUT_S = 3_600.0
LONG = (Sleep, Undo, Forget, Restore, Prune, Backup)
"""Verbs that may take long, as they work through many memories step by step."""
IDLE_MAX = 4
"""Idle connections a client keeps: each counts against the daemon's limit."""
ATTEMPTS = 5
"""Attempts to send a request that the daemon hung up on before it had read it."""
_NAMES = {verb: name for name, verb in VERBS.items()}


class Client(Verbs):
    """Speaks to a running daemon; safe to use from several threads.

    A request on a lost connection is repeated if that cannot do its work twice: reads, `remember`,
    whose memories get their id here, and `compact`, which finds what it stored before.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
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
            return parse_result(type(request), answer)
        raise _error(status, answer)

    def _send(self, path: str, body: bytes, request: Request[Any]) -> tuple[int, bytes]:
        repeatable = not request.writes or isinstance(
            request, Remember | RememberMany | Compact
        )
        timeout_s = LONG_TIMEOUT_S if isinstance(request, LONG) else self._timeout_s
        try:
            if repeatable and (idle := self._idle_connection()):
                with contextlib.suppress(ConnectionError, HTTPException):
                    return self._exchange(idle, path, body)
            return self._exchange_on_new(path, body, timeout_s)
        except (FileNotFoundError, ConnectionRefusedError, PermissionError) as error:
            raise DaemonUnreachable(
                f"no daemon answers on {self.socket} ({error.strerror}). Start it with "
                "`systemctl --user start mnemosyned`, or `mnemosyned` in another terminal"
            ) from error
        except (
            TimeoutError,
            BlockingIOError,
        ) as error:  # in the backlog, or for the answer
            raise DaemonUnreachable(
                f"the daemon on {self.socket} did not answer in time; see its log"
            ) from error
        except (HTTPException, OSError) as error:
            raise DaemonUnreachable(
                f"the daemon on {self.socket} hung up ({error!r}); see its log, then try again"
            ) from error

    def _idle_connection(self) -> _Connection | None:
        """An idle connection that the daemon has not closed since, the newest first."""
        while True:  # ends with the last idle one
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.open:
                return connection
            connection.close()

    def _exchange_on_new(
        self, path: str, body: bytes, timeout_s: float
    ) -> tuple[int, bytes]:
        """One request and its answer over a new connection."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(_Unread):
                return self._exchange(_Connection(self.socket, timeout_s), path, body)
        return self._exchange(_Connection(self.socket, timeout_s), path, body)

    def _exchange(
        self, connection: _Connection, path: str, body: bytes
    ) -> tuple[int, bytes]:
        """One request and its answer; the connection is kept for the next, or closed."""
        try:
            # A daemon that refuses a large body hangs up before its end; the reason is readable.
            sent = False
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    "POST", path, body, {"Content-Type": "application/json"}
                )
                sent = True
            response = _response(connection, sent=sent)
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


class _Unread(ConnectionError):
    """The daemon hung up before it had read the whole request: it has done nothing of it."""


def _response(connection: _Connection, *, sent: bool) -> HTTPResponse:
    """The answer's head. Raises `_Unread` where sending again cannot do the work twice.

    The kernel resets a Unix socket that is closed before all that was sent to it was read.
    """
    try:
        return connection.getresponse()
    except RemoteDisconnected as error:  # the end without a reset
        if sent:
            raise
        raise _Unread from error
    except ConnectionResetError as error:
        raise _Unread from error


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    @property
    def open(self) -> bool:
        """Whether the daemon has neither closed it nor sent unexpected bytes."""
        ready = select.poll()
        ready.register(self.sock, select.POLLIN)
        return not ready.poll(0)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # With a full backlog the kernel waits, as long as a send may take, only where the
            # socket blocks; Python's timeout would have it fail at once.
            limit = struct.pack(
                "ll", *divmod(int((self.timeout or 0) * 1_000_000), 1_000_000)
            )
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            self.sock.connect(str(self._path))
            self.sock.settimeout(self.timeout)
            _check_daemon(self.sock, self._path)
        except BaseException:
            self.close()
            raise


def _check_daemon(connection: socket.socket, path: Path) -> None:
    """Check that the daemon belongs to this user, or to root. Raises `ForeignDaemon`.

    Root may also ask the daemon of another user, if only that user can write to its directory.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    if uid in (0, os.geteuid()):
        return
    folder = path.parent.stat()
    private = folder.st_uid == uid and not folder.st_mode & (
        stat.S_IWGRP | stat.S_IWOTH
    )
    if os.geteuid() != 0 or not private:
        raise ForeignDaemon(
            f"user {uid} listens on {path}, not you: nothing was sent; "
            "use a socket in a directory that only you can write to"
        )


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
