"""Histories of bash, zsh and fish."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from mnemosyned.importers import importer, reading
from mnemosyned.verbs.memories import Remember

HISTORY_NAMES = re.compile(
    r"\.?(?:bash_|zsh_|fish_|sh_|ksh_|z|local_)?hist(?:ory|file)?(?:\..*)?"
)
LINES_MAX = 1_000
"""Maximum lines of one command."""
_STAMP = re.compile(rb"#(\d{9,11})\s*\Z")
_EXTENDED = re.compile(rb": (\d{9,11}):\d+;(.*)", re.DOTALL)
_FISH_COMMAND = b"- cmd: "
_FISH_TIME = re.compile(rb"\s+when: (\d{9,11})\s*\Z")
_META = re.compile(rb"\x83(.?)", re.DOTALL)
"""zsh writes a byte above 0x82 as 0x83 and the byte XOR 0x20."""


@dataclass(slots=True)
class _Command(reading.FileRecord):
    text: str = ""
    time: int = 0
    """Seconds since 1970; 0 if unknown."""

    def add_line(self, text: str) -> bool:
        """Add a line to the command; if it has `LINES_MAX` lines, return False and add nothing."""
        has_room = self.text.count("\n") < LINES_MAX
        if has_room:
            self.text += f"\n{text}"
        return has_room


class ShellHistory(importer.ImportFormat):
    """A history file of bash, zsh or fish."""

    name = "shell"
    needs_file = True

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True for a file that is a command history of bash, zsh or fish."""
        if source.is_folder or reading.is_binary(source.head):
            return False
        return shell_of(source) != ""

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the commands of a history after a position, "byte offset/number of the command"."""
        shell = shell_of(source) or "bash"
        modified = datetime.fromtimestamp(source.path.stat().st_mtime, tz=UTC)
        make = partial(_memory_of_command, shell, modified)
        return reading.read_grouped_lines(
            source, position, partial(_take_line, shell), make, noun="command"
        )


def shell_of(source: importer.ImportSource) -> str:
    """Return "bash", "zsh" or "fish" from a history's first lines or file name; empty for other files."""
    lines = source.head.split(b"\n")[:50]
    if lines[0].startswith(_FISH_COMMAND):
        return "fish"
    if _EXTENDED.match(lines[0]):
        return "zsh"
    if _STAMP.match(lines[0]) and len(lines) > 1 and lines[1]:
        return "bash"
    name = source.path.name.lower()
    if not HISTORY_NAMES.fullmatch(name):
        return ""
    return "zsh" if "zsh" in name or name == ".zhistory" else "bash"


def _memory_of_command(
    shell: str, modified: datetime, command: _Command
) -> Remember | None:
    """Return a command's memory, by default of the time `modified`; None if blank. Raises `RecordRefused`."""
    text = command.text.strip()
    if (
        shell == "zsh" and text.count("\n") < LINES_MAX
    ):  # the file ends within a command
        text = text.removesuffix("\\").strip()
    if "\0" in text:
        raise importer.RecordRefused("it is not text")
    if not text:
        return None
    moment = datetime.fromtimestamp(command.time, tz=UTC) if command.time else modified
    return Remember(
        text,
        id=importer.stable_id("shell", shell, str(command.time or ""), text),
        session=f"shell:{shell}",
        source="shell",
        role="user",
        created_at=moment,
        metadata={"shell": shell},
    )


def _take_line(
    shell: str, line: reading.TextLine, last: _Command | None
) -> _Command | None:
    """Return a new command if the line begins one, else add the line to the `last` one and return None."""
    if line.too_long:
        problem = f"the line is longer than {reading.LINE_BYTES_MAX:,} bytes"
        return _Command(problem=problem, time=last.time if last else 0)
    return _LINE_TAKERS[shell](line, last)


def _take_bash_line(line: reading.TextLine, last: _Command | None) -> _Command | None:
    """Return a new command, or None after adding the line to the `last`, which began with "#<seconds>"."""
    if stamp := _STAMP.match(line.data):
        return _Command(time=int(stamp[1]))
    if last and last.time and not last.problem and last.add_line(line.text):
        return None
    return _Command(text=line.text, time=last.time if last else 0)


def _take_zsh_line(line: reading.TextLine, last: _Command | None) -> _Command | None:
    """Return a new command, or None after adding the line to the `last`, which ended with a backslash."""
    data = _META.sub(lambda meta: bytes(byte ^ 0x20 for byte in meta[1]), line.data)
    text = data.decode("utf-8", "replace").rstrip("\r\n")
    if last and last.text.endswith("\\") and last.text.count("\n") < LINES_MAX:
        last.text = last.text[:-1]
        last.add_line(text)
        return None
    if extended := _EXTENDED.match(data):
        return _Command(text=text.partition(";")[2], time=int(extended[1]))
    return _Command(text=text)


def _take_fish_line(line: reading.TextLine, last: _Command | None) -> _Command | None:
    """Return a new command for a line "- cmd: …", else None; "  when: <seconds>" sets the last one's time."""
    if line.data.startswith(_FISH_COMMAND):
        written = line.text[len(_FISH_COMMAND) :]
        text = re.sub(r"\\(n|\\)", lambda m: "\n" if m[1] == "n" else "\\", written)
        return _Command(text=text)
    if last and (time := _FISH_TIME.match(line.data)):
        last.time = int(time[1])
    return None


_LINE_TAKERS = {
    "bash": _take_bash_line,
    "zsh": _take_zsh_line,
    "fish": _take_fish_line,
}
