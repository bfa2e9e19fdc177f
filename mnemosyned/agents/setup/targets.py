"""The tools that can be given memory: `targets.toml` as objects, and packages of plugins."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import subprocess
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Literal

import msgspec

from mnemosyned.agents.setup.documents import Json, value_at
from mnemosyned.agents.setup.parts import (
    NAME,
    OURS,
    EntryPart,
    HeadingPart,
    HookPart,
    Machine,
    OwnFile,
    Parts,
    Programs,
    SetupSite,
    read_document,
    settings_of,
    starts_our_program,
)
from mnemosyned.text.rule_files import read_tables
from mnemosyned.version import __version__

_USUAL_PATHS = {"entry": ("mcpServers", NAME), "hooks": ("hooks",)}


class TargetPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the files that a part can be in; without a file the part is left out there."""

    file: str = ""
    used_with: str = ""
    """File or directory that exists where this place is used; without it the file's directory."""


class PartRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The row of a part in the table."""

    kind: Literal["entry", "hooks", "file"]
    at: tuple[str, ...] | None = None
    """Path of the part in its file, of hooks that of the object of events; None: the usual one."""
    has_version: bool = False
    """Whether the file needs a version number next to the hooks."""
    form: str = ""
    events: str = ""
    label: str = "MCP server"
    """Label of an entry."""
    user: list[str | TargetPlace] = []
    project: str = ""
    unless_hooks_of: str = ""
    """The tool whose hooks this tool runs too: with them it gets none of its own."""
    add: tuple[str, ...] = ()
    """Arguments with which the tool's own program adds the entry of a user."""
    take_out: tuple[str, ...] = ()
    content: str = ""
    """Name of the template of a file of our own."""
    mark: str = ""

    def make_parts(self, target: SetupTarget, site: SetupSite) -> Parts:
        """Return the parts of this row in the project's file, or in the user's files without a project.

        Empty for a tool that also runs the hooks of another tool, if ours are set up there.
        """
        if site.project:
            places = [site.project / self.project] if self.project else []
        else:
            places = list(self._select_places(site.machine))
        if self.unless_hooks_of and not site.project:
            parts = TARGETS[self.unless_hooks_of].parts(site)
            hook = next(part for part in parts if isinstance(part, HookPart))
            document = read_document(hook.file)
            if document and hook.state(document) in OURS:
                places = []
        return [
            part
            for place in places
            for part in self._make_parts_of_file(place, target, site)
        ]

    def _select_places(self, machine: Machine) -> Iterator[Path]:
        """Yield the user's file for each installed variant of the tool, or if none is, for the first one."""
        places = [
            place if isinstance(place, TargetPlace) else TargetPlace(place)
            for place in self.user
        ]
        used = [
            place
            for place in places
            if (
                expand_path(place.used_with, machine)
                if place.used_with
                else expand_path(place.file, machine).parent
            ).exists()
        ]
        for place in used or places[:1]:
            if place.file:
                yield expand_path(place.file, machine)

    def _make_parts_of_file(
        self, file: Path, target: SetupTarget, site: SetupSite
    ) -> Parts:
        """Return the parts that this row writes into a file: a hook for each event, or a single entry or file.

        A name ending in `.json[c]` stands for the `.jsonc` file if it exists, else for the `.json` file.
        """
        stem, found, _ = str(file).partition("[c]")
        if found:
            commented = Path(f"{stem}c")
            file = commented if commented.exists() else Path(stem)
        if self.kind == "file":
            return [
                OwnFile(file, template_text(self.content, site.programs), self.mark)
            ]
        at = _USUAL_PATHS[self.kind] if self.at is None else self.at
        if self.kind == "hooks":
            hooks = hooks_by_event(self.form, self.events, site.programs)
            version = HeadingPart(file, ("version",), 1)
            return [
                *([version] if self.has_version else []),
                *(
                    HookPart(file, (*at, event), hook, label=f"hook {event}")
                    for event, hook in hooks.items()
                ),
            ]
        value = fill_form(self.form, site.programs)
        entry = EntryPart(file, at, value, label=self.label)
        program = str(site.machine.program(target.programs[0]) or "")
        if self.add and program and not site.project:
            words = {"{value}": json.dumps(value)}
            add = (program, *(words.get(word, word) for word in self.add))
            entry = replace(entry, add=add, take_out=(program, *self.take_out))
        return [entry]


class ToolSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A value in a tool's settings."""

    file: str
    path: tuple[str, ...]

    def read(self, machine: Machine) -> Json:
        """Return the setting's value in the tool's file on this machine; None if there is none."""
        return value_at(settings_of(expand_path(self.file, machine)), self.path)


class HookObstacle(ToolSetting, frozen=True, kw_only=True):
    """A setting with which no hook runs."""

    value: bool
    reason: str


class SetupTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A tool that can be given memory."""

    name: str
    title: str
    programs: tuple[str, ...]
    folders: tuple[str, ...]
    """Directories of which at least one exists where the tool has been used."""
    rows: tuple[PartRow, ...] = msgspec.field(name="parts")
    steps: tuple[str, ...] = ()
    """Steps left to the user."""
    notes: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    """Doubts that no real installation has settled."""
    listing: tuple[str, ...] = ()
    """Arguments with which the tool's own program shows the server, offline."""
    plugin_lists: tuple[ToolSetting, ...] = ()
    """Objects with the plugins installed in the tool as keys, such as `mnem@market`."""
    plugin_folders: tuple[str, ...] = ()
    """Directories of our plugin."""
    obstacles: tuple[HookObstacle, ...] = ()
    trust_folder: str = ""
    """Directory of Codex's settings, which say which hooks are trusted."""
    clients: tuple[str, ...] = ()
    """Names under which the daemon knows the tool, besides `name`."""
    transcripts: tuple[str, ...] = ()
    """Patterns of its transcripts, below the home."""

    @property
    def has_project(self) -> bool:
        """Whether the tool has settings for one project, in addition to those of the user."""
        return any(row.project for row in self.rows)

    def parts(self, site: SetupSite) -> Parts:
        """Return the parts that setup writes: entries, hooks and files, for a user or a project."""
        return [part for row in self.rows for part in row.make_parts(self, site)]

    def plugins(self, machine: Machine) -> list[str]:
        """Return where our plugin is installed: names in the tool's lists, and directories."""
        lists = [setting.read(machine) for setting in self.plugin_lists]
        folders = [expand_path(folder, machine) for folder in self.plugin_folders]
        return [
            *(
                name
                for plugins in lists
                if isinstance(plugins, dict)
                for name in plugins
                if name.split("@")[0] == NAME
            ),
            *(str(folder) for folder in folders if folder.is_dir()),
        ]

    def hook_obstacles(self, machine: Machine) -> list[str]:
        """Return the reasons why the tool does not run our hooks, such as settings; empty if it does."""
        reasons = dict.fromkeys(
            obstacle.reason
            for obstacle in self.obstacles
            if obstacle.read(machine) is obstacle.value
        )
        if reasons or not self.trust_folder:
            return list(reasons)
        events = untrusted_events(machine, expand_path(self.trust_folder, machine))
        skipped = f"not trusted yet, and skipped: {', '.join(events)}"
        return [f"{skipped}; open /hooks in Codex once"] if events else []

    def is_present(self, machine: Machine) -> bool:
        """Return True if the tool's program is on the PATH, or one of its directories exists."""
        if machine.program(*self.programs) is not None:
            return True
        paths = (expand_path(folder, machine) for folder in self.folders)
        return any(
            (path.parent if path.suffix == ".json" else path).is_dir() for path in paths
        )


_VARIABLE = re.compile(r"\$\{(\w+):-(.*?)\}|\$(\w+)|^~")


def expand_path(path: str, machine: Machine) -> Path:
    """Return a path of `targets.toml` with `$` and `~` replaced on a machine.

    `$config`, `$applications` and `$editors` are directories; `${NAME:-default}` is a variable.
    """

    def expand(match: re.Match[str]) -> str:
        """Return the text that replaces a match: a directory, or a variable's value or default."""
        variable, default, name = match.groups()
        if variable:
            return machine.environment.get(variable) or str(
                expand_path(default, machine)
            )
        folders = {
            "config": machine.config,
            "applications": machine.applications,
            "editors": machine.home / ".config"
            if machine.platform == "darwin"
            else machine.config,
        }
        return str(folders[name] if name else machine.home)

    return Path(_VARIABLE.sub(expand, path))


def fill_form(form: str, programs: Programs, limit: int = 0) -> Json:
    """Return a form of `targets.toml` as JSON data, with programs and time limit filled in."""
    words: dict[str, Json] = {
        "{mnem}": str(programs.mnem),
        "{hook}": shlex.quote(str(programs.hook)),
        "{limit}": limit,
    }

    def fill(value: Json) -> Json:
        """Return a value with each placeholder in it replaced, at any depth."""
        if isinstance(value, dict):
            return {key: fill(member) for key, member in value.items()}
        if isinstance(value, list):
            return [fill(member) for member in value]
        return words.get(value, value) if isinstance(value, str) else value

    return fill(_TABLES["forms"][form])


def hooks_by_event(form: str, events: str, programs: Programs) -> dict[str, Json]:
    """Return the hook for each event, by event; `form` and `events` are names in `targets.toml`."""
    return {
        event: fill_form(form, programs, limit)
        for event, limit in _TABLES["events"][events].items()
    }


def template_text(name: str, programs: Programs) -> str:
    """Return the text of the template `name`, with our program and version filled in."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    hook = json.dumps(str(programs.hook))
    return text.replace('"mnem-hook"', hook, 1).replace("{version}", __version__)


# ------------------------------------------------------------ trust of Codex
#
# Codex skips hooks that the user has not reviewed, in silence.

CODEX_ANSWER_S = 10
CODEX_ANSWER_BYTES_MAX = 1 << 20
_LISTING = 2
"""The id of the request for the hooks."""


def untrusted_events(machine: Machine, folder: Path) -> list[str]:
    """Return the events for which Codex skips our hooks as untrusted or disabled.

    The `codex` program is asked; if it does not answer, Codex's files in `folder` are read.
    """
    program = machine.program("codex")
    listed = None if program is None else list_codex_hooks(program, machine)
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
    for event, key in _find_trust_keys(folder / "hooks.json"):
        entry = entries.get(key)
        entry = entry if isinstance(entry, dict) else {}
        if "trusted_hash" not in entry or entry.get("enabled") is False:
            events.append(event)
    return events


def _find_trust_keys(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the event of each of our hooks in `file`, and the key of its trust in Codex's settings."""
    events = settings_of(file).get("hooks")
    for event, groups in (events if isinstance(events, dict) else {}).items():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for index, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and starts_our_program(command):
                    yield event, f"{file}:{label}:{index}:{place}"


def list_codex_hooks(program: Path, machine: Machine) -> list[dict[str, Json]] | None:
    """Return the user's hooks as Codex's program lists them; None if it does not answer."""
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
    """Send `messages` to a running Codex; return the hooks, or None for an error or no answer in time."""
    if process.stdin is None or process.stdout is None:
        return None
    lines = [json.dumps(message).encode() + b"\n" for message in messages]
    process.stdin.write(b"".join(lines))
    process.stdin.flush()
    for line in _read_lines_in_time(process.stdout):
        answer = json.loads(line)
        if answer.get("id") == _LISTING:
            folders = answer["result"]["data"] if "result" in answer else None
            return folders and [hook for each in folders for hook in each["hooks"]]
    return None


def _read_lines_in_time(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines of a stream for `CODEX_ANSWER_S` seconds or `CODEX_ANSWER_BYTES_MAX` bytes."""
    deadline = time.monotonic() + CODEX_ANSWER_S
    pending = b""
    while len(pending) < CODEX_ANSWER_BYTES_MAX:
        wait = deadline - time.monotonic()
        if wait <= 0 or not select.select([stream], [], [], wait)[0]:
            return
        data = os.read(stream.fileno(), 65_536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        yield from lines


# ------------------------------------------------------------------ the table

_TABLES: Json = read_tables(__file__, "targets.toml")
TARGETS = {
    name: msgspec.convert({"name": name, **row}, SetupTarget)
    for name, row in _TABLES["tools"].items()
}


PROGRAMS = Programs(mnem=Path("mnem"), hook=Path("mnem-hook"))


def write_packages(folder: Path) -> list[Path]:
    """Write our plugin packages for all tools into a directory; return the paths of the files."""
    table = Path(__file__).with_name("packages.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(table.replace("{version}", __version__))
    rows = tables["files"]
    written = []
    for name, row in rows.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = rows[row.get("like", name)].get("text")
        if text is None:
            content = {
                **(tables["about"] if row.get("about") else {}),
                **row.get("json", {}),
            }
            if server := row.get("server"):
                content["mcpServers"] = {NAME: fill_form(server, PROGRAMS)}
            if form := row.get("hooks"):
                hooks = hooks_by_event(form, row["events"], PROGRAMS)
                content["hooks"] = {event: [hook] for event, hook in hooks.items()}
            text = json.dumps(content, indent=2) + "\n"
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written
