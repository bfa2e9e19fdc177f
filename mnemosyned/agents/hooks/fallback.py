"""A hook without a daemon: puts the call into the spool and warns now and then."""

from __future__ import annotations

import json
import os
import time
import zlib

from mnemosyned.agents.hooks import spool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


WARN_EVERY_S = 3_600
CONTINUED = ("resume", "compact", "fork")
STARTS = ("sessionstart",)
KEPT = (
    *STARTS, "userpromptsubmit", "userpromptsubmitted", "beforesubmitprompt", "beforeagent",
    "preuserprompt", "chatmessage", "stop", "agentstop", "afteragent", "afteragentresponse",
    "postcascaderesponse", "sessionidle", "precompact", "precompress", "sessioncompacting",
    "sessionend", "sessiondeleted", "preinvocation",
)  # fmt: skip
"""The events that store something, by their names in lower case, letters alone."""
NAMES = ("hook_event_name", "hookEventName", "agent_action_name", "event")
WAITS = (
    "mnemosyned does not answer; what is said now waits and is remembered when it runs again: "
    "mnem start"
)
FULL = "mnemosyned does not answer and its spool is full; start it: mnem start"

URL_VARIABLE = "MNEMOSYNE_URL"
ELSEWHERE = (
    f" (hooks speak to the daemon of this machine alone, and not to {URL_VARIABLE})"
)


def put_aside(payload: bytes, envelope: bytes) -> bytes:
    """Keep what is to be stored, and return what to print."""
    fields = _fields(payload)
    if fields is None:
        return b"{}"
    name = next((fields[key] for key in NAMES if isinstance(fields.get(key), str)), "")
    letters = "".join(filter(str.isalpha, name)).lower()
    is_kept = True
    if letters in KEPT or not name:
        try:
            is_kept = spool.put(_file_name(fields), envelope)
        except OSError:
            is_kept = False
    is_start = letters in STARTS and fields.get("source") not in CONTINUED
    if not (is_start or _warning_is_due()):
        return _silence(name)
    words = WAITS if is_kept else FULL
    return _warning(name, words + ELSEWHERE * (URL_VARIABLE in os.environ))


def _fields(payload: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(payload)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _file_name(fields: dict[str, Any]) -> str:
    """Return one name for all calls of a session whose transcript has the words, else a new one."""
    transcript = fields.get("transcript_path") or fields.get("transcriptPath")
    if isinstance(transcript, str) and os.path.isfile(transcript):
        stem = "".join(filter(str.isalnum, os.path.basename(transcript)))[-60:]
        return f"t-{stem}-{zlib.crc32(transcript.encode('utf-8', 'replace')):08x}"
    return f"c-{time.time_ns()}-{os.getpid()}"


def _warning_is_due() -> bool:
    """Whether the last warning is an hour ago; then note this one."""
    mark = os.path.join(spool.folder(), spool.WARNED)
    try:
        if time.time() - os.stat(mark).st_mtime < WARN_EVERY_S:
            return False
    except OSError:
        pass
    try:
        os.makedirs(spool.folder(), mode=0o700, exist_ok=True)
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.utime(mark)
    except OSError:
        return False
    return True


def _silence(name: str) -> bytes:
    return b'{"continue": true}' if name == "beforeSubmitPrompt" else b"{}"


def _warning(name: str, text: str) -> bytes:
    """Return a warning for the user, in the form of the tool that has an event of this name."""
    if name == "beforeSubmitPrompt":
        return json.dumps({"continue": True, "user_message": text}).encode()
    if name[:1].isupper():  # Claude Code's form, which the others took
        return json.dumps({"systemMessage": text}).encode()
    return b"{}"
