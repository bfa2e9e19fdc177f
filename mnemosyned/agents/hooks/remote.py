"""Hook with a memory on a server: one call over HTTPS, then the transcript's new messages.

The server can read no file of this machine: it names the byte from which the hook is to read the
transcript and send its messages. A call that does not reach it waits in a spool of its own. The stricter of
this machine's settings and the server's apply.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import time

from mnemosyned import socket_path
from mnemosyned.agents.hooks import client, spool, withheld
from mnemosyned.client.http import LIMITED, exchange
from mnemosyned.client.remote import RemoteDaemon, remote_daemon, remote_of
from mnemosyned.errors import ConfigInvalid
from mnemosyned.importers.projects import project_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Fields = dict[str, Any]


LIMIT_S = 1.5
"""Longest wait for the answer, unless the user says otherwise."""
SEND_S = 1.0
"""Seconds for sending messages while the tool waits, before it ends or compacts the conversation."""
LOOK_AGAIN_S = 2.0
"""Seconds until the transcript is read again, as tools write the last lines of a turn after their hook."""
AFTERWARDS_S = 20.0
"""Time limit of the process that sends the rest while the tool continues."""
AWAY_S = 30.0
"""Seconds after a wait in vain in which calls go into the spool without another attempt."""
AWAY = ".away"
LATER = frozenset({401, 403, 404, LIMITED})
"""Refusals that may end later, by a new login or scope, an upgrade or a pause: the call waits."""
PART_BYTES = 256 * 1024
"""Maximum bytes read of a transcript for a call."""


def handle_event(payload: bytes) -> str | None:
    """Handle an event if its memory is on a server, and return None.

    If the memory is on this machine, only return JSON members for the call of the local daemon, with a
    comma at the end. On a wrong URL or login, print a warning and return None.
    """
    try:
        fields = json.loads(payload)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        client.print_once(client.NOTHING)
        return None
    directories = find_directories(fields, os.environ, socket_path.working_directory())
    directory = directories[0]
    remote, memory = None, ""
    try:
        if url := socket_path.url_from_environment():
            remote = remote_daemon(url)
        elif saved := socket_path.saved_connection():
            used = saved.enter(directory)
            remote = None if used == socket_path.LOCAL else remote_of(saved)
            memory = saved.describe(used)
    except ValueError as error:
        # Loaded here: a login that works needs nothing of it.
        from mnemosyned.agents.hooks.fallback import format_warning  # noqa: PLC0415

        name = fields.get("hook_event_name")
        client.print_once(
            format_warning(name if isinstance(name, str) else "", str(error))
        )
        return None
    if remote is None:
        return f'"memory":{json.dumps(memory)},'
    project = project_of(directory, override=os.environ.get("MNEMOSYNE_PROJECT", ""))
    former = [] if remote.owner else project.former  # its members may share a path
    known = {"project": project.key, "former": former, "memory": memory}
    further = f"{json.dumps(known)[1:-1]},"
    server = Server(remote)
    try:
        server.settings = withheld.own_settings()
    except ConfigInvalid as error:
        # Loaded here: settings without a mistake need nothing of it.
        from mnemosyned.agents.hooks import fallback  # noqa: PLC0415

        said = f"{error.message}; until that is corrected, what is said waits here"
        late = client.build_envelope(payload, further=further)
        notes = (said, f"{said}, but the spool or the disk is full")
        client.print_once(
            fallback.put_aside(server.place, payload, late, notes, "settings")
        )
        return None
    answer = _withhold(server.settings, fields, directories)
    if answer is None:
        _post_event(server, payload, fields, further)
    else:
        client.print_once(answer)
    return None


def _withhold(
    settings: withheld.OwnSettings | None, fields: Fields, directories: Sequence[str]
) -> bytes | None:
    """Return the hook's answer to an event that `settings` keep from the server; None if it may be sent.

    If the settings keep the event's conversation from the server, the transcript is marked as withheld. Raises
    `OSError`.
    """
    is_excluded = withheld.is_excluded(settings, directories)
    if settings is None or (settings.capture and not is_excluded):
        return None
    # Loaded here: few people set this.
    from mnemosyned.agents.hooks import events  # noqa: PLC0415
    from mnemosyned.importers.transcripts import is_plausible  # noqa: PLC0415

    path = client.find_transcript(fields, os.environ)
    part = describe_transcript(path)
    withheld.withhold(path, part)
    call = events.parse_call(fields, os.environ, arguments=tuple(sys.argv[1:3]))
    # A server stores nothing of a transcript that is only described.
    is_stored = not (part and is_plausible(path)) and bool(
        call.messages or events.hook_messages(call)
    )
    if not (is_excluded or is_stored) and settings.tell and events.takes_context(call):
        return None
    return json.dumps(events.make_answer(call)).encode()


def find_directories(
    fields: Fields, environment: Mapping[str, str], own: str
) -> list[str]:
    """Return the directories that an event names, the project's first; without any, `own`, the hook's."""
    variables = [name for name in client.ENVIRONMENT if name.endswith("_PROJECT_DIR")]
    named = [environment.get(name, "") for name in variables]
    return [*filter(None, [*named, client.find_directory(fields)])] or [own]


class Server:
    """A connection to the daemon on a server, and the spool of calls that wait for it."""

    def __init__(self, remote: RemoteDaemon) -> None:
        self.remote = remote
        place = (f"{remote.host}:{remote.port}", remote.owner_number, remote.owner)
        name = "@".join(filter(None, place)).replace("%", "%25").replace("/", "%2F")
        self.place = spool.folder(name)
        self.settings: withheld.OwnSettings | None = None
        """Those of this machine; None for the defaults."""
        self.status = 0
        """HTTP status of the last answer."""
        self.fault = ""
        """The reason why the server's certificate is not accepted; empty if it is."""
        self.wanted: int | None = None
        """The byte from which the last answer has the transcript read; None if not."""
        self.is_urgent = False
        """Whether that is to happen before the tool goes on."""
        self._connection: socket.socket | None = None

    def post(self, body: bytes) -> tuple[int, bytes]:
        """Post a hook call; return HTTP status and body, with 503 for any status in `LATER`.

        Sets `status`, `wanted` and `is_urgent`. Raises `OSError` if the server is or was just unreachable.
        """
        head = (
            f"POST {client.HOOKS_PATH} HTTP/1.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        request = head.encode() + self.remote.headers + b"\r\n" + body
        connection = self._connection = self._connection or self._connect()
        response = exchange(
            connection,
            request,
            reset_is_unread=False,
            bytes_max=client.ANSWER_BYTES_MAX,
        )
        if not response.stays_open:
            self._connection = None
        wanted = response.headers.get("mnemosyne-transcript", "")
        byte, _, when = wanted.partition(";")
        self.wanted = int(byte) if byte.isdigit() else None
        self.is_urgent = bool(when)
        self.status = response.status
        return 503 if self.status in LATER else self.status, response.body

    def _connect(self) -> socket.socket:
        """Return a connection; set `fault` if the server is not trusted. Raises `OSError`.

        For `AWAY_S` after a call without an answer, it raises at once, without trying.
        """
        if spool.age_s(self.place, AWAY) < AWAY_S:
            raise ConnectionError("the server did not answer lately")
        if not self.remote.tls:
            return socket.create_connection((self.remote.host, self.remote.port))
        # Loaded here: http:// needs none of it.
        from mnemosyned.client.tls import connect, tls_context  # noqa: PLC0415

        # Of the resolver in the C library, which no signal interrupts.
        os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
        try:
            return connect(self.remote, tls_context(self.remote.ca), AFTERWARDS_S)
        except OSError as error:
            self.fault = str(error) if getattr(error, "is_foreign", False) else ""
            raise

    def post_late(self, content: bytes) -> int:
        """Post a call from the spool, and the messages of its transcript; return the HTTP status.

        The status is 503 if some messages could not be sent, and 400 if the call is damaged, or of a folder
        that is excluded now.
        """
        try:
            envelope = json.loads(content)
            fields, variables = envelope["payload"], envelope["environment"]
            path = client.find_transcript(fields, variables)
            own = envelope.get("directory", "")
            directories = find_directories(fields, variables, own)
        except (ValueError, LookupError, TypeError, AttributeError):
            return 400
        if withheld.is_excluded(self.settings, directories):
            return 400
        envelope["transcript"] = describe_transcript(path)
        status, _ = self.post(json.dumps(envelope).encode())
        wanted = self.wanted
        if status == spool.OK and wanted is not None:
            return spool.OK if send_messages(self, envelope, path, wanted) else 503
        return status


def _post_event(server: Server, payload: bytes, fields: Fields, further: str) -> None:
    """Post an event, print the answer, and send messages that the server lacks.

    If the server does not answer or takes nothing now, the call waits in the spool; if refused, it is dropped.
    `further` is JSON text of more members of the call, each with a comma behind it.
    """
    path = client.find_transcript(fields, os.environ)
    described = json.dumps(describe_transcript(path))
    with_transcript = f'{further}"transcript":{described},'
    limit_s = client.read_limit(LIMIT_S)
    settings = server.settings
    captures, tells = (settings.capture, settings.tell) if settings else (True, True)
    envelope = client.build_envelope(
        payload, further=with_transcript, limit_s=limit_s if tells else 0.0
    )
    status, answer = client.post_in_time(lambda: server.post(envelope), limit_s)
    if status == spool.OK:
        client.print_once(answer)
        _send_rest(server, json.loads(envelope), path)
        return
    if status in spool.REFUSED:
        client.print_once(client.NOTHING)
        return
    if status == client.TIMED_OUT:
        spool.touch(server.place, AWAY)
    # Loaded here: with the server up nothing of it is needed.
    from mnemosyned.agents.hooks import fallback  # noqa: PLC0415

    url = server.remote.url
    late = client.build_envelope(payload, further=further)
    reason = f"is not trusted ({server.fault})" if server.fault else "does not answer"
    code = ""
    if server.status:
        try:
            error = json.loads(answer)["error"]
            code, reason = error["code"], f"stores nothing now ({error['message']})"
        except (ValueError, LookupError, TypeError):  # of a proxy
            reason = f"answers {server.status}"
    until = "and is remembered there later"
    if server.status == 401:
        reason = f"refuses the token {server.remote.token_origin}"
        step = (
            f"log in: mnem login {url}" if server.remote.saved else "replace that token"
        )
        until = f"until you {step}"
    said = f"{url} {reason}; what is said now waits here {until}"
    if server.remote.owner and code == "scope_missing":
        # A group's reader would fill the spool for nothing. Once the reader may write, a hook sends the
        # transcript.
        late = b""
        said = f"{url} {reason}; what is said is not stored; mnem use chooses another memory for this folder"
    if not captures:
        late = b""
        said = f"{url} {reason}; agents are given nothing of it"
    full = f"{url} does not take what is said, and the spool for it or the disk is full"
    # Each apart: after a slow answer the user still learns that the token is refused.
    cause = "untrusted" if server.fault else str(server.status or "")
    notes = (said, full)
    client.print_once(fallback.put_aside(server.place, payload, late, notes, cause))


def _send_rest(server: Server, envelope: Fields, path: str) -> None:
    """Send the messages that the server asked for, and the calls in the spool, in a child process.

    Waits for the child only if the tool ends or compacts the conversation. The child also sends lines
    that the tool writes a little later, and renews the token if due.
    """
    wanted, is_urgent, saved = server.wanted, server.is_urgent, server.remote.saved
    is_renewal_due = saved is not None and saved.is_renewal_due
    captures = server.settings is None or server.settings.capture
    is_waiting = captures and bool(
        wanted is not None or spool.list_waiting(server.place)
    )
    if not (is_waiting or is_renewal_due):
        return
    if child := os.fork():
        if is_urgent:
            signal.setitimer(signal.ITIMER_REAL, SEND_S, client.AGAIN_S)
            os.waitpid(child, 0)  # the alarm ends this process, and not that one
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    server.remote.renew_if_due()  # no alarm: a successor that was issued must be saved
    signal.setitimer(signal.ITIMER_REAL, AFTERWARDS_S, client.AGAIN_S)
    if not captures:
        return
    if wanted is not None:
        send_or_keep(server, envelope, path, wanted)
        if not is_urgent:
            time.sleep(LOOK_AGAIN_S)
            send_or_keep(server, envelope, path, None)
    spool.hand_in(server.place, server.post_late)


def send_or_keep(
    server: Server, envelope: Fields, path: str, wanted: int | None
) -> None:
    """Send messages from byte `wanted` on; None asks the server from which. Keep the call until all are sent.

    It stays in the spool until then, as a laptop may fall asleep or lose its network.
    """
    # Loaded here: no tool waits for it.
    from mnemosyned.agents.hooks.fallback import choose_file_name  # noqa: PLC0415

    name = choose_file_name(envelope["payload"])
    late = json.dumps({**envelope, "late": True}).encode()
    try:
        changed_ns = spool.put(server.place, name, late)
    except OSError:
        changed_ns = 0
    if wanted is None:
        is_sent = server.post_late(late) == spool.OK
    else:
        is_sent = send_messages(server, envelope, path, wanted)
    if is_sent and changed_ns:
        spool.delete_unchanged(os.path.join(server.place, name), changed_ns)


# ------------------------------------------------------------- transcripts


def describe_transcript(path: str) -> Fields | None:
    """Return a transcript's device, inode and size; None if empty, another user's or no file."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not (is_own and status.st_size):
        return None
    return {"file": f"{status.st_dev}:{status.st_ino}", "size": status.st_size}


def send_messages(server: Server, envelope: Fields, path: str, wanted: int) -> bool:
    """Send a transcript's messages from byte `wanted` on; return False if some are left. Raises `OSError`."""
    # Loaded here: it takes 30 ms, for which no tool waits.
    import msgspec  # noqa: PLC0415

    from mnemosyned.importers import transcripts  # noqa: PLC0415

    part = describe_transcript(path)
    while part is not None:  # ends with the file
        begin, withheld_at = withheld.find_sendable(path, part, wanted)
        if begin is None:
            break
        try:
            reading = transcripts.read_transcript(
                path, position=begin, file=part["file"], bytes_max=PART_BYTES
            )
        except transcripts.TranscriptRefused:
            break
        if reading.position == begin:
            break
        wanted = reading.position
        sent = {
            **part,
            "position": wanted,
            "messages": [
                message
                for message in reading.messages
                if message.created_at and message.created_at.timestamp() > withheld_at
            ],
            "conversation": reading.conversation,
        }
        call = {**envelope, "late": True, "transcript": sent}
        if server.post(msgspec.json.encode(call))[0] != spool.OK:
            return False
        if reading.complete:
            break
    return True
