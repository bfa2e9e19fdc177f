"""Histories of bash, zsh and fish."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from mnemosyned.importers.importer import (
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
    sendable,
    stable_id,
)
from mnemosyned.importers.reading import (
    LINE_BYTES_MAX,
    RecordPosition,
    TextLine,
    as_utf8,
    is_binary,
    lines_of,
)
from mnemosyned.verbs.memories import Remember

HISTORY_NAMES = re.compile(
    r"\.?(?:bash_|zsh_|fish_|sh_|ksh_|z|local_)?hist(?:ory|file)?(?:\..*)?"
)
LINES_MAX = 1_000
"""Lines of one command."""
_STAMP = re.compile(rb"#(\d{9,11})\s*\Z")
_EXTENDED = re.compile(rb": (\d{9,11}):\d+;(.*)", re.DOTALL)
_FISH_COMMAND = b"- cmd: "
_FISH_TIME = re.compile(rb"\s+when: (\d{9,11})\s*\Z")
_META, _META_SHIFT = 0x83, 0x20
"""zsh writes a byte above 0x82 as `_META` and the byte XOR `_META_SHIFT`."""


@dataclass(slots=True)
class _Command:
    number: int
    text: str
    time: int = 0
    end: int = 0


class ShellHistory(ImportFormat):
    """A history file of bash, zsh or fish."""

    name = "shell"
    needs_file = True

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a history of a known shell."""
        if source.stream or source.is_folder or is_binary(source.head):
            return False
        return shell_of(source) != ""

    def read(
        self, source: ImportSource, position: str
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield the commands after a position, the byte offset and number of a command."""
        shell = shell_of(source) or "bash"
        modified = datetime.fromtimestamp(source.path.stat().st_mtime, tz=UTC)
        start = RecordPosition.parse(position)
        end = start.offset
        with source.open() as opened:
            # zsh has an encoding of its own.
            stream = opened if shell == "zsh" else as_utf8(opened)
            long_lines: list[TextLine] = []
            lines = _set_long_lines_apart(
                lines_of(stream, offset=start.offset), long_lines
            )
            for command in _READERS[shell](lines, start.number):
                size, end = command.end - end, command.end
                place = f"{source.name}, command {command.number}"
                after = str(RecordPosition(end, command.number))
                if not command.text.strip():
                    continue
                if "\0" in command.text:
                    yield BadRecord(place, "it is not text", after, size)
                    continue
                yield ImportItem(
                    _memory_of_command(shell, command, modified), place, after, size
                )
            for line in long_lines:
                reason = f"the line is longer than {LINE_BYTES_MAX:,} bytes"
                yield BadRecord(f"{source.name}, byte {line.offset:,}", reason)


def shell_of(source: ImportSource) -> str:
    """Return the shell that wrote a history, by content or name; empty for other files."""
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


def _memory_of_command(shell: str, command: _Command, modified: datetime) -> Remember:
    """Return the memory of a command; without a time, it gets the file's.

    Equal commands without a time have one id.
    """
    text = command.text.strip()
    moment = datetime.fromtimestamp(command.time, tz=UTC) if command.time else modified
    return sendable(
        Remember(
            text,
            id=stable_id("shell", shell, str(command.time or ""), text),
            session=f"shell:{shell}",
            source="shell",
            role="user",
            created_at=moment,
            metadata={"shell": shell},
        )
    )


def _set_long_lines_apart(
    lines: Iterable[TextLine], long_lines: list[TextLine]
) -> Iterator[TextLine]:
    """Yield the lines that are not too long; add the others to `long_lines`."""
    for line in lines:
        if line.too_long:
            long_lines.append(line)
        else:
            yield line


def _split_bash_commands(lines: Iterator[TextLine], number: int) -> Iterator[_Command]:
    """Yield the commands in a bash history; with times, a command may have several lines.

    `number` is the number of commands before these lines.
    """
    time = 0
    command: _Command | None = None
    for line in lines:
        stamp = _STAMP.match(line.data)
        if stamp:
            time = int(stamp[1])
            if command:
                yield command
            command = None
        elif command and time and command.text.count("\n") < LINES_MAX:
            command.text += "\n" + line.text
            command.end = line.end
        else:
            if command:
                yield command
            number += 1
            command = _Command(number, line.text, time, line.end)
    if command:
        yield command


def _split_zsh_commands(lines: Iterator[TextLine], number: int) -> Iterator[_Command]:
    """Yield the commands in a zsh history; a backslash continues a command on the next line.

    `number` is the number of commands before these lines.
    """
    command: _Command | None = None
    for line in lines:
        data = _decode_meta(line.data)
        text = data.decode("utf-8", "replace").rstrip("\r\n")
        if command is None:
            number += 1
            extended = _EXTENDED.match(data)
            time = int(extended[1]) if extended else 0
            command = _Command(number, text.partition(";")[2] if time else text, time)
        else:
            command.text += "\n" + text
        command.end = line.end
        goes_on = command.text.endswith("\\") and command.text.count("\n") < LINES_MAX
        if goes_on:
            command.text = command.text[:-1]
        else:
            yield command
            command = None
    if command:
        yield command


def _split_fish_commands(lines: Iterator[TextLine], number: int) -> Iterator[_Command]:
    """Yield the commands in a fish history, which escapes line ends within a command.

    `number` is the number of commands before these lines.
    """
    command: _Command | None = None
    for line in lines:
        time = _FISH_TIME.match(line.data)
        if line.data.startswith(_FISH_COMMAND):
            if command:
                yield command
            number += 1
            written = line.text[len(_FISH_COMMAND) :]
            text = re.sub(r"\\(n|\\)", lambda m: "\n" if m[1] == "n" else "\\", written)
            command = _Command(number, text)
        elif command and time:
            command.time = int(time[1])
        if command:
            command.end = line.end
    if command:
        yield command


def _decode_meta(data: bytes) -> bytes:
    """Return the bytes as they were typed, decoded from zsh's own encoding."""
    if _META not in data:
        return data
    kept = bytearray()
    shifted = False
    for byte in data:
        if byte == _META and not shifted:
            shifted = True
            continue
        kept.append(byte ^ _META_SHIFT if shifted else byte)
        shifted = False
    return bytes(kept)


_READERS = {
    "bash": _split_bash_commands,
    "zsh": _split_zsh_commands,
    "fish": _split_fish_commands,
}
