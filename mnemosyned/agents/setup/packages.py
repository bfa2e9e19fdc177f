"""Plugin packages of the tools that take them: a folder with hooks and server."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from mnemosyned.agents.setup.documents import Json
from mnemosyned.agents.setup.parts import NAME, Programs
from mnemosyned.agents.setup.targets import filled_form, hooks_by_event
from mnemosyned.version import __version__

PROGRAMS = Programs(mnem=Path("mnem"), hook=Path("mnem-hook"))


def write_packages(folder: Path) -> list[Path]:
    """Write the plugin packages into a directory; return the paths of the written files."""
    table = Path(__file__).with_name("packages.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(table.replace("{version}", __version__))
    rows = tables["files"]
    written = []
    for name, row in rows.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = rows[row.get("like", name)].get("text")
        if text is None:
            content = _package_content(row, about=tables["about"])
            text = json.dumps(content, indent=2) + "\n"
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def _package_content(row: Json, *, about: Json) -> Json:
    """Return the data of a JSON file in a package, as its row in the table describes it."""
    content = {**(about if row.get("about") else {}), **row.get("json", {})}
    if server := row.get("server"):
        content["mcpServers"] = {NAME: filled_form(server, PROGRAMS)}
    if form := row.get("hooks"):
        hooks = hooks_by_event(form, row["events"], PROGRAMS)
        content["hooks"] = {event: [hook] for event, hook in hooks.items()}
    return content
