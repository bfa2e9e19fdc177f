"""The login on a server: a code exchanged for a token, the files that keep both, and its renewal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from mnemosyned import socket_path
from mnemosyned.client.connection import Connection
from mnemosyned.client.remote import RemoteDaemon, read_token, remote_of
from mnemosyned.errors import Kind, MnemosynedError
from mnemosyned.memory.engine_ports import Enrolment
from mnemosyned.paths import replacing_file
from mnemosyned.verbs.owners import Login, Renew

AGAIN_S = 60.0
"""Time until another attempt after the server was not reached."""
DAY_S = 86_400.0


def check_writable() -> None:
    """Raise `OSError` if a login's files cannot be written; call this before a login code is used up."""
    with _lock_connection():
        probe = Path(socket_path.connection_path()).with_name(".connection.probe")
        with replacing_file(probe) as file:
            file.write(b"\n")
        probe.unlink()


def ask_for_token(remote: RemoteDaemon, request: Login | Renew) -> Enrolment:
    """Send a request without token and owner (removed from `remote`); return the token that was issued."""
    remote.saved = remote.owner = None  # else it would be renewed before
    address = remote.load_authorities()
    with Connection.to(address, timeout_s=20.0) as client:
        return client.call(request)


def save_login(
    url: str,
    *,
    ca: str | None,
    issued: Enrolment | None = None,
    token_file: str | None = None,
    folders: Mapping[str, str] | None = None,
) -> socket_path.SavedConnection:
    """Write the files of a login, delete tokens of earlier ones, and return the saved connection.

    The token is `issued`, or stays in `token_file` and is not renewed. `folders` says which memory a folder
    uses; None keeps an earlier choice. Raises `OSError`, and `ValueError` for an unusable token file.
    """
    with _lock_connection():
        path = Path(socket_path.connection_path())
        url = url.rstrip("/")
        own_file = path.with_name(f"connection@{url.rpartition('/')[2].lower()}.token")
        fields = {
            "url": url,
            "token_file": token_file or str(own_file),
            "ca": ca and str(Path(ca).expanduser().absolute()),
            "folders": _read_folders() if folders is None else folders,
        }
        if token_file:
            read_token(token_file)
        saved = _write_connection(fields, issued)
        _former_path().unlink(missing_ok=True)
        _delete_tokens(path, but=saved.token_file)
        return saved


def choose_memory(memory: str, folders: list[str]) -> socket_path.SavedConnection:
    """Save the `memory` of folders and all below: `SERVER`, `LOCAL` or a group; return the connection.

    Raises `ValueError` if there is no login, and `OSError`.
    """
    with _lock_connection():
        saved = socket_path.saved_connection()
        if saved is None:
            raise ValueError("there is no login on a server yet: mnem login URL")
        chosen = dict.fromkeys(map(os.path.realpath, folders), memory)
        return _write_connection({**vars(saved), "folders": saved.folders | chosen})


def renew_token() -> socket_path.SavedConnection | None:
    """Replace the login's token if renewal is due; return the login's connection, None if unknown.

    While another process renews, return None at once. Raise no errors; a later call tries again.
    """
    with contextlib.suppress(OSError, ValueError), _lock_connection(waits=False):
        saved = socket_path.saved_connection()
        if saved is None or not saved.is_renewal_due:
            return saved
        # Written first: where it cannot be, a successor would be issued at each call, and lost.
        waiting = _write_connection({**vars(saved), "renew_at": time.time() + AGAIN_S})
        try:
            issued = ask_for_token(remote_of(saved), Renew())
        except (MnemosynedError, ValueError) as error:
            kind = getattr(error, "kind", None)
            if kind not in (Kind.UNAUTHORIZED, Kind.FORBIDDEN, Kind.NOT_FOUND):
                return waiting
            return _write_connection({**vars(saved), "renew_at": time.time() + DAY_S})
        return _write_connection(vars(saved), issued)
    return None


def remove_login() -> socket_path.SavedConnection | None:
    """Log out: delete the token, and return the connection that was saved, or None if it cannot be read.

    Its file is kept under another name, from which the next login takes the folders. Raises `OSError`.
    """
    with _lock_connection():
        path = Path(socket_path.connection_path())
        try:
            saved = socket_path.saved_connection()
        except ValueError:
            saved = None
        if path.exists():
            path.replace(_former_path())
        _delete_tokens(path)
        return saved


def _former_path() -> Path:
    """Return the path to which a logout renames the login's file."""
    return Path(socket_path.connection_path()).with_name("connection.former.json")


def _read_folders() -> dict[str, str]:
    """Return {folder: memory} of the last login: `SERVER` for all without a login, `LOCAL` if unreadable."""
    for file in (Path(socket_path.connection_path()), _former_path()):
        try:
            return dict(json.loads(file.read_bytes())["folders"])
        except FileNotFoundError:
            continue
        except (OSError, ValueError, LookupError, TypeError):
            return {socket_path.EVERYWHERE: socket_path.LOCAL}
    return {socket_path.EVERYWHERE: socket_path.SERVER}


def _delete_tokens(path: Path, *, but: str = "") -> None:
    """Delete the token files of logins next to `path`, except the file `but`."""
    for file in path.parent.glob("connection*.token"):
        if str(file) != but:
            file.unlink(missing_ok=True)


def _write_connection(
    fields: Mapping[str, object], issued: Enrolment | None = None
) -> socket_path.SavedConnection:
    """Write the files of the connection and of an issued token; return the connection.

    A token that expires is to be renewed after half of its life. Raises `OSError`.
    """
    if issued is not None:
        with replacing_file(Path(str(fields["token_file"]))) as file:
            file.write(f"{issued.token}\n".encode())
        renew_at = None
        if issued.expires_at is not None:
            now = time.time()
            renew_at = now + max(AGAIN_S, (issued.expires_at.timestamp() - now) / 2)
        fields = {**fields, "owner": issued.owner, "renew_at": renew_at}
    text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
    with replacing_file(Path(socket_path.connection_path())) as file:
        file.write(text.encode())
    return socket_path.SavedConnection(json.loads(text))


@contextlib.contextmanager
def _lock_connection(*, waits: bool = True) -> Iterator[None]:
    """Keep other processes from changing the login's files within the block.

    Raises `OSError`: a `BlockingIOError` if another process is changing them and `waits` is False.
    """
    path = Path(socket_path.connection_path())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(
        path.with_name(".connection.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield
    finally:
        os.close(lock)
