"""Whether Codex runs our hooks: it skips those that the user has not reviewed, in silence."""

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

from mnemosyned.setup.documents.paths import Json, value_at
from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import starts_ours
from mnemosyned.setup.targets.shapes import settings_of

ANSWER_S = 10
ANSWER_BYTES_MAX = 1 << 20
_LISTING = 2
"""The id of the request for the hooks."""


def untrusted(machine: Machine, folder: Path) -> list[str]:
    """The events of our hooks that Codex skips, by its own word or by its files."""
    program = machine.program("codex")
    listed = None if program is None else listed_hooks(program, machine)
    if listed is not None:
        return [
            str(hook.get("eventName"))
            for hook in listed
            if starts_ours(str(hook.get("command")))
            and not (hook.get("trustStatus") == "trusted" and hook.get("enabled"))
        ]
    state = value_at(settings_of(folder / "config.toml"), ("hooks", "state"))
    entries = state if isinstance(state, dict) else {}
    return [
        event
        for event, key in _keys(folder / "hooks.json")
        if not _is_trusted(entries.get(key))
    ]


def _is_trusted(entry: Json) -> bool:
    has_hash = isinstance(entry, dict) and "trusted_hash" in entry
    return has_hash and entry.get("enabled") is not False


def _keys(file: Path) -> Iterator[tuple[str, str]]:
    """The event of each hook of ours, and the key under which Codex keeps its trust."""
    events = settings_of(file).get("hooks")
    for event, groups in (events if isinstance(events, dict) else {}).items():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for index, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and starts_ours(command):
                    yield event, f"{file}:{label}:{index}:{place}"


def listed_hooks(program: Path, machine: Machine) -> list[dict[str, Json]] | None:
    """The user's hooks as Codex lists them; None if it does not answer."""
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
            return _answered(process, messages)
        except (OSError, ValueError, AttributeError):
            return None
        finally:
            process.kill()


def _answered(
    process: subprocess.Popen[bytes], messages: list[Json]
) -> list[dict[str, Json]] | None:
    given, answers = process.stdin, process.stdout
    if given is None or answers is None:
        return None
    given.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    given.flush()
    for line in _lines(answers):
        answer = json.loads(line)
        if answer.get("id") == _LISTING:
            folders = answer["result"]["data"] if "result" in answer else None
            return folders and [hook for each in folders for hook in each["hooks"]]
    return None


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines that come in time."""
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
