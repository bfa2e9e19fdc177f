"""`mnem export`: everything that is kept, as lines, as Markdown or as a copy of the database."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from mnemosyned.cli.address_options import refuse_elsewhere
from mnemosyned.cli.arguments.inputs import fields_typed
from mnemosyned.cli.arguments.parameters import parameter
from mnemosyned.cli.calls import called, client_of
from mnemosyned.cli.exchange.progress_line import Advance, progress_line
from mnemosyned.cli.exchange.whole_file import PARTIAL, check_target, whole_file
from mnemosyned.cli.interruption import on_interrupt
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import InvalidRequest, MnemosynedError
from mnemosyned.paths import usable_path
from mnemosyned.terminal import counted, say, say_json
from mnemosyned.verbs.request import decoder_of, fields_of, parse_text
from mnemosyned.verbs.retention import Backup
from mnemosyned.verbs.streams.exchange import (
    CUT_OFF,
    FOOTER,
    HEADER,
    CutOff,
    Export,
    Footer,
    Header,
    line_kind,
)

NOTHING_WRITTEN = "interrupted; no whole file was written"
SUFFIXES = {".md": "markdown", ".db": "sqlite", ".sqlite": "sqlite"}
_FILTERS = [parameter(Export, field) for field in fields_of(Export)]


@click.command("export")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "markdown", "sqlite"]),
    help="Default: by the file's name, else jsonl.",
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option(
    "--reveal", is_flag=True, help="Markdown: show secrets, masked otherwise."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print what was exported as JSON."
)
@click.pass_context
def export_command(
    context: click.Context,
    /,
    *,
    file: str,
    format_name: str | None,
    force: bool,
    reveal: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401
) -> int:
    """Write everything that is kept to a file.

    jsonl: one record a line, as it was at one moment; `mnem import FILE` restores it exactly.
    Secrets are in it as they are stored, so keep it private.

    markdown: to read. A folder gets a file for each day, FILE.md has all days.

    sqlite: a copy of the database, as `mnem backup` makes one.
    """
    format_name = format_name or _format_of(file)
    request = parse_text(Export, fields_typed(given))
    if reveal and format_name != "markdown":
        raise InvalidRequest(
            f"{format_name} has secrets as they are stored; --reveal is for markdown",
            field="reveal",
        )
    if file != "-":
        usable_path(file, field="file", suffix=PARTIAL)
    if file != "-" and not _is_folder_of_days(file, format_name):
        check_target(Path(file), force=force)
    with on_interrupt(lambda: NOTHING_WRITTEN), client_of(context) as client:
        if format_name == "sqlite":
            refuse_elsewhere(context, "export --format sqlite")
            summary = _copy(client, request, file)
        elif format_name == "markdown":
            summary = _markdown(client, request, file, reveal=reveal, force=force)
        else:
            summary = _lines(client, request, file)
    if as_json:
        say_json(summary, err=file == "-")
    elif file != "-":
        say(_summary_text(summary))
    return 0


export_command.params[1:1] = _FILTERS


def _format_of(file: str) -> str:
    """Return the format that a name means where none is named."""
    if Path(file).is_dir():
        return "markdown"
    return SUFFIXES.get(Path(file).suffix, "jsonl")


def _is_folder_of_days(file: str, format_name: str) -> bool:
    return format_name == "markdown" and not file.endswith(".md")


def _summary_text(summary: dict[str, Any]) -> str:
    parts = [
        counted(summary[name], noun)
        for name, noun in (
            ("memory", "memory"),
            ("episode", "summary"),
            ("files", "file"),
        )
        if name in summary
    ]
    size = f", {summary['bytes']:,} bytes" if "bytes" in summary else ""
    return f"{summary['file']}: {', '.join(parts) or 'a whole copy'}{size}"


def _copy(client: Connection, request: Export, file: str) -> dict[str, Any]:
    """Have the daemon write a copy of the database."""
    if request != Export():
        raise InvalidRequest(
            "a copy of the database is whole; filters are for jsonl and markdown"
        )
    if file == "-":
        raise InvalidRequest("name the file that the copy is written to", field="file")
    path = str(usable_path(file, field="file").absolute())
    written = called(client, Backup(path))
    return {"file": written.file, "bytes": written.bytes}


# --------------------------------------------------------------------- lines


def _lines(client: Connection, request: Export, file: str) -> dict[str, Any]:
    """Write the lines; a file gets its name when it is whole."""
    if file == "-":
        if sys.stdout.isatty():
            raise InvalidRequest(
                "refusing to fill the terminal; name a file, or pipe it", field="file"
            )
        counts, size = _stream(client, request, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    else:
        with whole_file(Path(file)) as written:
            counts, size = _stream(client, request, written.write)
    return {"file": file, "bytes": size, **counts}


def _stream(
    client: Connection, request: Export, write: Callable[[bytes], object]
) -> tuple[dict[str, int], int]:
    """Write all lines; the counts in the last one, and the bytes."""
    size = 0
    footer = b""
    digest = hashlib.sha256()
    with exported_lines(client, request) as lines:
        for line in lines:
            write(line)
            size += len(line)
            digest.update(footer)
            footer = line
    return _checked_footer(footer, digest.hexdigest()), size


def _checked_footer(footer: bytes, sha256: str) -> dict[str, int]:
    """Return the counts in the last line. Raises `MnemosynedError` where it is another."""
    kind = line_kind(footer).record if footer.endswith(b"\n") else ""
    if kind == CUT_OFF:
        reason = decoder_of(CutOff).decode(footer).reason
        raise MnemosynedError(f"the daemon ended the export early: {reason}; try again")
    if kind != FOOTER:
        raise MnemosynedError(
            "the export ended before its last line; see the daemon's log, then try again"
        )
    last = decoder_of(Footer).decode(footer)
    if last.sha256 != sha256:
        raise MnemosynedError("the export did not arrive as it was sent; try again")
    return last.counts


@contextmanager
def exported_lines(client: Connection, request: Export) -> Iterator[Iterable[bytes]]:
    """Give the lines of an export while the block runs, with a bar at a terminal."""
    with (
        closing(client.transfers()) as transfers,
        transfers.export(request) as lines,
    ):
        first = next(iter(lines), b"")
        with progress_line("exporting", "record", _expected(first)) as advance:
            yield _counted_on(advance, first, lines)


def _counted_on(
    advance: Advance, first: bytes, lines: Iterable[bytes]
) -> Iterator[bytes]:
    yield first
    for number, line in enumerate(lines, 1):
        yield line
        advance(1, number)


def _expected(line: bytes) -> int:
    """Return how many lines a header announces."""
    if not line or line_kind(line).record != HEADER:
        return 0
    return sum(decoder_of(Header).decode(line).expected.values())


# ------------------------------------------------------------------ markdown


def _markdown(
    client: Connection, request: Export, file: str, *, reveal: bool, force: bool
) -> dict[str, Any]:
    """Write the days as Markdown: to a folder, one file, or standard output."""
    # Loaded here: the other formats need nothing of it.
    from mnemosyned.cli.exchange.export_markdown import Days  # noqa: PLC0415

    with Days(reveal=reveal) as days:
        with exported_lines(client, request) as lines:
            days.collect(lines)
        if file == "-":
            for text in days.texts():
                say(text)
            return {"file": file, "memory": days.count}
        if not _is_folder_of_days(file, "markdown"):
            with whole_file(Path(file)) as written:
                for text in days.texts():
                    written.write(text.encode())
            return {"file": file, "memory": days.count}
        files = days.write(Path(file), force=force)
        return {"file": file, "memory": days.count, "files": files}
