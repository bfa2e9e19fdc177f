"""OpenAI Codex: its settings, and whether it trusts our hooks."""

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
from mnemosyned.agents.setup.parts import (
    CLAUDE_EVENTS,
    NAME,
    Machine,
    Parts,
    SetupPart,
    Site,
    Target,
    grouped_hooks,
    server,
    settings_of,
    starts_ours,
)

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
        for event, key in _trust_keys(folder / "hooks.json")
        if not _is_trusted(entries.get(key))
    ]


def _is_trusted(entry: Json) -> bool:
    has_hash = isinstance(entry, dict) and "trusted_hash" in entry
    return has_hash and entry.get("enabled") is not False


def _trust_keys(file: Path) -> Iterator[tuple[str, str]]:
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
            return _listed_by_server(process, messages)
        except (OSError, ValueError, AttributeError):
            return None
        finally:
            process.kill()


def _listed_by_server(
    process: subprocess.Popen[bytes], messages: list[Json]
) -> list[dict[str, Json]] | None:
    given, answers = process.stdin, process.stdout
    if given is None or answers is None:
        return None
    given.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    given.flush()
    for line in _lines_until_deadline(answers):
        answer = json.loads(line)
        if answer.get("id") == _LISTING:
            folders = answer["result"]["data"] if "result" in answer else None
            return folders and [hook for each in folders for hook in each["hooks"]]
    return None


def _lines_until_deadline(stream: IO[bytes]) -> Iterator[bytes]:
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


CODEX_EVENTS = {**CLAUDE_EVENTS, "SessionEnd": 3}
VARIABLES = ("XDG_RUNTIME_DIR", "MNEMOSYNE_SOCKET")
"""Codex starts servers without these unless they are named; they lead to the daemon's socket."""


def _folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", machine.home / ".codex")


def _parts(site: Site, folder: Path) -> Parts:
    entry: SetupPart = server(
        folder / "config.toml",
        site.programs,
        section="mcp_servers",
        env_vars=[*VARIABLES],
    )
    return [entry, *grouped_hooks(folder / "hooks.json", site.programs, CODEX_EVENTS)]


def _plugins(machine: Machine) -> list[str]:
    plugins = settings_of(_folder(machine) / "config.toml").get("plugins")
    names = plugins if isinstance(plugins, dict) else {}
    return [name for name in names if name.split("@")[0] == NAME]


def _switched_off(machine: Machine) -> list[str]:
    folder = _folder(machine)
    settings = settings_of(folder / "config.toml")
    if value_at(settings, ("features", "hooks")) is False:
        return ["features.hooks is false in config.toml: no hook runs"]
    if events := untrusted(machine, folder):
        skipped = ", ".join(events)
        return [f"not trusted yet, and skipped: {skipped}; open /hooks in Codex once"]
    return []


CODEX = Target(
    name="codex",
    title="Codex",
    programs=("codex",),
    folders=lambda machine: [_folder(machine)],
    parts=lambda site: _parts(site, _folder(site.machine)),
    project_parts=lambda site: _parts(
        site, (site.project or site.machine.directory) / ".codex"
    ),
    steps=(
        "open /hooks in Codex once and trust the hooks: until then it skips them in silence",
    ),
    unconfirmed=("which variables Codex hands to servers by default",),
    listing=("mcp", "get", NAME),
    plugins=_plugins,
    switched_off=_switched_off,
    clients=("codex",),
    transcripts=(".codex/sessions/*/*/*/*.jsonl",),
)
