"""A page for each agent's tool, from the table of tools and a dry run of `mnem setup`."""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from docs.markup import code, fence, inline, page, table
from support.pages import PROJECT

TABLE = PROJECT / "mnemosyned" / "agents" / "setup" / "targets.toml"
EVENTS = PROJECT / "mnemosyned" / "agents" / "hooks" / "events.toml"
BIN = Path(sys.executable).parent
SHOWN_LINES_MAX = 30
STORED = {
    "start": "stores what earlier sessions said that no hook reported",
    "prompt": "stores the prompt, if the tool has no transcript",
    "stop": "stores what was said",
    "compact": "stores what was said, before the tool shortens it",
    "end": "stores what was said",
}
"""What a hook stores at each kind of event."""
INJECTED = {
    "start": "injects what matters of earlier sessions",
    "prompt": "injects earlier lines that the prompt needs, or nothing",
}
"""What a hook injects into the context of a tool that allows it."""


def agent_pages() -> dict[str, str]:
    """Return the Markdown of each tool's page, and of the list of tools, by its path."""
    data = tomllib.loads(TABLE.read_text("utf-8"))
    kinds = tomllib.loads(EVENTS.read_text("utf-8"))
    plans = _planned(list(data["tools"]))
    pages = {}
    rows = []
    for name, tool in data["tools"].items():
        hooks = _events_of(tool, data)
        pages[f"agents/{name}.md"] = _tool_page(name, tool, hooks, kinds, plans[name])
        captures = "yes" if _captures(tool) else "no: the model calls tools"
        at = ["at the start"] * ("start" in _injects(name, tool, kinds))
        at += ["with prompts"] * ("prompt" in _injects(name, tool, kinds))
        link = f"[{tool['title']}]({name}.md)"
        row = (link, code(f"mnem setup {name}"), captures, ", ".join(at) or "no")
        rows.append(row)
    pages["agents/index.md"] = page(
        "Agents",
        "the table of tools that `mnem setup` knows",
        "`mnem setup` gives memory to the tools below. Without a name it asks about each one "
        "that it finds. [Setup](../setup.md) says how changes are undone and checked, "
        "[Hooks](../agents.md) what is captured and injected, and [MCP](../mcp.md) which tools "
        "a model gets. Any other agent that speaks MCP can start `mnem mcp`.",
        table(("tool", "command", "captures by itself", "injects by itself"), rows),
    )
    return pages


def _planned(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return what a dry run of `mnem setup` in an empty home would write for each tool."""
    with tempfile.TemporaryDirectory() as home:
        run = subprocess.run(
            [BIN / "mnem", "setup", *names, "--dry-run", "--json"],
            env={"HOME": home, "PATH": os.defpath},
            capture_output=True,
            text=True,
            check=True,
        )
    text = run.stdout.replace(home, "~").replace(f"{BIN}/", "~/.local/bin/")
    return {plan["tool"]: plan for plan in json.loads(text)["tools"]}


def _events_of(tool: dict[str, Any], data: dict[str, Any]) -> dict[str, int]:
    """Return the events of a tool that start our hook, with their time limits."""
    for part in tool["parts"]:
        if part["kind"] == "hooks":
            return dict(data["events"][part["events"]])
        if part.get("label") == "hooks":
            form = data["forms"][part["form"]]
            return {event: entries[0]["timeout"] for event, entries in form.items()}
    return {}


def _captures(tool: dict[str, Any]) -> bool:
    """Return True if setup enters hooks or a plugin for a tool."""
    return any(
        part["kind"] in ("hooks", "file") or part.get("label") == "hooks"
        for part in tool["parts"]
    )


def _injects(name: str, tool: dict[str, Any], kinds: dict[str, Any]) -> set[str]:
    """Return the kinds of events at which a tool lets its hooks inject context."""
    if name in kinds["observers"] or not _captures(tool):
        return set()
    return {"start"} if name in kinds["start_alone"] else set(INJECTED)


def _deeds(kind: str, injects: set[str]) -> str:
    """Return what a hook does at a kind of event."""
    if kind in injects:
        return f"{STORED[kind]}; {INJECTED[kind]}"
    return STORED[kind]


def _tool_page(
    name: str,
    tool: dict[str, Any],
    hooks: dict[str, int],
    kinds: dict[str, Any],
    plan: dict[str, Any],
) -> str:
    """Return the page of one tool."""
    title = tool["title"]
    injects = _injects(name, tool, kinds)
    ways = ["an MCP server, whose tools its model can call"]
    if _captures(tool):
        ways.append(
            f"hooks, which capture {'and inject ' if injects else ''}without being asked"
        )
    parts = [
        f"Memory for {title} is {', and '.join(ways)}.",
        "## Set up",
        "With [mnemosyned installed](../getting-started.md#install):",
        fence("sh", f"mnem setup {name}"),
        "It shows the changes below and asks before it writes them.",
    ]
    if plan["next"]:
        parts.append("Then:\n\n" + _listed(plan["next"]))
    parts += ["## What is written", "For you, in all projects:"]
    for file in plan["files"]:
        parts += [f"{code(file['file'])}", _diff(file["diff"])]
    if project := [part["project"] for part in tool["parts"] if "project" in part]:
        files = ", ".join(code(file) for file in dict.fromkeys(project))
        parts.append(
            f"With {code('--scope project')}, for one project, in its folder: {files}."
        )
    parts.append("## What is captured and injected")
    if hooks:
        rows = [
            (code(event), _deeds(_kind_of(event, kinds), injects), _seconds(limit))
            for event, limit in hooks.items()
        ]
        parts.append(table(("event", "what the hook does", "time limit"), rows))
    elif _captures(tool):
        parts.append("A plugin file hands the tool's events to `mnem-hook`.")
    else:
        parts.append("Nothing by itself: the model calls the tools of the server.")
    if transcripts := tool.get("transcripts"):
        shown = ", ".join(code(f"~/{file}") for file in transcripts)
        parts.append(
            f"It reads transcripts at {shown}; {code('mnem import')} reads earlier ones."
        )
    parts.append(
        "[Hooks](../agents.md) has the details, and "
        "[how to keep something out](../agents.md#keep-something-out)."
    )
    if limits := [
        *plan["notes"],
        *(each["reason"] for each in tool.get("obstacles", [])),
    ]:
        parts += ["## Good to know", _listed(dict.fromkeys(limits))]
    if plan["unconfirmed"]:
        parts += ["Not confirmed yet:", _listed(plan["unconfirmed"])]
    parts += [
        "## Check",
        fence("sh", f"mnem setup --check {name}"),
        "It shows whether the server and the hooks are there, when they last ran, and what failed.",
        "## Undo",
        fence("sh", f"mnem setup --undo {name}"),
        "It restores every file that it changed, and leaves the memory.",
    ]
    origin = f"`targets.toml` and `mnem setup {name} --dry-run`"
    return page(title, origin, *parts)


def _kind_of(event: str, kinds: dict[str, Any]) -> str:
    """Return the kind of an event by a tool's name for it."""
    letters = "".join(filter(str.isalpha, event)).lower()
    events: dict[str, str] = kinds["events"]
    return next(kind for kind, names in events.items() if letters in names.split())


def _seconds(limit: int) -> str:
    """Return a time limit, which some tools count in milliseconds."""
    return f"{limit // 1_000 if limit >= 1_000 else limit} s"


def _listed(lines: Any) -> str:  # noqa: ANN401 any iterable of texts
    """Return sentences as a list."""
    return "\n".join(f"- {inline(line[0].upper() + line[1:])}" for line in lines)


def _diff(text: str) -> str:
    """Return a diff without its head as a block, cut where it is a whole program."""
    lines = text.splitlines()[3:]
    if len(lines) > SHOWN_LINES_MAX:
        further = len(lines) - SHOWN_LINES_MAX
        lines = [*lines[:SHOWN_LINES_MAX], f"… {further} further lines"]
    return fence("diff", "\n".join(lines))
