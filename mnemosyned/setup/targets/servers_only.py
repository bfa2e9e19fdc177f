"""Tools that take an MCP server and have no hooks that could use a memory."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import Parts, server

NO_HOOKS = "{} has no hooks: the model has to call the tools itself"
CLINE_FILE = "cline_mcp_settings.json"


def _zed_folder(machine: Machine) -> Path:
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    return machine.config / "zed"


def _zed(site: Site, file: Path) -> Parts:
    return [server(file, site.programs, section="context_servers", env={})]


ZED = Target(
    name="zed",
    title="Zed",
    programs=("zed", "zeditor"),
    folders=lambda machine: [_zed_folder(machine)],
    parts=lambda site: _zed(site, _zed_folder(site.machine) / "settings.json"),
    project_parts=lambda site: _zed(
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


def _cline(site: Site) -> Parts:
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
    parts=_cline,
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
