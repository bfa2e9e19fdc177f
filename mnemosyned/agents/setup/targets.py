"""The tools that can be given memory: where their settings are and in what form they take server and hooks."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from mnemosyned.agents.setup import codex
from mnemosyned.agents.setup.documents import value_at
from mnemosyned.agents.setup.parts import (
    ARGUMENTS,
    CLAUDE_EVENTS,
    NAME,
    Heading,
    Hook,
    Machine,
    OwnFile,
    Parts,
    Programs,
    SettingsEntry,
    Site,
    Target,
    command_line,
    flat_hooks,
    grouped_hooks,
    has_hooks_of_ours,
    own_json,
    server,
    settings_of,
    stdio_server,
)
from mnemosyned.version import __version__


def claude_folder(machine: Machine) -> Path:
    """The directory of its settings."""
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def user_hooks(machine: Machine, programs: Programs) -> list[Hook]:
    """The hooks of the user, which Cursor, VS Code and Devin read too."""
    return grouped_hooks(claude_folder(machine) / "settings.json", programs)


def _claude_parts(site: Site) -> Parts:
    machine = site.machine
    own = machine.environment.get("CLAUDE_CONFIG_DIR")
    entry = stdio_server(
        (Path(own) if own else machine.home) / ".claude.json", site.programs
    )
    return [_by_its_program(entry, machine), *user_hooks(machine, site.programs)]


def _by_its_program(entry: SettingsEntry, machine: Machine) -> SettingsEntry:
    """The entry, written by the tool's own program where that is here.

    Running sessions rewrite the file; the program takes the lock they use.
    """
    program = machine.program("claude")
    if program is None:
        return entry
    scope = ("--scope", "user", NAME)
    return replace(
        entry,
        add=(str(program), "mcp", "add-json", *scope, json.dumps(dict(entry.value))),
        take_out=(str(program), "mcp", "remove", *scope),
    )


def _claude_project_parts(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return [
        stdio_server(root / ".mcp.json", site.programs),
        *grouped_hooks(root / ".claude" / "settings.local.json", site.programs),
    ]


def _claude_plugins(machine: Machine) -> list[str]:
    home = claude_folder(machine)
    installed = settings_of(home / "plugins" / "installed_plugins.json")
    names = [*(value_at(installed, ("plugins",)) or {})]
    skill = home / "skills" / NAME / ".claude-plugin"
    found = [name for name in names if name.split("@")[0] == NAME]
    return found + ([str(skill.parent)] if skill.is_dir() else [])


def _claude_switched_off(machine: Machine) -> list[str]:
    settings = settings_of(claude_folder(machine) / "settings.json")
    reasons = {
        "disableAllHooks": "its settings have disableAllHooks: no hook runs",
        "allowManagedHooksOnly": "its settings allow managed hooks only",
    }
    return [reason for key, reason in reasons.items() if settings.get(key) is True]


CLAUDE_CODE = Target(
    name="claude-code",
    title="Claude Code",
    programs=("claude",),
    folders=lambda machine: [claude_folder(machine)],
    parts=_claude_parts,
    project_parts=_claude_project_parts,
    steps=("open a new session: running ones keep what they loaded",),
    listing=("mcp", "get", NAME),
    plugins=_claude_plugins,
    switched_off=_claude_switched_off,
    clients=("claude-code",),
    transcripts=(".claude/projects/*/*.jsonl",),
)


def _copilot_folder(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", machine.home / ".copilot")


def copilot_hooks(site: Site) -> Parts:
    """The file of hooks, which VS Code reads too."""
    file = _copilot_folder(site.machine) / "hooks" / f"{NAME}.json"
    command = command_line(site.programs.hook)
    events = {
        event: {"type": "command", "bash": command, "timeoutSec": limit}
        for event, limit in CLAUDE_EVENTS.items()
    }
    return [Heading(file, ("version",), 1), *flat_hooks(file, events)]


def _copilot_parts(site: Site) -> Parts:
    file = _copilot_folder(site.machine) / "mcp-config.json"
    entry = server(file, site.programs, type="local", tools=["*"])
    return [entry, *copilot_hooks(site)]


COPILOT = Target(
    name="copilot",
    title="Copilot CLI",
    programs=("copilot",),
    folders=lambda machine: [_copilot_folder(machine)],
    parts=_copilot_parts,
    listing=("mcp", "get", NAME),
    unconfirmed=("whether Copilot shows the model what SessionStart's hook adds",),
    clients=("copilot",),
    transcripts=(".copilot/session-state/*/events.jsonl",),
)


CURSOR_EVENTS = {
    "sessionStart": 10,
    "beforeSubmitPrompt": 5,
    "stop": 10,
    "preCompact": 10,
    "sessionEnd": 5,
}


def cursor_hooks(file: Path, programs: Programs) -> list[Heading | Hook]:
    """Its file of hooks."""
    command = command_line(programs.hook)
    events = {
        event: {"command": command, "timeout": limit}
        for event, limit in CURSOR_EVENTS.items()
    }
    return [Heading(file, ("version",), 1), *flat_hooks(file, events)]


def _cursor_parts(site: Site, folder: Path) -> Parts:
    return [
        stdio_server(folder / "mcp.json", site.programs),
        *cursor_hooks(folder / "hooks.json", site.programs),
    ]


def _cursor_plugins(machine: Machine) -> list[str]:
    folder = machine.home / ".cursor" / "plugins" / "local" / NAME
    return [str(folder)] if folder.is_dir() else []


CURSOR = Target(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    folders=lambda machine: [machine.home / ".cursor"],
    parts=lambda site: _cursor_parts(site, site.machine.home / ".cursor"),
    project_parts=lambda site: _cursor_parts(
        site, (site.project or site.machine.directory) / ".cursor"
    ),
    steps=("switch the server mnem on in Cursor's settings, under MCP",),
    notes=("Cursor runs Claude Code's hooks too, and the same command only once",),
    unconfirmed=("whether Cursor shows the model what a prompt's hook adds",),
    plugins=_cursor_plugins,
    clients=("cursor",),
    transcripts=(
        ".cursor/projects/*/agent-transcripts/*.jsonl",
        ".cursor/projects/*/agent-transcripts/*/*.jsonl",
    ),
)


DEVIN_EVENTS = {
    event: limit for event, limit in CLAUDE_EVENTS.items() if event != "PreCompact"
}
CASCADE_EVENTS = ("pre_user_prompt", "post_cascade_response")


def _devin_folder(machine: Machine) -> Path:
    return machine.config / "devin"


def _windsurf_folder(machine: Machine) -> Path:
    return machine.home / ".codeium" / "windsurf"


def _devin(site: Site) -> Parts:
    folder = _devin_folder(site.machine)
    parts: Parts = [server(folder / "mcp_config.json", site.programs)]
    claudes = user_hooks(site.machine, site.programs)
    if not has_hooks_of_ours(claudes):
        parts += grouped_hooks(folder / "config.json", site.programs, DEVIN_EVENTS)
    return parts


def _windsurf(site: Site) -> Parts:
    folder = _windsurf_folder(site.machine)
    command = {"command": command_line(site.programs.hook), "show_output": False}
    return [
        server(folder / "mcp_config.json", site.programs),
        *flat_hooks(folder / "hooks.json", dict.fromkeys(CASCADE_EVENTS, command)),
    ]


def _devin_parts(site: Site) -> Parts:
    windsurf = _windsurf_folder(site.machine).is_dir()
    devin = _devin_folder(site.machine).is_dir() or not windsurf
    return [*(_devin(site) if devin else []), *(_windsurf(site) if windsurf else [])]


def _devin_project_parts(site: Site) -> Parts:
    root = site.project or site.machine.directory
    file = root / ".devin" / "hooks.v1.json"
    return [*grouped_hooks(file, site.programs, DEVIN_EVENTS, section=())]


DEVIN = Target(
    name="devin",
    title="Devin and Windsurf",
    programs=("devin", "windsurf"),
    folders=lambda machine: [_devin_folder(machine), _windsurf_folder(machine)],
    parts=_devin_parts,
    project_parts=_devin_project_parts,
    notes=(
        "Devin runs Claude Code's hooks too, and then gets none of its own",
        "Windsurf's old hooks add nothing to a prompt",
    ),
    unconfirmed=(
        "whether Devin's command line reads mcp_config.json or only config.json",
    ),
    clients=("devin", "windsurf"),
)


GEMINI_EVENTS = {
    "SessionStart": 10_000,
    "BeforeAgent": 5_000,
    "AfterAgent": 10_000,
    "PreCompress": 10_000,
    "SessionEnd": 5_000,
}
"""The hooks of Gemini CLI, with their limits in milliseconds."""


def _gemini_folder(machine: Machine) -> Path:
    return machine.home / ".gemini"


def _gemini_parts(site: Site, folder: Path) -> Parts:
    file = folder / "settings.json"
    return [
        server(file, site.programs),
        *grouped_hooks(file, site.programs, GEMINI_EVENTS, name=NAME),
    ]


def _gemini_extensions(machine: Machine) -> list[str]:
    folder = _gemini_folder(machine) / "extensions" / NAME
    return [str(folder)] if folder.is_dir() else []


def _gemini_switched_off(machine: Machine) -> list[str]:
    settings = settings_of(_gemini_folder(machine) / "settings.json")
    sections = [settings.get("hooksConfig"), settings.get("hooks")]
    off = any(
        section.get("enabled") is False
        for section in sections
        if isinstance(section, dict)
    )
    return ["its settings switch hooks off"] if off else []


GEMINI = Target(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    folders=lambda machine: [_gemini_folder(machine) / "tmp"],
    parts=lambda site: _gemini_parts(site, _gemini_folder(site.machine)),
    project_parts=lambda site: _gemini_parts(
        site, (site.project or site.machine.directory) / ".gemini"
    ),
    notes=("in a folder you have not trusted, Gemini CLI starts no servers",),
    plugins=_gemini_extensions,
    switched_off=_gemini_switched_off,
    clients=("gemini",),
    transcripts=(".gemini/tmp/*/chats/session-*",),
)


def _antigravity_folders(machine: Machine) -> list[Path]:
    return [
        _gemini_folder(machine) / name
        for name in ("config", "antigravity-cli", "antigravity")
    ]


def _antigravity_parts(site: Site) -> Parts:
    folders = _antigravity_folders(site.machine)
    used = [folder for folder in folders if (folder / "mcp_config.json").exists()]
    command = {
        "type": "command",
        "command": command_line(site.programs.hook),
        "timeout": 10,
    }
    events = {"PreInvocation": [command], "Stop": [command]}
    return [
        *(
            server(folder / "mcp_config.json", site.programs)
            for folder in used or folders[:1]
        ),
        SettingsEntry(folders[0] / "hooks.json", (NAME,), events, label="hooks"),
    ]


ANTIGRAVITY = Target(
    name="antigravity",
    title="Antigravity",
    programs=("agy", "antigravity"),
    folders=_antigravity_folders,
    parts=_antigravity_parts,
    project_parts=lambda site: [
        server(
            (site.project or site.machine.directory) / ".agents" / "mcp_config.json",
            site.programs,
        )
    ],
    unconfirmed=(
        "which of its mcp_config.json files a version reads",
        "which hook events a version runs, and what Stop tells them",
    ),
    clients=("antigravity",),
    transcripts=(
        ".gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl",
    ),
)


GOOSE_EVENTS = {
    event: limit for event, limit in CLAUDE_EVENTS.items() if event != "PreCompact"
}
GOOSE_TIMEOUT_S = 300
GOOSE_MANIFEST = {
    "name": NAME,
    "version": __version__,
    "description": "Remembers what was said in a session.",
}


def _goose_plugin(site: Site, root: Path) -> Parts:
    folder = root / ".agents" / "plugins" / NAME
    return [
        own_json(folder / "plugin.json", GOOSE_MANIFEST, f'"name": "{NAME}"'),
        *grouped_hooks(folder / "hooks" / "hooks.json", site.programs, GOOSE_EVENTS),
    ]


def _goose_parts(site: Site) -> Parts:
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": NAME,
        "cmd": str(site.programs.mnem),
        "args": [*ARGUMENTS],
        "timeout": GOOSE_TIMEOUT_S,
    }
    file = site.machine.config / "goose" / "config.yaml"
    entry = SettingsEntry(file, ("extensions", NAME), extension)
    return [entry, *_goose_plugin(site, site.machine.home)]


GOOSE = Target(
    name="goose",
    title="Goose",
    programs=("goose",),
    folders=lambda machine: [machine.config / "goose"],
    parts=_goose_parts,
    project_parts=lambda site: _goose_plugin(
        site, site.project or site.machine.directory
    ),
    notes=("Goose's hooks only observe: the model recalls by the tools",),
    clients=("goose",),
)


LISTING_MS = 5_000
MARK = "mnem setup opencode"
PLACEHOLDER = '"mnem-hook"'


def _opencode_folder(machine: Machine) -> Path:
    return machine.folder(
        "OPENCODE_CONFIG_DIR",
        machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "opencode",
    )


def plugin_text(hook: str) -> str:
    """The plugin, with the program that it starts."""
    template = files("mnemosyned.agents.setup") / "opencode_plugin.js"
    return template.read_text("utf-8").replace(PLACEHOLDER, json.dumps(hook), 1)


def _opencode_parts_in(site: Site, configurations: Path, plugins: Path) -> Parts:
    names = ("opencode.jsonc", "opencode.json")
    present = [name for name in names if (configurations / name).exists()]
    file = configurations / (present or ["opencode.json"])[0]
    entry = {
        "type": "local",
        "command": [str(site.programs.mnem), *ARGUMENTS],
        "enabled": True,
        "timeout": LISTING_MS,
    }
    return [
        SettingsEntry(file, ("mcp", NAME), entry),
        OwnFile(
            plugins / f"{NAME}.js",
            plugin_text(str(site.programs.hook)),
            MARK,
        ),
    ]


def _opencode_parts(site: Site) -> Parts:
    folder = _opencode_folder(site.machine)
    return _opencode_parts_in(site, folder, folder / "plugins")


def _opencode_project_parts(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return _opencode_parts_in(site, root, root / ".opencode" / "plugins")


OPENCODE = Target(
    name="opencode",
    title="OpenCode",
    programs=("opencode",),
    folders=lambda machine: [_opencode_folder(machine)],
    parts=_opencode_parts,
    project_parts=_opencode_project_parts,
    clients=("opencode",),
    transcripts=(".local/share/opencode/opencode.db",),
)


NO_HOOKS = "{} has no hooks: the model has to call the tools itself"
CLINE_FILE = "cline_mcp_settings.json"


def _zed_folder(machine: Machine) -> Path:
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    return machine.config / "zed"


def _zed_parts(site: Site, file: Path) -> Parts:
    return [server(file, site.programs, section="context_servers", env={})]


ZED = Target(
    name="zed",
    title="Zed",
    programs=("zed", "zeditor"),
    folders=lambda machine: [_zed_folder(machine)],
    parts=lambda site: _zed_parts(site, _zed_folder(site.machine) / "settings.json"),
    project_parts=lambda site: _zed_parts(
        site, (site.project or site.machine.directory) / ".zed" / "settings.json"
    ),
    notes=(NO_HOOKS.format("Zed"),),
    unconfirmed=('whether an older Zed also needs "source": "custom"',),
    clients=("zed",),
)


def _cline_files(machine: Machine) -> list[Path]:
    """The settings of its command line and of its editor extension, where they exist."""
    named = machine.environment.get("CLINE_MCP_SETTINGS_PATH")
    line = machine.home / ".cline" / "data" / "settings" / CLINE_FILE
    editors = [
        machine.applications / edition / "User" / "globalStorage"
        for edition in ("Code", "Cursor", "VSCodium")
    ]
    extension = Path("saoudrizwan.claude-dev") / "settings" / CLINE_FILE
    files = [Path(named)] if named else [line]
    return files + [editor / extension for editor in editors]


def _cline_parts(site: Site) -> Parts:
    files = _cline_files(site.machine)
    used = [file for file in files if file.parent.is_dir()] or files[:1]
    return [server(file, site.programs) for file in used]


CLINE = Target(
    name="cline",
    title="Cline",
    programs=("cline",),
    folders=lambda machine: [
        machine.home / ".cline",
        *(file.parent for file in _cline_files(machine)),
    ],
    parts=_cline_parts,
    notes=("Cline's hooks add nothing to a prompt: the model has to call the tools",),
    unconfirmed=("whether its command line starts a server in the editor's form",),
    clients=("cline",),
)


def _desktop_folder(machine: Machine) -> Path:
    return machine.applications / "Claude"


CLAUDE_DESKTOP = Target(
    name="claude-desktop",
    title="Claude Desktop",
    programs=("claude-desktop",),
    folders=lambda machine: [_desktop_folder(machine)],
    parts=lambda site: [
        server(
            _desktop_folder(site.machine) / "claude_desktop_config.json", site.programs
        )
    ],
    steps=("quit Claude Desktop and start it again",),
    notes=(NO_HOOKS.format("Claude Desktop"),),
    clients=("claude-desktop",),
)


EDITIONS = ("Code", "Code - Insiders", "VSCodium")


def _vscode_folders(machine: Machine) -> list[Path]:
    return [machine.applications / edition for edition in EDITIONS]


def _vscode_parts(site: Site) -> Parts:
    folders = _vscode_folders(site.machine)
    used = [folder for folder in folders if folder.is_dir()] or folders[:1]
    parts: Parts = [
        stdio_server(folder / "User" / "mcp.json", site.programs, section="servers")
        for folder in used
    ]
    claudes = user_hooks(site.machine, site.programs)
    if not has_hooks_of_ours(claudes):
        parts += copilot_hooks(site)
    return parts


def _vscode_project_parts(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return [
        stdio_server(root / ".vscode" / "mcp.json", site.programs, section="servers")
    ]


VSCODE = Target(
    name="vscode",
    title="VS Code",
    programs=("code", "code-insiders", "codium"),
    folders=_vscode_folders,
    parts=_vscode_parts,
    project_parts=_vscode_project_parts,
    steps=("VS Code asks once whether it may start the server mnem",),
    notes=("VS Code runs the hooks of Claude Code's settings and of ~/.copilot/hooks",),
    unconfirmed=("what VS Code's hooks, a preview, add to a prompt",),
    clients=("vscode",),
)


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CLAUDE_CODE,
        codex.CODEX,
        CURSOR,
        VSCODE,
        OPENCODE,
        GEMINI,
        ANTIGRAVITY,
        COPILOT,
        ZED,
        CLINE,
        GOOSE,
        DEVIN,
        CLAUDE_DESKTOP,
    )
}
