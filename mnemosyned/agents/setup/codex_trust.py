"""Trust of OpenAI Codex in our hooks: it skips hooks that the user has not reviewed, in silence."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mnemosyned.agents.setup.documents import Json, value_at
from mnemosyned.agents.setup.parts import Machine, settings_of, starts_our_program

ANSWER_S = 10
ANSWER_BYTES_MAX = 1 << 20
_LISTING = 2
"""The id of the request for the hooks."""


def untrusted_events(machine: Machine, folder: Path) -> list[str]:
    """Return the events of our hooks that Codex skips, from its program or else from its files."""
    program = machine.program("codex")
    listed = None if program is None else listed_hooks(program, machine)
    if listed is not None:
        return [
            str(hook.get("eventName"))
            for hook in listed
            if starts_our_program(str(hook.get("command")))
            and not (hook.get("trustStatus") == "trusted" and hook.get("enabled"))
        ]
    state = value_at(settings_of(folder / "config.toml"), ("hooks", "state"))
    entries = state if isinstance(state, dict) else {}
    events = []
    for event, key in _trust_keys(folder / "hooks.json"):
        entry = entries.get(key)
        entry = entry if isinstance(entry, dict) else {}
        if "trusted_hash" not in entry or entry.get("enabled") is False:
            events.append(event)
    return events


def _trust_keys(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the event of each hook of ours, and the key under which Codex keeps its trust."""
    events = settings_of(file).get("hooks")
    for event, groups in (events if isinstance(events, dict) else {}).items():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for index, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and starts_our_program(command):
                    yield event, f"{file}:{label}:{index}:{place}"


def listed_hooks(program: Path, machine: Machine) -> list[dict[str, Json]] | None:
    """Return the user's hooks as Codex lists them; None if it does not answer."""
    about = {"name": "mnem", "title": "mnem", "version": "1"}
    messages: list[Json] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": about}},
        {"method": "initialized"},
        {
            "id": _LISTING,
            "method": "hooks/list",
            "params": {"cwds": [str(machine.home)]},
        },
    ]
    try:
        process = subprocess.Popen(  # noqa: S603 the program was found on the user's PATH
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=machine.home,
            env=dict(machine.environment),
        )
    except OSError:
        return None
    with process:
        try:
            return _ask_for_hooks(process, messages)
        except (OSError, ValueError, AttributeError):
            return None
        finally:
            process.kill()


def _ask_for_hooks(
    process: subprocess.Popen[bytes], messages: list[Json]
) -> list[dict[str, Json]] | None:
    if process.stdin is None or process.stdout is None:
        return None
    lines = [json.dumps(message).encode() + b"\n" for message in messages]
    process.stdin.write(b"".join(lines))
    process.stdin.flush()
    for line in _lines_in_time(process.stdout):
        answer = json.loads(line)
        if answer.get("id") == _LISTING:
            folders = answer["result"]["data"] if "result" in answer else None
            return folders and [hook for each in folders for hook in each["hooks"]]
    return None


def _lines_in_time(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines until `ANSWER_S` has passed or `ANSWER_BYTES_MAX` bytes hold no line end."""
    deadline = time.monotonic() + ANSWER_S
    pending = b""
    while len(pending) < ANSWER_BYTES_MAX:
        wait = deadline - time.monotonic()
        if wait <= 0 or not select.select([stream], [], [], wait)[0]:
            return
        data = os.read(stream.fileno(), 65_536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        yield from lines
