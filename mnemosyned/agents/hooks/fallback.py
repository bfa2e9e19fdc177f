"""A hook without a daemon: puts the call into the spool and warns now and then."""

from __future__ import annotations

import json
import os
import time
import tomllib
import zlib

from mnemosyned.agents.hooks import client, spool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


DOWN_NOTES = (
    "mnemosyned does not answer; what is said now waits until it runs again: mnem start",
    "mnemosyned does not answer and its spool or the disk is full; start it: mnem start",
)
BUSY_NOTES = (
    "mnemosyned runs, but is busy; what is said now waits and is remembered later",
    "mnemosyned runs, but is busy, and its spool or the disk is full; if this goes on: mnem doctor",
)
"""Warnings to the user about a call that waits, and about a full spool."""


def put_aside(
    place: str,
    payload: bytes,
    envelope: bytes,
    notes: tuple[str, str],
    cause: str = "",
) -> bytes:
    """Put a call into the spool at `place` if its event stores memories; return the JSON for the hook to print.

    `payload` is the tool's event, and `envelope` the call to store, or empty to store none. A call that the
    spool or the disk cannot take is counted as lost. `notes` are the warnings for a call that waits, and for a
    full spool. The user is warned at a session's start, and otherwise at most once an hour for each `cause`.
    """
    try:
        fields = json.loads(payload)
    except ValueError:
        return b"{}"
    if not isinstance(fields, dict):
        return b"{}"
    with open(os.path.join(os.path.dirname(__file__), "events.toml"), "rb") as file:
        tables = tomllib.load(file)
    name = client.find_text(fields, tables["fields"]["name"])
    letters = "".join(filter(str.isalpha, name)).lower()
    is_kept = True
    is_event = any(letters in names.split() for names in tables["events"].values())
    if envelope and (is_event or not name):
        try:
            is_kept = bool(spool.put(place, choose_file_name(fields), envelope))
        except OSError:
            is_kept = False
    if not is_kept:
        spool.count_lost(place)
    is_start = (
        letters == "sessionstart" and fields.get("source") not in tables["continued"]
    )
    mark = spool.WARNED + cause
    is_due = spool.age_s(place, mark) >= 3_600
    if not (is_start or (is_due and spool.touch(place, mark))):
        return b'{"continue": true}' if name == "beforeSubmitPrompt" else b"{}"
    lost = os.path.join(place, spool.LOST)
    count = os.path.getsize(lost) if os.path.exists(lost) else 0
    text = f"; events lost since the last warning: {count:,}" if count else ""
    warning = format_warning(name, (notes[0] if is_kept else notes[1]) + text)
    if count and warning != b"{}":
        os.unlink(lost)
    return warning


def choose_file_name(fields: dict[str, Any]) -> str:
    """Return the name of a call's file in the spool: one per transcript, else one per call."""
    # Not one that the environment alone names: unless it can be read, each call has words of its own.
    transcript = client.find_transcript(fields, {})
    if os.path.isfile(transcript):
        stem = "".join(filter(str.isalnum, os.path.basename(transcript)))[-60:]
        return f"t-{stem}-{zlib.crc32(transcript.encode('utf-8', 'replace')):08x}"
    return f"c-{time.time_ns()}-{os.getpid()}"


def format_warning(name: str, text: str) -> bytes:
    """Return the JSON object that shows a warning to the user; `{}` if the tool cannot show any."""
    if name == "beforeSubmitPrompt":
        return json.dumps({"continue": True, "user_message": text}).encode()
    if name[:1].isupper():  # Claude Code's form, which the others took
        return json.dumps({"systemMessage": text}).encode()
    return b"{}"
