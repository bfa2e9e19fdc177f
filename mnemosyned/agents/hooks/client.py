"""`mnem-hook`: hands a tool's event to the daemon and prints the answer, or fails in silence.

A daemon on a server, after `mnem login` or by `MNEMOSYNE_URL`, is asked by `agents/hooks/remote.py`.

Its start is paid on every event, so it imports next to nothing. It prints exactly one JSON
object, writes nothing to standard error and always exits 0: another code shows an error in the
tool, or blocks it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

from mnemosyned import socket_path
from mnemosyned.agents.hooks import spool
from mnemosyned.client.http import exchange, foreign_listener

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

HOOKS_PATH = "/hooks"
TIMED_OUT = -1
ANSWER_BYTES_MAX = 1 << 20

STDIN_S = 1.0
"""Longest wait for the tool's JSON, which may come late on a busy machine."""
PAUSE_MS = 10
"""Pause after a complete object that counts as the end of input, as some tools never close it."""
LIMIT_S = 0.24
"""Maximum wait for the daemon's answer, unless `WAIT_VARIABLE` is set."""
START_LIMIT_S = 1.5
"""Maximum wait at a session's start, for which tools wait 10 s: on a busy machine, a briefing takes longer."""
LIMIT_MAX_S = 5.0
"""Maximum wait that `WAIT_VARIABLE` may set: tools kill a hook that takes longer."""
WAIT_VARIABLE = "MNEMOSYNE_HOOK_WAIT_S"
FALLBACK_S = 2.5
"""Longest time to store a call, which takes milliseconds unless the machine is very busy.

After it the call is lost, and tools wait 3 s or longer for a hook."""
HAND_IN_S = 0.25
"""Seconds after the start until which a hook posts waiting calls of the spool."""
HAND_IN_MIN_S = 0.1
"""Minimum time to post waiting calls, even on a busy machine, so that the spool gets empty at last."""
AGAIN_S = 0.1
"""Seconds after which the time limit raises again, as Python ignores what is raised in a callback."""
PAYLOAD_BYTES_MAX = 8 << 20
ENVIRONMENT = (
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_SESSION_ID",
    "COPILOT_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "CURSOR_TRANSCRIPT_PATH",
    "DEVIN_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    "QWEN_PROJECT_DIR",
    "MNEMOSYNE_PROJECT",
)
"""Variables that name the tool, the session or the project."""
NOTHING = b"{}"


class TimeIsUp(Exception):
    """The hook has used up its time."""


def main() -> None:
    """Handle one event of a tool, print exactly one JSON object, and exit with 0 at once."""
    sys.unraisablehook = lambda _: None
    try:
        try:
            _handle_event(time.monotonic())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException:  # noqa: BLE001 whatever happened, the tool goes on
        print_once(NOTHING)
    os._exit(0)


def _handle_event(started: float) -> None:
    """Post the tool's JSON object to the daemon and print the answer; `started` is monotonic.

    After an answer, waiting calls are posted too; without one, the call goes into the spool.
    """
    payload = _make_well_formed(_read_payload(started + STDIN_S))
    if not payload:
        print_once(NOTHING)
        return
    started = time.monotonic()
    signal.signal(signal.SIGALRM, _raise_time_is_up)
    further = ""
    has_socket = os.environ.get(socket_path.SOCKET_VARIABLE)
    if os.environ.get(socket_path.URL_VARIABLE) or (
        not has_socket and os.path.exists(socket_path.connection_path())
    ):
        # Loaded here: without a server nothing of it is needed.
        from mnemosyned.agents.hooks import remote  # noqa: PLC0415

        about_memory = remote.handle_event(payload)
        if about_memory is None:
            return
        further = about_memory
    path, place = socket_path.socket_path(), spool.folder()
    is_start = b'"sessionstart"' in payload.lower()
    limit_s = read_limit(START_LIMIT_S if is_start else LIMIT_S)
    envelope = build_envelope(payload, further=further, limit_s=limit_s)
    status, answer = post_in_time(lambda: post(path, envelope), limit_s)
    if status == spool.OK:
        print_once(answer)
        if spool.list_waiting(place):
            left = started + HAND_IN_S - time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, max(left, HAND_IN_MIN_S), AGAIN_S)
            spool.hand_in(place, lambda envelope: post(path, envelope)[0])
        return
    signal.setitimer(signal.ITIMER_REAL, FALLBACK_S, AGAIN_S)
    if status in spool.REFUSED:
        print_once(NOTHING)
        return
    # Loaded here: with the daemon up nothing of it is needed.
    from mnemosyned.agents.hooks import fallback  # noqa: PLC0415

    late = build_envelope(payload)
    notes = fallback.DOWN_NOTES if status == 0 else fallback.BUSY_NOTES
    print_once(fallback.put_aside(place, payload, late, notes))


def _raise_time_is_up(*_: object) -> None:
    """Raise `TimeIsUp`; the handler of the alarm signal at the end of the time limit."""
    raise TimeIsUp


# ------------------------------------------------------------- the daemon


def read_limit(usual_s: float) -> float:
    """Return the seconds to wait for an answer: those that the user set in the environment, or `usual_s`."""
    try:
        wanted = float(os.environ.get(WAIT_VARIABLE, usual_s))
    except ValueError:
        wanted = usual_s
    return min(wanted, LIMIT_MAX_S) if wanted > 0 else usual_s


def post_in_time(
    post: Callable[[], tuple[int, bytes]], limit_s: float
) -> tuple[int, bytes]:
    """Call `post` with a time limit; return the HTTP status and the body.

    The status is `TIMED_OUT` after the limit, and 0 without an answer.
    """
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
            return post()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeIsUp:
        return TIMED_OUT, NOTHING
    except (OSError, ValueError):
        return 0, NOTHING


def post(path: str, body: bytes) -> tuple[int, bytes]:
    """Post a hook call to the daemon's Unix socket at `path`; return HTTP status and body.

    Raises `OSError` if the daemon is not reached, another user listens there, or the answer is
    incomplete. The caller limits the time.
    """
    head = (
        f"POST {HOOKS_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        if foreign_listener(connection, path) is not None:
            raise PermissionError("another user listens there")
        response = exchange(
            connection, head.encode() + body, bytes_max=ANSWER_BYTES_MAX
        )
    return response.status, response.body


# ------------------------------------------------ standard input and output


def print_once(answer: bytes) -> None:
    """Stop the alarm and print `answer`, unless an answer was printed before; ignore a closed output."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    global _printed  # noqa: PLW0603 a process prints once
    if _printed:
        return
    _printed = True
    try:
        left = memoryview(answer + b"\n")
        while left:
            left = left[os.write(1, left) :]
    except OSError:  # nobody reads
        return


_printed = False


def _read_payload(deadline: float) -> bytes:
    """Return the JSON object that the tool writes to standard input, as soon as the object is complete.

    Empty if none is complete before `deadline`, a monotonic time, or if the input is a terminal or closed.
    """
    poll, data = select.poll(), b""
    try:
        if os.isatty(0):
            return b""
        poll.register(0, select.POLLIN | select.POLLHUP)
        while len(data) <= PAYLOAD_BYTES_MAX:
            # After the deadline, look once more: a machine that stood still has the input by then.
            left_ms = max(0, int((deadline - time.monotonic()) * 1_000))
            may_be_whole = data.rstrip().endswith(b"}")
            if poll.poll(min(left_ms, PAUSE_MS) if may_be_whole else left_ms):
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return data.strip()
                data += chunk
            elif may_be_whole and (whole := _cut_first_object(data)):
                return whole
            elif not left_ms:
                return b""
    except (OSError, ValueError):  # closed
        pass
    return b""


def _cut_first_object(data: bytes) -> bytes:
    """Return the first complete JSON object in the bytes; empty if there is none yet."""
    # Loaded here: most tools close standard input, and then nobody need look.
    import json  # noqa: PLC0415

    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return b""
    return text[:end].encode()


def _make_well_formed(payload: bytes) -> bytes:
    """Return the tool's JSON in valid UTF-8: some tools cut a text inside a character."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        pass
    else:
        if b"\\ud" not in payload and b"\\uD" not in payload:  # no surrogate
            return payload
    # Loaded here: few events need it.
    from mnemosyned.text.json_repair import repair_json  # noqa: PLC0415

    return repair_json(payload)


def build_envelope(payload: bytes, *, further: str = "", limit_s: float = 0.0) -> bytes:
    """Return the JSON of a call: the tool's payload, environment, arguments, directory and time.

    Without `limit_s`, the call is marked as late, for the spool. `further` is JSON text of more members,
    each with a comma behind it. `json` is not imported, as that takes long.
    """
    variables = ",".join(
        f"{_quote_json_string(name)}:{_quote_json_string(os.environ[name])}"
        for name in ENVIRONMENT
        if name in os.environ
    )
    arguments = ",".join(map(_quote_json_string, sys.argv[1:3]))
    head = (
        f'{{"environment":{{{variables}}},"arguments":[{arguments}],'
        f'"directory":{_quote_json_string(socket_path.working_directory())},"time":{time.time():.3f},'
        f'"late":{"false" if limit_s else "true"},"limit_s":{limit_s},{further}"payload":'
    )
    return head.encode() + payload.removeprefix(b"\xef\xbb\xbf") + b"}"


def _quote_json_string(text: str) -> str:
    """Return a text as a quoted JSON string; control characters are left out."""
    known = text.encode("utf-8", "replace").decode()
    escaped = known.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join([c for c in escaped if c >= " "]) + '"'


# ------------------------------------------------------- the tool's own JSON


def find_text(fields: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first text under one of the keys that is not empty, or ""."""
    values = map(fields.get, keys)
    return next((text for text in values if isinstance(text, str) and text), "")


def find_transcript(fields: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the path of the transcript that a tool names; empty without one."""
    named = find_text(fields, ("transcript_path", "transcriptPath"))
    return named or environment.get("CURSOR_TRANSCRIPT_PATH", "")


def find_directory(fields: Mapping[str, Any]) -> str:
    """Return the directory named in a tool's JSON, or else the first workspace; empty without both."""
    if named := find_text(fields, ("cwd", "working_dir", "directory")):
        return named
    for roots in map(fields.get, ("workspace_roots", "workspacePaths")):
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            return roots[0].removeprefix("file://")
    return ""
