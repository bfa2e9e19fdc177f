"""The tools that can be given memory, with the places and forms of their settings.

Each tool has a row in `TARGETS` and a function that lists its parts. Formats and places are those of
the tools' own documentation.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import IO

from mnemosyned.agents.setup.documents import Json, value_at
from mnemosyned.agents.setup.parts import (
    NAME,
    EntryPart,
    HeadingPart,
    HookPart,
    Machine,
    OwnFile,
    Parts,
    Programs,
    SetupSite,
    SetupTarget,
    command_line,
    has_our_hooks,
    settings_of,
    starts_our_program,
)
from mnemosyned.version import __version__

ARGUMENTS = ("mcp",)

# ------------------------------------------------------ forms of several tools

CLAUDE_EVENTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 10,
    "PreCompact": 10,
    "SessionEnd": 5,
}
"""The hooks of Claude Code and of tools with the same form, with their time limits in seconds."""
WITHOUT_COMPACT = {
    event: limit for event, limit in CLAUDE_EVENTS.items() if event != "PreCompact"
}
CODEX_EVENTS = {**CLAUDE_EVENTS, "SessionEnd": 3}
CURSOR_EVENTS = {
    "sessionStart": 10,
    "beforeSubmitPrompt": 5,
    "stop": 10,
    "preCompact": 10,
    "sessionEnd": 5,
}
GEMINI_EVENTS = {
    "SessionStart": 10_000,
    "BeforeAgent": 5_000,
    "AfterAgent": 10_000,
    "PreCompress": 10_000,
    "SessionEnd": 5_000,
}
"""The hooks of Gemini CLI, with their time limits in milliseconds."""
CASCADE_EVENTS = ("pre_user_prompt", "post_cascade_response")
CODEX_VARIABLES = ("XDG_RUNTIME_DIR", "MNEMOSYNE_SOCKET")
"""Variables that lead to the daemon's socket: Codex hands a server only variables named here."""


def server(
    file: Path, programs: Programs, *, section: str = "mcpServers", **more: Json
) -> EntryPart:
    """Return our MCP server's entry for a settings file, with `command` and `args`.

    Most tools take this form. `section` is the settings key that holds servers; `more` are
    further members of the entry.
    """
    value = {"command": str(programs.mnem), "args": [*ARGUMENTS], **more}
    return EntryPart(file, (section, NAME), value)


def stdio_server(
    file: Path, programs: Programs, *, section: str = "mcpServers"
) -> EntryPart:
    """Return our MCP server's entry for a settings file, with `"type": "stdio"` first."""
    entry = server(file, programs, section=section)
    return replace(entry, value={"type": "stdio", **entry.value})


def grouped_hooks(
    file: Path,
    programs: Programs,
    events: Mapping[str, int] = CLAUDE_EVENTS,
    *,
    section: tuple[str, ...] = ("hooks",),
    **more: Json,
) -> list[HookPart]:
    """Return our hooks in Claude Code's form: each event has groups of commands.

    `events` gives each event's time limit in seconds; `more` are further members of a command.
    """
    command = {**more, "type": "command", "command": command_line(programs.hook)}
    return [
        HookPart(
            file,
            (*section, event),
            {"hooks": [{**command, "timeout": limit}]},
            label=f"hook {event}",
        )
        for event, limit in events.items()
    ]


def flat_hooks(file: Path, events: Mapping[str, Mapping[str, Json]]) -> list[HookPart]:
    """Return a hook for each event, without groups; `events` gives the members of each."""
    return [
        HookPart(file, ("hooks", event), value, label=f"hook {event}")
        for event, value in events.items()
    ]


def cursor_hooks(file: Path, programs: Programs) -> list[HeadingPart | HookPart]:
    """Return the parts of Cursor's hooks file: its version, and a hook for each event."""
    command = command_line(programs.hook)
    events = {
        event: {"command": command, "timeout": limit}
        for event, limit in CURSOR_EVENTS.items()
    }
    return [HeadingPart(file, ("version",), 1), *flat_hooks(file, events)]


# ------------------------------------------------------- the parts of each tool


def _claude_folder(machine: Machine) -> Path:
    """Return Claude Code's directory of settings."""
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def _claude_user_hooks(site: SetupSite) -> list[HookPart]:
    """Return the hooks in the user's Claude settings, which Cursor, VS Code and Devin read too."""
    file = _claude_folder(site.machine) / "settings.json"
    return grouped_hooks(file, site.programs)


def _claude_code_parts(site: SetupSite) -> Parts:
    """Return Claude Code's server entry and hooks, of the user or the project."""
    if site.project:
        settings = site.project / ".claude" / "settings.local.json"
        return [
            stdio_server(site.project / ".mcp.json", site.programs),
            *grouped_hooks(settings, site.programs),
        ]
    machine = site.machine
    folder = machine.folder("CLAUDE_CONFIG_DIR", machine.home)
    entry = stdio_server(folder / ".claude.json", site.programs)
    program = machine.program("claude")
    if program:
        # Running sessions rewrite the file; Claude's own program takes their lock.
        scope = ("--scope", "user", NAME)
        value = json.dumps(dict(entry.value))
        entry = replace(
            entry,
            add=(str(program), "mcp", "add-json", *scope, value),
            take_out=(str(program), "mcp", "remove", *scope),
        )
    return [entry, *_claude_user_hooks(site)]


def _find_claude_plugins(machine: Machine) -> list[str]:
    """Return the places where our plugin is installed in Claude Code."""
    folder = _claude_folder(machine)
    installed = settings_of(folder / "plugins" / "installed_plugins.json")
    names = _find_our_plugins(value_at(installed, ("plugins",)))
    return names + _select_existing_folders(folder / "skills" / NAME / ".claude-plugin")


def _find_our_plugins(plugins: Json) -> list[str]:
    """Return the names of our plugin, such as `mnem@market`, among a tool's plugins."""
    names = plugins if isinstance(plugins, dict) else {}
    return [name for name in names if name.split("@")[0] == NAME]


def _select_existing_folders(*folders: Path) -> list[str]:
    """Return the paths of the directories that exist."""
    return [str(folder) for folder in folders if folder.is_dir()]


def _claude_hook_obstacles(machine: Machine) -> list[str]:
    """Return the reasons in Claude Code's settings why no hook runs."""
    settings = settings_of(_claude_folder(machine) / "settings.json")
    reasons = {
        "disableAllHooks": "its settings have disableAllHooks: no hook runs",
        "allowManagedHooksOnly": "its settings allow managed hooks only",
    }
    return [reason for key, reason in reasons.items() if settings.get(key) is True]


def _codex_folder(machine: Machine) -> Path:
    """Return Codex's directory of settings."""
    return machine.folder("CODEX_HOME", machine.home / ".codex")


def _codex_parts(site: SetupSite) -> Parts:
    """Return Codex's server entry and hooks, of the user or the project."""
    folder = site.folder(_codex_folder(site.machine), ".codex")
    entry = server(
        folder / "config.toml",
        site.programs,
        section="mcp_servers",
        env_vars=[*CODEX_VARIABLES],
    )
    hooks = grouped_hooks(folder / "hooks.json", site.programs, CODEX_EVENTS)
    return [entry, *hooks]


def _codex_hook_obstacles(machine: Machine) -> list[str]:
    """Return the reasons why Codex runs none, or skips some, of our hooks."""
    folder = _codex_folder(machine)
    settings = settings_of(folder / "config.toml")
    if value_at(settings, ("features", "hooks")) is False:
        return ["features.hooks is false in config.toml: no hook runs"]
    if events := untrusted_events(machine, folder):
        skipped = ", ".join(events)
        return [f"not trusted yet, and skipped: {skipped}; open /hooks in Codex once"]
    return []


def _cursor_parts(site: SetupSite) -> Parts:
    """Return Cursor's server entry and hooks, of the user or the project."""
    folder = site.folder(site.machine.home / ".cursor", ".cursor")
    return [
        stdio_server(folder / "mcp.json", site.programs),
        *cursor_hooks(folder / "hooks.json", site.programs),
    ]


VSCODE_EDITIONS = ("Code", "Code - Insiders", "VSCodium")


def _vscode_folders(machine: Machine) -> list[Path]:
    """Return the directories of settings of VS Code and its variants."""
    return [machine.applications / edition for edition in VSCODE_EDITIONS]


def _vscode_parts(site: SetupSite) -> Parts:
    """Return the server entries of VS Code's variants, and hooks unless it reads Claude's."""
    if site.project:
        files = [site.project / ".vscode" / "mcp.json"]
    else:
        folders = _vscode_folders(site.machine)
        used = [folder for folder in folders if folder.is_dir()] or folders[:1]
        files = [folder / "User" / "mcp.json" for folder in used]
    entries = [stdio_server(file, site.programs, section="servers") for file in files]
    if site.project or has_our_hooks(_claude_user_hooks(site)):
        return [*entries]
    return [*entries, *_copilot_hooks(site)]


def _copilot_folder(machine: Machine) -> Path:
    """Return the directory of settings of Copilot's command line."""
    return machine.folder("COPILOT_HOME", machine.home / ".copilot")


def _copilot_hooks(site: SetupSite) -> Parts:
    """Return the parts of Copilot's hooks file, which VS Code reads too."""
    file = _copilot_folder(site.machine) / "hooks" / f"{NAME}.json"
    command = command_line(site.programs.hook)
    events = {
        event: {"type": "command", "bash": command, "timeoutSec": limit}
        for event, limit in CLAUDE_EVENTS.items()
    }
    return [HeadingPart(file, ("version",), 1), *flat_hooks(file, events)]


def _copilot_parts(site: SetupSite) -> Parts:
    """Return the server entry and hooks of Copilot's command line."""
    file = _copilot_folder(site.machine) / "mcp-config.json"
    entry = server(file, site.programs, type="local", tools=["*"])
    return [entry, *_copilot_hooks(site)]


OPENCODE_LISTING_MS = 5_000
OPENCODE_MARK = "mnem setup opencode"


def _opencode_folder(machine: Machine) -> Path:
    """Return OpenCode's directory of settings."""
    default = machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "opencode"
    return machine.folder("OPENCODE_CONFIG_DIR", default)


def plugin_text(hook: str) -> str:
    """Return the JavaScript of OpenCode's plugin, which starts the program `hook`."""
    template = files("mnemosyned.agents.setup") / "opencode_plugin.js"
    return template.read_text("utf-8").replace('"mnem-hook"', json.dumps(hook), 1)


def _opencode_parts(site: SetupSite) -> Parts:
    """Return OpenCode's server entry and plugin file, of the user or the project."""
    folder = _opencode_folder(site.machine)
    plugins = site.folder(folder, ".opencode") / "plugins"
    settings = site.project or folder
    names = ("opencode.jsonc", "opencode.json")
    present = [name for name in names if (settings / name).exists()]
    entry = {
        "type": "local",
        "command": [str(site.programs.mnem), *ARGUMENTS],
        "enabled": True,
        "timeout": OPENCODE_LISTING_MS,
    }
    plugin = plugin_text(str(site.programs.hook))
    return [
        EntryPart(settings / (present or [names[1]])[0], ("mcp", NAME), entry),
        OwnFile(plugins / f"{NAME}.js", plugin, OPENCODE_MARK),
    ]


def _gemini_folder(machine: Machine) -> Path:
    """Return Gemini CLI's directory of settings."""
    return machine.home / ".gemini"


def _gemini_parts(site: SetupSite) -> Parts:
    """Return Gemini CLI's server entry and hooks, of the user or the project."""
    file = site.folder(_gemini_folder(site.machine), ".gemini") / "settings.json"
    hooks = grouped_hooks(file, site.programs, GEMINI_EVENTS, name=NAME)
    return [server(file, site.programs), *hooks]


def _gemini_hook_obstacles(machine: Machine) -> list[str]:
    """Return the reason in Gemini CLI's settings why no hook runs; empty if there is none."""
    settings = settings_of(_gemini_folder(machine) / "settings.json")
    for key in ("hooksConfig", "hooks"):
        if value_at(settings, (key, "enabled")) is False:
            return ["its settings switch hooks off"]
    return []


def _antigravity_folders(machine: Machine) -> list[Path]:
    """Return the directories in which Antigravity keeps settings."""
    names = ("config", "antigravity-cli", "antigravity")
    return [_gemini_folder(machine) / name for name in names]


def _antigravity_parts(site: SetupSite) -> Parts:
    """Return Antigravity's server entries and, for a user, its hooks."""
    name = "mcp_config.json"
    if site.project:
        return [server(site.project / ".agents" / name, site.programs)]
    folders = _antigravity_folders(site.machine)
    used = [folder for folder in folders if (folder / name).exists()] or folders[:1]
    command = command_line(site.programs.hook)
    hook = {"type": "command", "command": command, "timeout": 10}
    events = {"PreInvocation": [hook], "Stop": [hook]}
    return [
        *(server(folder / name, site.programs) for folder in used),
        EntryPart(folders[0] / "hooks.json", (NAME,), events, label="hooks"),
    ]


def _zed_folder(machine: Machine) -> Path:
    """Return Zed's directory of settings."""
    is_mac = machine.platform == "darwin"
    return (machine.home / ".config" if is_mac else machine.config) / "zed"


def _zed_parts(site: SetupSite) -> Parts:
    """Return Zed's server entry, of the user or the project."""
    file = site.folder(_zed_folder(site.machine), ".zed") / "settings.json"
    return [server(file, site.programs, section="context_servers", env={})]


CLINE_FILE = "cline_mcp_settings.json"


def _cline_files(machine: Machine) -> list[Path]:
    """Return the settings files of Cline's command line, then of its extension in each editor."""
    named = machine.environment.get("CLINE_MCP_SETTINGS_PATH")
    own = machine.home / ".cline" / "data" / "settings" / CLINE_FILE
    extension = Path("saoudrizwan.claude-dev") / "settings" / CLINE_FILE
    return [
        Path(named) if named else own,
        *(
            machine.applications / edition / "User" / "globalStorage" / extension
            for edition in ("Code", "Cursor", "VSCodium")
        ),
    ]


def _cline_parts(site: SetupSite) -> Parts:
    """Return a server entry for each installed form of Cline."""
    files = _cline_files(site.machine)
    used = [file for file in files if file.parent.is_dir()] or files[:1]
    return [server(file, site.programs) for file in used]


GOOSE_TIMEOUT_S = 300


def _goose_parts(site: SetupSite) -> Parts:
    """Return Goose's plugin with hooks and, for a user, its server entry."""
    folder = (site.project or site.machine.home) / ".agents" / "plugins" / NAME
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": "Remembers what was said in a session.",
    }
    text = json.dumps(manifest, indent=2) + "\n"
    hooks = folder / "hooks" / "hooks.json"
    plugin: Parts = [
        OwnFile(folder / "plugin.json", text, f'"name": "{NAME}"'),
        *grouped_hooks(hooks, site.programs, WITHOUT_COMPACT),
    ]
    if site.project:
        return plugin
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": NAME,
        "cmd": str(site.programs.mnem),
        "args": [*ARGUMENTS],
        "timeout": GOOSE_TIMEOUT_S,
    }
    file = site.machine.config / "goose" / "config.yaml"
    return [EntryPart(file, ("extensions", NAME), extension), *plugin]


def _devin_folders(machine: Machine) -> list[Path]:
    """Return the directory of Devin, then of its predecessor Windsurf."""
    return [machine.config / "devin", machine.home / ".codeium" / "windsurf"]


def _devin_parts(site: SetupSite) -> Parts:
    """Return the server entries and hooks of Devin and Windsurf."""
    if site.project:
        file = site.project / ".devin" / "hooks.v1.json"
        return [*grouped_hooks(file, site.programs, WITHOUT_COMPACT, section=())]
    devin, windsurf = _devin_folders(site.machine)
    parts: Parts = []
    if devin.is_dir() or not windsurf.is_dir():
        parts.append(server(devin / "mcp_config.json", site.programs))
        if not has_our_hooks(_claude_user_hooks(site)):
            file = devin / "config.json"
            parts += grouped_hooks(file, site.programs, WITHOUT_COMPACT)
    if windsurf.is_dir():
        parts.append(server(windsurf / "mcp_config.json", site.programs))
        command = {"command": command_line(site.programs.hook), "show_output": False}
        events = dict.fromkeys(CASCADE_EVENTS, command)
        parts += flat_hooks(windsurf / "hooks.json", events)
    return parts


def _claude_desktop_folder(machine: Machine) -> Path:
    """Return the directory of settings of Claude's desktop program."""
    return machine.applications / "Claude"


def _claude_desktop_parts(site: SetupSite) -> Parts:
    """Return the server entry of Claude's desktop program."""
    folder = _claude_desktop_folder(site.machine)
    return [server(folder / "claude_desktop_config.json", site.programs)]


# ------------------------------------------------------------ trust of Codex
#
# Codex skips hooks that the user has not reviewed, in silence.

CODEX_ANSWER_S = 10
CODEX_ANSWER_BYTES_MAX = 1 << 20
_LISTING = 2
"""The id of the request for the hooks."""


def untrusted_events(machine: Machine, folder: Path) -> list[str]:
    """Return the events for which Codex skips our hooks, as it does not trust them.

    Codex itself is asked, or else its files in `folder` are read.
    """
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
    for event, key in _find_trust_keys(folder / "hooks.json"):
        entry = entries.get(key)
        entry = entry if isinstance(entry, dict) else {}
        if "trusted_hash" not in entry or entry.get("enabled") is False:
            events.append(event)
    return events


def _find_trust_keys(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each event with a hook of ours, and the key of its trust in Codex's settings."""
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
    """Return the user's hooks as Codex's own program lists them; None if it does not answer."""
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
    """Send messages to a running Codex and return the hooks it lists; None if it lists none."""
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
    """Yield lines of a stream until `CODEX_ANSWER_S` has passed.

    Also ends with the stream, or when `CODEX_ANSWER_BYTES_MAX` bytes hold no line end.
    """
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

MCP_GET = ("mcp", "get", NAME)
NO_HOOKS = "{} has no hooks: the model has to call the tools itself"

TARGETS: dict[str, SetupTarget] = {
    target.name: target
    for target in (
        SetupTarget(
            name="claude-code",
            title="Claude Code",
            programs=("claude",),
            folders=lambda machine: [_claude_folder(machine)],
            parts=_claude_code_parts,
            steps=("open a new session: running ones keep what they loaded",),
            listing=MCP_GET,
            plugins=_find_claude_plugins,
            switched_off=_claude_hook_obstacles,
            transcripts=(".claude/projects/*/*.jsonl",),
        ),
        # The command line, editor extension and desktop program share one configuration.
        SetupTarget(
            name="codex",
            title="Codex",
            programs=("codex",),
            folders=lambda machine: [_codex_folder(machine)],
            parts=_codex_parts,
            steps=(
                "open /hooks in Codex once and trust the hooks: until then it skips them in silence",
            ),
            unconfirmed=("which variables Codex hands to servers by default",),
            listing=MCP_GET,
            plugins=lambda machine: _find_our_plugins(
                settings_of(_codex_folder(machine) / "config.toml").get("plugins")
            ),
            switched_off=_codex_hook_obstacles,
            transcripts=(".codex/sessions/*/*/*/*.jsonl",),
        ),
        SetupTarget(
            name="cursor",
            title="Cursor",
            programs=("cursor", "cursor-agent"),
            folders=lambda machine: [machine.home / ".cursor"],
            parts=_cursor_parts,
            steps=("switch the server mnem on in Cursor's settings, under MCP",),
            notes=(
                "Cursor runs Claude Code's hooks too, and the same command only once",
            ),
            unconfirmed=("whether Cursor shows the model what a prompt's hook adds",),
            plugins=lambda machine: _select_existing_folders(
                machine.home / ".cursor" / "plugins" / "local" / NAME
            ),
            transcripts=(
                ".cursor/projects/*/agent-transcripts/*.jsonl",
                ".cursor/projects/*/agent-transcripts/*/*.jsonl",
            ),
        ),
        SetupTarget(
            name="vscode",
            title="VS Code",
            programs=("code", "code-insiders", "codium"),
            folders=_vscode_folders,
            parts=_vscode_parts,
            steps=("VS Code asks once whether it may start the server mnem",),
            notes=(
                "VS Code runs the hooks of Claude Code's settings and of ~/.copilot/hooks",
            ),
            unconfirmed=("what VS Code's hooks, a preview, add to a prompt",),
        ),
        SetupTarget(
            name="opencode",
            title="OpenCode",
            programs=("opencode",),
            folders=lambda machine: [_opencode_folder(machine)],
            parts=_opencode_parts,
            transcripts=(".local/share/opencode/opencode.db",),
        ),
        SetupTarget(
            name="gemini",
            title="Gemini CLI",
            programs=("gemini",),
            folders=lambda machine: [_gemini_folder(machine) / "tmp"],
            parts=_gemini_parts,
            notes=("in a folder you have not trusted, Gemini CLI starts no servers",),
            plugins=lambda machine: _select_existing_folders(
                _gemini_folder(machine) / "extensions" / NAME
            ),
            switched_off=_gemini_hook_obstacles,
            transcripts=(".gemini/tmp/*/chats/session-*",),
        ),
        SetupTarget(
            name="antigravity",
            title="Antigravity",
            programs=("agy", "antigravity"),
            folders=_antigravity_folders,
            parts=_antigravity_parts,
            unconfirmed=(
                "which of its mcp_config.json files a version reads",
                "which hook events a version runs, and what Stop tells them",
            ),
            transcripts=(
                ".gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl",
            ),
        ),
        SetupTarget(
            name="copilot",
            title="Copilot CLI",
            programs=("copilot",),
            folders=lambda machine: [_copilot_folder(machine)],
            parts=_copilot_parts,
            has_project=False,
            listing=MCP_GET,
            unconfirmed=(
                "whether Copilot shows the model what SessionStart's hook adds",
            ),
            transcripts=(".copilot/session-state/*/events.jsonl",),
        ),
        SetupTarget(
            name="zed",
            title="Zed",
            programs=("zed", "zeditor"),
            folders=lambda machine: [_zed_folder(machine)],
            parts=_zed_parts,
            notes=(NO_HOOKS.format("Zed"),),
            unconfirmed=('whether an older Zed also needs "source": "custom"',),
        ),
        SetupTarget(
            name="cline",
            title="Cline",
            programs=("cline",),
            folders=lambda machine: [
                machine.home / ".cline",
                *(file.parent for file in _cline_files(machine)),
            ],
            parts=_cline_parts,
            has_project=False,
            notes=(
                "Cline's hooks add nothing to a prompt: the model has to call the tools",
            ),
            unconfirmed=(
                "whether its command line starts a server in the editor's form",
            ),
        ),
        SetupTarget(
            name="goose",
            title="Goose",
            programs=("goose",),
            folders=lambda machine: [machine.config / "goose"],
            parts=_goose_parts,
            notes=("Goose's hooks only observe: the model recalls by the tools",),
        ),
        SetupTarget(
            name="devin",
            title="Devin and Windsurf",
            programs=("devin", "windsurf"),
            folders=_devin_folders,
            parts=_devin_parts,
            notes=(
                "Devin runs Claude Code's hooks too, and then gets none of its own",
                "Windsurf's old hooks add nothing to a prompt",
            ),
            unconfirmed=(
                "whether Devin's command line reads mcp_config.json or only config.json",
            ),
            clients=("windsurf",),
        ),
        SetupTarget(
            name="claude-desktop",
            title="Claude Desktop",
            programs=("claude-desktop",),
            folders=lambda machine: [_claude_desktop_folder(machine)],
            parts=_claude_desktop_parts,
            has_project=False,
            steps=("quit Claude Desktop and start it again",),
            notes=(NO_HOOKS.format("Claude Desktop"),),
        ),
    )
}
