"""The commands of the shell in groups: name, summary, example, and the place of the code.

They are in `registry.txt`: by group, the name of a command and its target, its summary, an
example, and examples of its subcommands. It is no TOML, as its parser takes longer to load than the
table.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """A command as the help page shows it, and the place of its code."""

    name: str
    group: str
    """The title of its group on the help page."""
    summary: str
    target: str
    """`module:attribute` of a click command, or of a verb's request."""
    example: str
    examples: list[str]
    """Of its subcommands, where they are not this example."""


def _read_table() -> list[Command]:
    """Return the commands listed in `registry.txt`, in the order of the file."""
    group, commands = "", list[Command]()
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# "):
            group = line[2:]
        elif line.startswith(" "):
            commands[-1].examples.append(line.strip())
        else:
            name, _, target = line.partition(" = ")
            summary, example = next(lines).strip(), next(lines).strip()
            commands.append(Command(name, group, summary, target, example, []))
    return commands


COMMANDS = {command.name: command for command in _read_table()}
GROUPS = tuple(dict.fromkeys(command.group for command in COMMANDS.values()))
"""The titles of the groups, in the order of the help page."""
ADMINISTRATION = "Administration"
"""The group that `mnem admin` lists. Its commands work with and without the word `admin`."""
LOCAL = {"backup", "model", "watch"} | {
    command.name for command in COMMANDS.values() if ".maintenance." in command.target
} - {"owner"}
"""The commands that work on the daemon's own machine alone."""
