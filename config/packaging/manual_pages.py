"""Manual pages and completion scripts of an installation, made from the commands themselves.

`python config/packaging/manual_pages.py DIR` writes `man/man1/` and the scripts of bash, zsh and
fish into the folders below DIR where these shells look for them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from mnemosyned.cli.commands.small import completion_script
from mnemosyned.cli.main import CommandTable, mnem
from mnemosyned.cli.options import EXIT_CODES
from mnemosyned.cli.registry import COMMANDS, GROUPS
from mnemosyned.daemon.main import main as mnemosyned
from mnemosyned.version import __version__

SCRIPTS = {
    "bash": "bash-completion/completions/mnem",
    "zsh": "zsh/site-functions/_mnem",
    "fish": "fish/vendor_completions.d/mnem.fish",
}
"""The completion script of each shell, below a directory such as `~/.local/share`."""
LINE_CHARS = 200
"""Characters of the first sentence of a command's help, which names its page."""
ENVIRONMENT = {
    "MNEMOSYNE_SOCKET": "The daemon's socket.",
    "MNEMOSYNE_URL": "The URL of a daemon on another machine, in place of the socket.",
    "MNEMOSYNE_TOKEN": "Its token.",
    "MNEMOSYNE_TOKEN_FILE": "A file with its token, for you alone to read.",
    "MNEMOSYNE_CA": "A PEM file with the authority that signed the server's certificate.",
    "MNEMOSYNE_OWNER": "Whose memory is asked there: that of a group.",
    "MNEM_FORMAT": "The format of answers, as --format names it.",
    "MNEM_PAGER, PAGER": "The pager for what is longer than the screen; cat means none.",
    "NO_COLOR": "Print without styles.",
}


def manual_pages() -> Iterator[tuple[str, str]]:
    """Yield name and roff text of each manual page of `mnem` and `mnemosyned`."""
    yield from _pages_of(mnem, "mnem")
    yield from _pages_of(mnemosyned, "mnemosyned")


def _pages_of(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield name and roff text of the manual pages of a command and its subcommands."""
    names = ["-h", "--help"]
    context = click.Context(
        command, info_name=name, parent=parent, help_option_names=names
    )
    yield context.command_path.replace(" ", "-"), _page_text(command, context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            if member := command.get_command(context, each):
                yield from _pages_of(member, each, context)


def _page_text(command: click.Command, context: click.Context) -> str:
    """Return the manual page of a command as roff; `context` holds its full name."""
    title = context.command_path.replace(" ", "-")
    summary, _, further = (command.help or "").partition("\n\n")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH {_quote_for_roff(title.upper())} 1 "" "mnemosyned {__version__}" "User Commands"',
        ".SH NAME",
        _escape_for_roff(
            f"{title} - {command.get_short_help_str(LINE_CHARS).removesuffix('.')}"
        ),
        ".SH SYNOPSIS",
        f".B {_escape_for_roff(context.command_path)}",
        _escape_for_roff(usage),
        ".SH DESCRIPTION",
        *_paragraph_lines(summary),
        *_paragraph_lines(further),
        ".SH OPTIONS",
    ]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record:
            lines += _entry_lines(*record)
    if isinstance(command, CommandTable):
        for group in GROUPS:
            lines.append(f".SS {_quote_for_roff(group)}")
            for entry in COMMANDS.values():
                if entry.group == group:
                    lines += _entry_lines(entry.name, entry.summary)
    elif isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for name, member in sorted(command.commands.items()):
            lines += _entry_lines(name, member.get_short_help_str(LINE_CHARS))
    first = (command.epilog or "").partition("\n\n")[0]
    if first.startswith("Example: "):
        example = _escape_for_roff(first.removeprefix("Example: "))
        lines += [".SH EXAMPLE", ".EX", example, ".EE"]
    if title == "mnem":
        lines.append(".SH ENVIRONMENT")
        for name, meaning in ENVIRONMENT.items():
            lines += _entry_lines(name, meaning)
    if title != "mnemosyned":
        lines.append(".SH EXIT STATUS")
        codes = EXIT_CODES.removeprefix("Exit codes: ").removesuffix(".").split("; ")
        for code, _, meaning in (each.partition(" ") for each in codes):
            lines += _entry_lines(code, meaning)
    others = {"mnem": "mnemosyned", "mnemosyned": "mnem"}
    lines += [".SH SEE ALSO", f".BR {_escape_for_roff(others.get(title, 'mnem'))} (1)"]
    return "\n".join(lines) + "\n"


def _entry_lines(name: str, meaning: str) -> list[str]:
    """Return the roff lines of a list's entry: the name of a command or option, and its meaning."""
    return [".TP", f".B {_escape_for_roff(name)}", _escape_for_roff(meaning)]


def _paragraph_lines(text: str) -> Iterator[str]:
    """Yield the roff lines of a text whose paragraphs have blank lines between them."""
    for paragraph in filter(None, text.split("\n\n")):
        yield ".PP"
        yield _escape_for_roff(" ".join(paragraph.replace("\b", "").split()))


def _escape_for_roff(text: str) -> str:
    """Escape a text for roff; hyphens stay ASCII, so that commands can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    escaped = re.sub("[^\x00-\x7f]", lambda sign: rf"\[u{ord(sign[0]):04X}]", escaped)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _quote_for_roff(text: str) -> str:
    """Return a text as a quoted argument of a roff macro."""
    return '"' + _escape_for_roff(text).replace('"', '""') + '"'


def write_manual(folder: Path) -> None:
    """Write all manual pages and completion scripts below `folder`, where shells look for them."""
    files = {f"man/man1/{name}.1": text for name, text in manual_pages()}
    files |= {file: completion_script(shell) for shell, file in SCRIPTS.items()}
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_manual(Path(sys.argv[1]))
