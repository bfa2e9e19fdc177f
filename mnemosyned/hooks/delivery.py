"""One request to the daemon, with as few imports as can be."""

from __future__ import annotations

import socket

from mnemosyned.socket_path import foreign_owner

PATH = "/hooks"
OK = 200
REFUSED = 400
FAILED = 500
ANSWER_BYTES_MAX = 1 << 20
CREDENTIALS_BYTES = 12


def is_refused(status: int) -> bool:
    """Whether the daemon will never take this, so that it need not be kept."""
    return REFUSED <= status < FAILED


def post(path: str, body: bytes) -> tuple[int, bytes]:
    """Post to the daemon; return the status and the body of its answer.

    Raises `OSError` without a whole answer. How long it may take is the caller's to limit.
    """
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        _check_peer(connection, path)
        connection.sendall(head.encode() + body)
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
            if len(received) > ANSWER_BYTES_MAX:
                raise OSError("the answer is too long")
    return _parsed(received)


def _check_peer(connection: socket.socket, path: str) -> None:
    """Check that the daemon is this user's, or root's. Raises `PermissionError`."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS_BYTES
    )
    if foreign_owner(credentials, path) is not None:
        raise PermissionError("another user listens there")


def _parsed(received: bytes) -> tuple[int, bytes]:
    head, end, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    lengths = [
        int(line.partition(b":")[2])
        for line in lines[1:]
        if line.startswith(b"content-length:")
    ]
    if not end or lengths != [len(body)]:
        raise OSError("the daemon hung up")
    return int(lines[0].split()[1]), body
